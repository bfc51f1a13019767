"""What stops a request, as it is told: never more than its caller may know."""

from __future__ import annotations

import msgspec
import pytest

from luthier.errors import AuditError, Fault, InputError, NotFoundError, Refused, StoreError
from luthier.serve.api.asking import Rejected, fault_of
from luthier.serve.board import TooManyError

SAID = "what nobody outside is told"
PLACES = {"rule": "r", "place": "p", "hint": "h"}


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (Rejected(409, "Conflict", "it has ended"), 409, "it has ended"),
        (TooManyError(), 429, "Too many runs go on."),
        (InputError([Fault("the input `a` is missing"), Fault("b")]), 400, "the input `a` is missing\nb"),
        (NotFoundError("run", "x", hint=SAID), 404, "There is no run 'x'."),
        (Refused("denied", "not today", **PLACES), 403, "not today"),
        (StoreError(SAID), 503, "It cannot be done now."),
        (AuditError(SAID), 503, "It cannot be done now."),
        (TimeoutError(SAID), 503, "It cannot be done now."),
        (RecursionError(SAID), 500, "The request could not be done."),
    ],
)
def test_each_error_has_its_status_and_its_words(
    error: Exception, status: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = fault_of(error, "run")
    assert found.status_code == status
    assert msgspec.json.decode(found.body)["message"] == words
    assert SAID.encode() not in bytes(found.body)
    assert (SAID in caplog.text) is (status >= 500)
