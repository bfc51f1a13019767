"""The OpenAPI document: sound by the judgement of others, and true to the table that it is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openapi_spec_validator import OpenAPIV31SpecValidator

from luthier.serve.api.endpoints import ENDPOINTS
from luthier.serve.api.openapi import document
from tests.serve.test_http import asked, served

if TYPE_CHECKING:
    from pathlib import Path


def test_the_document_is_what_openapi_says_it_must_be() -> None:
    OpenAPIV31SpecValidator(document(ENDPOINTS)).validate()


def test_every_endpoint_is_in_it_and_asks_for_a_token_unless_it_is_public() -> None:
    told = document(ENDPOINTS)
    assert told["security"] == [{"bearer": []}]
    for one in ENDPOINTS:
        operation = told["paths"][one.path][one.method.lower()]
        assert operation.get("security", told["security"]) == ([] if one.public else [{"bearer": []}])
        assert ("401" in operation["responses"]) is not one.public


async def test_it_is_served_to_clients(tmp_path: Path) -> None:
    async with served(tmp_path) as url:
        status, body, _ = await asked(f"{url}/openapi.json")
        assert (await asked(f"{url}/openapi.json", token=None))[0] == 401
    assert (status, body) == (200, document(ENDPOINTS))
