"""Calls of Luthier's own tools, made without a gate."""

from __future__ import annotations

from typing import Any

from luthier.context import CallContext
from luthier.taint import TRUSTED, Label, Labelled
from luthier.tools import ToolCall
from luthier.uri import ToolUri


def call_of(
    name: str, arguments: dict[str, Any], *, label: Label = TRUSTED, control: Label = TRUSTED, **more: Any
) -> ToolCall:
    return ToolCall(
        id="c1",
        uri=ToolUri.builtin(name),
        arguments=Labelled(arguments, label),
        context=CallContext(control=control),
        **more,
    )
