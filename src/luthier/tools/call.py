"""An intended call: which tool, with which labelled arguments, on whose behalf."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from luthier.caller import NOBODY, Caller
from luthier.context import CallContext
from luthier.secrets import Secret
from luthier.taint import Labelled
from luthier.uri import ToolUri
from luthier.web import UrlRules


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """`arguments` keep a label for each leaf. `timeout` is seconds; None leaves it to the server's entry.

    `headers` go along with this call alone, over HTTP, and are written down nowhere. `web` says where a call
    of `builtin://http` may lead: it comes from what the project spells out, never from the arguments.
    `forms` is what goes along because the server has asked for something to be filled in, nothing at first;
    None: nobody could.
    `list_age`: how old its server's list of tools may be, in seconds, whatever the entry says.
    `caller` is put in where a tool of this process is called for a client that can be told and asked.
    `passed` is awaited when the gate has let the call pass, before anything of it is sent.
    """

    id: str
    uri: ToolUri
    arguments: Labelled[dict[str, Any]]
    context: CallContext = CallContext()
    timeout: float | None = None
    headers: dict[str, Secret] | None = None
    web: UrlRules = UrlRules()
    forms: dict[str, Any] | None = None
    list_age: float | None = None
    caller: Caller = NOBODY
    passed: Callable[[], Awaitable[None]] | None = None
