"""Values that agents and steps keep under a key, with their labels, and the tool by which a model writes."""

from luthier.memory.memory import Memory
from luthier.memory.tool import save_to_memory_tool

__all__ = ["Memory", "save_to_memory_tool"]
