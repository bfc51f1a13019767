"""Revisions and their eras."""

from __future__ import annotations

import pytest

from luthier.wire import HANDSHAKE_VERSIONS, KNOWN_VERSIONS, LATEST_HANDSHAKE, LATEST_MODERN, Era


def test_the_latest_revision_is_modern_and_those_before_it_begin_with_a_handshake() -> None:
    assert [version for version in KNOWN_VERSIONS if Era(version).modern] == [LATEST_MODERN]
    assert HANDSHAKE_VERSIONS[-1] == LATEST_HANDSHAKE


@pytest.mark.parametrize("version", ["zzz", "2999-01-01", ""])
def test_an_unknown_revision_is_not_modern_however_it_compares(version: str) -> None:
    assert not Era(version).modern
