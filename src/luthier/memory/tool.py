"""`builtin://save_to_memory`: a model keeps a value under a key, labelled as what it was made from."""

from __future__ import annotations

from luthier.memory.memory import Memory
from luthier.tools.builtin import Builtin


def save_to_memory_tool(memory: Memory) -> Builtin:
    """The tool that writes to this memory."""
    raise NotImplementedError
