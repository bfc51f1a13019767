"""Luthier's own tools that reach out of a run: requests by HTTP, and values and files that are kept."""

from luthier.outside.files import FilesTool
from luthier.outside.http import HttpTool
from luthier.outside.kv import KvTool

__all__ = ["FilesTool", "HttpTool", "KvTool"]
