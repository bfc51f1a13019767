"""The command line."""


def main() -> None:
    """The `luthier` command. An interrupt before the work has begun, or after it, ends it like one within."""
    import sys

    from luthier.cli.dumps import keep_to_itself
    from luthier.redaction import print_exception

    keep_to_itself()
    sys.excepthook = print_exception  # a fault of our own: its text may hold anything
    try:
        from luthier.cli.app import app

        app(prog_name="luthier")
    except KeyboardInterrupt:
        raise SystemExit(130) from None


__all__ = ["main"]
