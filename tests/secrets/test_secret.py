"""A secret is told only to who asks for it."""

from __future__ import annotations

import copy
import json
import logging
import pickle

import msgspec
import pytest

from luthier.secrets import Secret

CANARY = "s3cr3t-canary"


def test_it_is_revealed_to_who_asks() -> None:
    assert Secret(CANARY).reveal() == CANARY


def test_nothing_that_prints_shows_it(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret(CANARY)
    logging.getLogger("luthier").warning("it is %s, %r", secret, [secret])
    shown = f"{secret} {secret!r} {[secret]} {caplog.text} {vars(type(secret))}"
    assert CANARY not in shown


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_is_not_pickled(protocol: int) -> None:
    with pytest.raises(TypeError, match="not pickled") as raised:
        pickle.dumps({"token": Secret(CANARY)}, protocol)
    assert CANARY not in str(raised.value)


@pytest.mark.parametrize("encode", [json.dumps, msgspec.json.encode, msgspec.to_builtins])
def test_it_is_not_encoded(encode: object) -> None:
    assert callable(encode)
    with pytest.raises(TypeError) as raised:
        encode({"token": Secret(CANARY)})
    assert CANARY not in str(raised.value)


def test_a_copy_is_the_same_secret() -> None:
    secret = Secret(CANARY)
    assert copy.copy(secret) is secret
    assert copy.deepcopy([secret])[0] is secret


def test_it_is_equal_to_a_secret_of_the_same_text_only() -> None:
    assert Secret(CANARY) == Secret(CANARY)
    assert hash(Secret(CANARY)) == hash(Secret(CANARY))
    assert Secret(CANARY) != Secret("other")
    assert Secret("ü\ud800") == Secret("ü\ud800")
    assert Secret(CANARY) != CANARY


def test_an_empty_one_is_false() -> None:
    assert not Secret("")
    assert Secret(" ")
