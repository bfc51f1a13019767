"""Type hints as pydantic can read them: before Python 3.12 it refuses the TypedDict of `typing`."""

from __future__ import annotations

from functools import reduce
from operator import or_
from types import GenericAlias, UnionType
from typing import Annotated, Any, TypedDict, get_args, get_origin, get_type_hints, is_typeddict


class _Empty(TypedDict):
    pass


# pydantic goes by the module that the metaclass comes from. What it misses in typing's own, `Required` within
# annotations that are strings, has been resolved here.
_TypedDict = type("_TypedDict", (type(_Empty),), {"__module__": __name__})


def readable(hint: Any) -> Any:
    """The hint with every TypedDict of `typing` in it replaced by one that pydantic accepts."""
    return _readable(hint, {})


def _readable(hint: Any, known: dict[Any, Any]) -> Any:
    if is_typeddict(hint):
        return _typed_dict(hint, known)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        inner, *notes = arguments
        read = _readable(inner, known)
        return hint if read is inner else Annotated[(read, *notes)]
    changed = tuple(_readable(argument, known) for argument in arguments)
    if all(new is old for new, old in zip(changed, arguments, strict=True)):
        return hint
    if isinstance(hint, UnionType):
        return reduce(or_, changed)
    return GenericAlias(origin, changed) if isinstance(hint, GenericAlias) else hint.copy_with(changed)


def _typed_dict(hint: Any, known: dict[Any, Any]) -> Any:
    if hint not in known:
        # Members of its bases are its own already, so it has no other.
        namespace = hint.__dict__ | {"__orig_bases__": (TypedDict,)}
        made: Any = type.__new__(_TypedDict, hint.__name__, (dict,), namespace)
        known[hint] = made  # before its members are read: they may lead back to it
        hints = get_type_hints(hint, include_extras=True)
        made.__annotations__ = {key: _readable(value, known) for key, value in hints.items()}
    return known[hint]
