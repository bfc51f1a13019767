"""Where the parts are joined, and the faces that Python users hold."""

from luthier.runtime.client import Client
from luthier.runtime.library import Library
from luthier.runtime.registries import (
    InMemoryMCPServerRegistry,
    MCPServerConfig,
    MCPServerEntry,
    SQLMCPServerRegistry,
)
from luthier.runtime.runtime import Runtime
from luthier.runtime.toolset import BoundTool, Dropped, Listing, ToolSet

__all__ = [
    "BoundTool",
    "Client",
    "Dropped",
    "InMemoryMCPServerRegistry",
    "Library",
    "Listing",
    "MCPServerConfig",
    "MCPServerEntry",
    "Runtime",
    "SQLMCPServerRegistry",
    "ToolSet",
]
