"""Luthier looks after the tools that agents and workflows play."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from luthier._version import __version__

if TYPE_CHECKING:
    from luthier.caller import Caller
    from luthier.connect import register_default_mcp_servers
    from luthier.errors import LuthierError, MCPToolError, Refused, SpecError
    from luthier.govern import Answer
    from luthier.runtime import (
        FilesystemMount,
        InMemoryMCPServerRegistry,
        MCPConnectionManager,
        MCPServerConfig,
        MCPServerEntry,
        Runtime,
        SandboxConfig,
        SQLMCPServerRegistry,
    )
    from luthier.taint import Label, Labelled
    from luthier.tools import ToolResult
    from luthier.tools.custom import tool
    from luthier.uri import ToolUri
    from luthier.wire import Handlers
    from luthier.workflows import Run

# Each name comes in with the first use of it, so that importing the package costs next to nothing.
_HOMES = {
    "Answer": "luthier.govern",
    "Caller": "luthier.caller",
    "FilesystemMount": "luthier.runtime",
    "Handlers": "luthier.wire",
    "InMemoryMCPServerRegistry": "luthier.runtime",
    "Label": "luthier.taint",
    "Labelled": "luthier.taint",
    "LuthierError": "luthier.errors",
    "MCPConnectionManager": "luthier.runtime",
    "MCPServerConfig": "luthier.runtime",
    "MCPServerEntry": "luthier.runtime",
    "MCPToolError": "luthier.errors",
    "Refused": "luthier.errors",
    "Run": "luthier.workflows",
    "Runtime": "luthier.runtime",
    "SQLMCPServerRegistry": "luthier.runtime",
    "SandboxConfig": "luthier.runtime",
    "SpecError": "luthier.errors",
    "ToolResult": "luthier.tools",
    "ToolUri": "luthier.uri",
    "register_default_mcp_servers": "luthier.connect",
    "tool": "luthier.tools.custom",
}

__all__ = [
    "Answer",
    "Caller",
    "FilesystemMount",
    "Handlers",
    "InMemoryMCPServerRegistry",
    "Label",
    "Labelled",
    "LuthierError",
    "MCPConnectionManager",
    "MCPServerConfig",
    "MCPServerEntry",
    "MCPToolError",
    "Refused",
    "Run",
    "Runtime",
    "SQLMCPServerRegistry",
    "SandboxConfig",
    "SpecError",
    "ToolResult",
    "ToolUri",
    "__version__",
    "register_default_mcp_servers",
    "tool",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'luthier' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
