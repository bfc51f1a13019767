"""The face of the package: every name it lists is there, and nothing else is."""

from __future__ import annotations

import pytest

import luthier


def test_every_name_of_the_face_is_there() -> None:
    assert dir(luthier) == luthier.__all__
    assert sorted(luthier.__all__, key=str.lower) == sorted(set(luthier.__all__), key=str.lower)
    for name in luthier.__all__:
        assert getattr(luthier, name) is not None


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        luthier.nothing  # noqa: B018
