"""What check says of `providers:` besides their form: what is not set, and references that are none."""

from __future__ import annotations

from typing import Any

import pytest

from luthier.spec import read_project
from luthier.spec.check_project import check_project


def said(entry: dict[str, Any], **environ: str) -> list[tuple[bool, str]]:
    project = read_project({"providers": {"anthropic": entry}})
    return [(fault.warning, str(fault)) for fault in check_project(project, environ)]


def test_a_provider_whose_key_is_set_or_stored_is_fine() -> None:
    assert said({}, ANTHROPIC_API_KEY="k") == []
    assert said({"api_key": "${secret:anthropic}"}) == []
    assert said({"base_url": "https://models.example.com"}) == []


def test_a_key_that_is_not_set_is_a_warning_that_names_it() -> None:
    ((warning, message),) = said({})
    assert warning
    assert "ANTHROPIC_API_KEY, which is not set: steps that ask `anthropic` will fail" in message


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        ({"api_key": "${a b}"}, "is not a reference"),
        ({"base_url": "${secret:where}"}, "secret references may stand only under `api_key`"),
    ],
)
def test_a_reference_that_cannot_stand_there_is_a_fault(entry: dict[str, Any], word: str) -> None:
    ((warning, message),) = said(entry)
    assert not warning
    assert word in message
