"""Where the parts are joined, and the faces that Python users hold."""

from luthier.runtime.library import Library
from luthier.runtime.runtime import Runtime
from luthier.runtime.toolset import BoundTool, Dropped, Listing, ToolSet

__all__ = ["BoundTool", "Dropped", "Library", "Listing", "Runtime", "ToolSet"]
