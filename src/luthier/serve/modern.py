"""Calls since 2026-07-28, each a request by itself: whether the SDK finds fault with one, by its rules."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.datastructures import Headers

VERSION = "2026-07-28"

SCHEMA: ContextVar[Mapping[str, Any] | None] = ContextVar("luthier.serve.schema", default=None)
"""The input schema of the tool that a request is about; the SDK holds its headers against it."""


def schema_of(_: str) -> Mapping[str, Any] | None:
    """What the SDK asks for in the midst of a request."""
    return SCHEMA.get()


def is_usual(params: Mapping[str, Any], headers: Headers) -> bool:
    """Whether headers, envelope and parameters of a call are as they must be."""
    from mcp.shared.inbound import (
        InboundModernRoute,
        classify_inbound_request,
        find_duplicated_routing_header,
    )
    from mcp_types.methods import validate_client_request

    if find_duplicated_routing_header(headers.items()) is not None:
        return False
    found = classify_inbound_request({"method": "tools/call", "params": params}, headers=dict(headers))
    if not isinstance(found, InboundModernRoute):
        return False
    try:
        validate_client_request("tools/call", VERSION, params)
    except ValueError:
        return False
    return True


def agrees(schema: Mapping[str, Any] | None, arguments: Mapping[str, Any], headers: Headers) -> bool:
    """Whether the headers say of the arguments what the schema has them say (`x-mcp-header`)."""
    from mcp.shared.inbound import validate_mcp_param_headers

    return schema is None or validate_mcp_param_headers(schema, arguments, headers) is None
