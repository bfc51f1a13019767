"""`luthier secrets`: the stored secrets of a project, which `${secret:NAME}` stands for; none is shown."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from luthier.cli.options import OK, JsonOption, command, found_project

if TYPE_CHECKING:
    from luthier.secrets import Vault

app = typer.Typer(help="Stored secrets.", no_args_is_help=True, rich_markup_mode=None)

NameArgument = Annotated[str, typer.Argument(help="The name that `${secret:NAME}` has it by.")]


@app.command("set")
@command
def set_secret(
    context: typer.Context,
    name: NameArgument,
    more: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
) -> int:
    """Keep a secret, read from stdin or asked for without being shown; never from the command line."""
    from luthier.cli.render import echo
    from luthier.errors import Fault, InputError
    from luthier.secrets import Secret

    if more:  # it is not repeated: whoever lists processes has seen it already
        hint = f"pipe it in, or run `luthier secrets set {name}` and type it"
        raise InputError([Fault("a secret is not given on the command line", suggestion=hint)])
    _vault(context).set(name, Secret(_asked(name)))
    echo(f"set: {name}")
    return OK


@app.command("list")
@command
def list_secrets(context: typer.Context, json: JsonOption = False) -> int:
    """List the names of the stored secrets, when each was set, and the id of its key."""
    import time

    import msgspec

    from luthier.cli.render import echo, show_table, to_json

    kept = _vault(context).list()
    if json:
        echo(to_json({"secrets": [msgspec.to_builtins(one) for one in kept]}))
        return OK
    rows = [(one.name, time.strftime("%Y-%m-%d %H:%M", time.localtime(one.at)), one.key) for one in kept]
    show_table(("name", "set", "key"), rows)
    return OK


@app.command("remove")
@command
def remove_secret(context: typer.Context, name: NameArgument) -> int:
    """Forget a secret."""
    from luthier.cli.render import echo
    from luthier.errors import NotFoundError
    from luthier.text import near

    vault = _vault(context)
    if not vault.remove(name):
        raise NotFoundError("secret", name, near=near(name, [one.name for one in vault.list()]))
    echo(f"removed: {name}")
    return OK


@app.command("rotate")
@command
def rotate(context: typer.Context) -> int:
    """Encrypt every stored secret with a new key and drop the old one. Interrupted, it can be run again."""
    from luthier.cli.render import echo

    echo(f"rotated: {_vault(context).rotate()}")
    return OK


def _asked(name: str) -> str:
    from luthier.secrets.vault import LONGEST

    if sys.stdin is not None and sys.stdin.isatty():
        from getpass import getpass

        return getpass(f"{name}: ")
    most = LONGEST + 2  # a line's end with it
    return "" if sys.stdin is None else sys.stdin.read(most + 1).removesuffix("\n").removesuffix("\r")


def _vault(context: typer.Context) -> Vault:
    from luthier.runtime.sources import state_of, vault_of

    project = found_project(context)
    environ = project.environ(os.environ)
    return vault_of(project, environ, state_of(project, environ))
