"""Where the parts are joined, and the faces that Python users hold."""

from luthier.runtime.client import Client
from luthier.runtime.library import Library
from luthier.runtime.manager import MCPConnectionManager, ResolvedTools
from luthier.runtime.registries import (
    InMemoryMCPServerRegistry,
    MCPServerConfig,
    MCPServerEntry,
    SQLMCPServerRegistry,
)
from luthier.runtime.runtime import Runtime
from luthier.runtime.sandbox_config import FilesystemMount, SandboxConfig
from luthier.runtime.toolset import BoundTool, Dropped, Listing, ToolSet

__all__ = [
    "BoundTool",
    "Client",
    "Dropped",
    "FilesystemMount",
    "InMemoryMCPServerRegistry",
    "Library",
    "Listing",
    "MCPConnectionManager",
    "MCPServerConfig",
    "MCPServerEntry",
    "ResolvedTools",
    "Runtime",
    "SQLMCPServerRegistry",
    "SandboxConfig",
    "ToolSet",
]
