"""The HTTP API asked by a stranger who has read its document: all that it allows, and what it does not."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from luthier.serve.api.endpoints import ENDPOINTS
from luthier.serve.api.openapi import document
from tests.serve.api.test_runs import BLOCKS, EVERYBODYS
from tests.serve.house import HIDDEN
from tests.serve.test_http import CI, asked, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from schemathesis import Case

    from luthier.serve.api.endpoints import Endpoint

EXAMPLES = 40
"""For each endpoint; all of them take about half a minute."""


def is_left_out(value: Any) -> bool:
    """Whether nothing of a value of the query is sent, so that it makes no request wrong."""
    return value is None or (isinstance(value, list) and all(map(is_left_out, value)))


@contextmanager
def serving(root: Path) -> Iterator[str]:
    """A house that is served in a thread of its own: who asks waits for each answer."""
    started, stop = threading.Event(), asyncio.Event()
    found: dict[str, Any] = {}

    async def work() -> None:
        found["loop"] = asyncio.get_running_loop()
        clients = {"ci": {"token": "${env.CI}", "roles": ["admin"]}}
        async with served(root, ensembles=[EVERYBODYS, BLOCKS, HIDDEN], serve={"clients": clients}) as url:
            found["url"] = url
            started.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(work(),))
    thread.start()
    try:
        assert started.wait(20)
        yield found["url"]
    finally:
        found["loop"].call_soon_threadsafe(stop.set)
        thread.join()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("house")) as found:
        yield found


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.work)
def test_every_answer_is_one_that_the_document_knows(
    url: str, endpoint: Endpoint, mode: GenerationMode
) -> None:
    schema = schemathesis.openapi.from_dict(document(ENDPOINTS))
    schema.config.update(base_url=url)
    headers = {} if endpoint.public else {"Authorization": f"Bearer {CI}"}
    # A token that was made up is gone, as one that was used is.
    unlike: Any = [positive_data_acceptance] if endpoint.public else []
    cases = schema[endpoint.path][endpoint.method].as_strategy(generation_mode=mode)

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(cases)
    def ask(case: Case[Any]) -> None:
        assume(not any(map(is_left_out, case.query.values())))
        case.call_and_validate(headers=headers, excluded_checks=unlike)

    ask()


@pytest.mark.parametrize("endpoint", [one for one in ENDPOINTS if not one.public], ids=lambda one: one.work)
async def test_without_a_token_nothing_is_answered(tmp_path: Path, endpoint: Endpoint) -> None:
    async with served(tmp_path) as url:
        place = url + endpoint.path.replace("{name}", "greeting").replace("{id}", "x")
        for token in (None, "wrong", CI[:-1]):
            status, body, _ = await asked(place, endpoint.method, token, json={})
            assert (status, body["error"]) == (401, "Unauthorized")
