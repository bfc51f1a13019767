"""The OpenAPI document of the API, made of the table of endpoints and of the models that read requests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from luthier._version import __version__
from luthier.serve.api.endpoints import EVENTS, JSON
from luthier.serve.api.shapes import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from luthier.serve.api.endpoints import Endpoint

_REFERENCE = "#/components/schemas/{name}"
_PARAMETER = re.compile(r"\{(\w+)\}")
_WORDS = {
    200: "Done.",
    202: "Begun; `Location` says where to look.",
    400: "It cannot be read, or does not fit. Nothing was started.",
    401: "No token, or none that is good.",
    403: "Not for this caller.",
    404: "Not there, or not for this caller.",
    409: "It has been decided, or has ended, already.",
    410: "The token is not good, or not any more.",
    413: "The body is over the limit.",
    415: "The body is not JSON.",
    429: "So many runs go on that no more is begun.",
    503: "Tokens cannot be checked now, or the store cannot be reached.",
}


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """The whole of it, as OpenAPI 3.1 has it."""
    listed = tuple(endpoints)
    models = {model for one in listed for model in (one.body, *one.answers.values()) if model} | {Problem}
    ordered = sorted(models, key=lambda model: str(model.__name__))
    _, schemas = msgspec.json.schema_components(ordered, ref_template=_REFERENCE)
    paths: dict[str, dict[str, Any]] = {}
    for one in listed:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Luthier",
            "version": __version__,
            "description": "Ensembles, their runs, and what waits for a person.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}],
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    statuses = dict(endpoint.answers)
    if not endpoint.public:
        statuses |= {401: Problem, 403: Problem}
    statuses |= {503: Problem}
    operation: dict[str, Any] = {
        "operationId": endpoint.work,
        "summary": endpoint.summary,
        "responses": {str(status): _response(status, statuses[status]) for status in sorted(statuses)},
    }
    if endpoint.streams:
        found = operation["responses"].setdefault("200", {"description": _WORDS[200], "content": {}})
        found["content"][EVENTS] = {"schema": {"type": "string"}}
    if endpoint.public:
        operation["security"] = []
    if parameters := [*_path_parameters(endpoint), *_query_parameters(endpoint)]:
        operation["parameters"] = parameters
    if endpoint.body is not None:
        required = bool(msgspec.json.schema(endpoint.body)["$defs"][endpoint.body.__name__].get("required"))
        schema = {"$ref": _REFERENCE.format(name=endpoint.body.__name__)}
        operation["requestBody"] = {"required": required, "content": {JSON: {"schema": schema}}}
    return operation


def _response(status: int, model: Any) -> dict[str, Any]:
    schema = {"$ref": _REFERENCE.format(name=model.__name__)}
    return {"description": _WORDS[status], "content": {JSON: {"schema": schema}}}


def _path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    text = {"type": "string", "minLength": 1}
    return [
        {"name": name, "in": "path", "required": True, "schema": text}
        for name in _PARAMETER.findall(endpoint.path)
    ]


def _query_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    if endpoint.query is None:
        return []
    whole = msgspec.json.schema(endpoint.query)
    properties = whole["$defs"][endpoint.query.__name__]["properties"]
    return [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in properties.items()
    ]
