"""The command line."""


def main() -> None:
    """The `luthier` command. An interrupt before the work has begun, or after it, ends it like one within."""
    import sys

    from luthier.cli.dumps import keep_to_itself
    from luthier.cli.streams import fill_streams, give_up, reason
    from luthier.redaction import print_exception

    keep_to_itself()
    fill_streams()
    sys.excepthook = print_exception  # a fault of our own: its text may hold anything
    try:
        from luthier.cli.app import app

        app(prog_name="luthier")
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except OSError as error:  # of what typer prints itself: help and the version
        sys.stderr.write(f"error: the text cannot be written to stdout: {reason(error)}\n")
        give_up(1)
        raise SystemExit(1) from None


__all__ = ["main"]
