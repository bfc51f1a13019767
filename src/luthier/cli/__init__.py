"""The command line."""


def main() -> None:
    """The `luthier` command."""
    from luthier.cli.app import app

    app(prog_name="luthier")


__all__ = ["main"]
