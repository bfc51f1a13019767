"""`python -m luthier` is the `luthier` command."""

from luthier.cli import main

main()
