"""The command line."""


def main() -> None:
    """The `luthier` command. An interrupt before the work has begun, or after it, ends it like one within."""
    try:
        from luthier.cli.app import app

        app(prog_name="luthier")
    except KeyboardInterrupt:
        raise SystemExit(130) from None


__all__ = ["main"]
