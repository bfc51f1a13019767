"""Blocks of outputs: labels, the record, and what Python and JSON show of a response."""

from __future__ import annotations

from luthier.taint import SECRET, TRUSTED, UNTRUSTED, Labelled, merge
from luthier.workflows import Run, decode, encode_all
from tests.workflows.house import House

TEXT = """
ensemble: t
inputs: {bad: 1, fine: 2}
agents: [{name: a, operation: transform, config: {value: 1}}]
outputs:
  - {when: '${input.bad == 5}', body: '${input.fine}'}
  - {status: 201, headers: {X-A: '${input.fine}'}, body: '${input.fine}'}
  - {body: '${input.bad}'}
"""


async def run(text: str = TEXT, **labels: Labelled[int]) -> Run:
    return await House().run(text, merge(labels))


async def test_which_block_applies_marks_the_response() -> None:
    found = await run(bad=Labelled(1, UNTRUSTED), fine=Labelled(2))
    assert (found.labelled.label, found.response.label, found.label) == (UNTRUSTED,) * 3


async def test_a_block_that_was_not_reached_does_not() -> None:
    found = await run(
        TEXT.replace("when: '${input.bad == 5}'", "when: '${input.fine == 5}'"), bad=Labelled(1, UNTRUSTED)
    )
    assert found.label == TRUSTED


async def test_headers_carry_their_labels_too() -> None:
    found = await run(
        TEXT.replace("body: '${input.fine}'}\n  - {body", "body: 1}\n  - {body"), fine=Labelled(2, UNTRUSTED)
    )
    assert found.labelled.label == TRUSTED
    assert found.response.label == found.label == UNTRUSTED


async def test_status_and_headers_are_shown_and_kept() -> None:
    found = await run()
    assert found.to_json()["status"] == found.status == 201
    assert found.to_json()["headers"] == found.headers == {"X-A": "2"}
    assert decode(encode_all(found.record)) == found.record


async def test_a_secret_header_is_not_kept() -> None:
    found = await run(fine=Labelled(4711, SECRET))
    assert b"4711" not in encode_all(found.record)


async def test_without_blocks_there_is_no_response() -> None:
    found = await run(TEXT[: TEXT.index("outputs:")])
    assert (found.status, found.headers) == (200, {})
    assert "status" not in found.to_json()


async def test_a_run_that_failed_is_an_error_to_the_web() -> None:
    found = await run(TEXT.replace("input.fine == 5", "1").replace("'${input.bad == 5}'", "'${1}'"))
    assert not found.success
    assert (found.status, found.headers) == (500, {})
