"""The keys of an issuer: changed, withdrawn, out of reach, and not asked for as often as a stranger likes."""

from __future__ import annotations

from typing import Any

import pytest

from luthier.serve.caller import Caller, Refusal
from luthier.serve.jwks import FRESH, PAUSE, STALE
from luthier.testing import FakeClock
from tests.serve.issuer import LoopbackIssuer, Pair, issuing
from tests.serve.test_bearing import ADA, bearing, pair


def looks(issuer: LoopbackIssuer) -> int:
    return issuer.asked.count("/keys")


async def test_a_new_key_is_found_when_its_first_token_comes() -> None:
    clock = FakeClock()
    async with issuing(pair("k1")) as issuer, bearing(issuer, clock) as door:
        assert await door.caller(issuer.token(pair("k1"))) == ADA
        issuer.keys = [pair("k2").public]
        await clock.advance(PAUSE)
        assert await door.caller(issuer.token(pair("k2"))) == ADA
        assert isinstance(await door.caller(issuer.token(pair("k1"))), Refusal)
        assert looks(issuer) == 2


async def test_names_that_are_made_up_lead_to_one_look_in_a_while() -> None:
    clock = FakeClock()
    async with issuing(pair("k1")) as issuer, bearing(issuer, clock) as door:
        for number in range(20):
            await door.caller(issuer.token(pair("k1"), {"kid": f"made up {number}"}))
        assert looks(issuer) == 1
        await clock.advance(PAUSE)
        await door.caller(issuer.token(pair("k1"), {"kid": "made up"}))
        assert looks(issuer) == 2
        assert await door.caller(issuer.token(pair("k1"))) == ADA


async def test_a_key_that_is_withdrawn_counts_until_the_next_look() -> None:
    clock = FakeClock()
    async with issuing(pair("k1"), pair("k2")) as issuer, bearing(issuer, clock) as door:
        token = issuer.token(pair("k1"))
        assert await door.caller(token) == ADA
        issuer.keys = [pair("k2").public]
        assert await door.caller(token) == ADA
        await clock.advance(FRESH + 1)
        assert isinstance(await door.caller(token), Refusal)


async def test_while_the_issuer_is_out_of_reach_its_keys_count_for_a_while_and_then_nobody_comes_in() -> None:
    clock = FakeClock()
    async with issuing(pair("k1")) as issuer, bearing(issuer, clock) as door:
        token = issuer.token(pair("k1"))
        assert await door.caller(token) == ADA
        issuer.status = 503
        await clock.advance(STALE - 1)
        assert await door.caller(token) == ADA
        await clock.advance(2)
        found = await door.caller(token)
        assert isinstance(found, Refusal)
        assert (found.status, found.message) == (503, "Tokens cannot be checked now")
        issuer.status = 200
        await clock.advance(PAUSE)
        assert await door.caller(token) == ADA


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"issuer": "https://evil.example.com"}, "another issuer"),
        ({"jwks_uri": None}, "no metadata that names its keys"),
        ({"jwks_uri": "http://169.254.169.254/keys"}, "refused"),
        ({"jwks_uri": "http://localhost:1/keys"}, "refused"),
        ({"jwks_uri": "file:///etc/passwd"}, "refused"),
    ],
)
async def test_what_an_issuer_says_of_itself_leads_nowhere_else(
    metadata: dict[str, Any], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with issuing(pair("k1")) as issuer, bearing(issuer) as door:
        issuer.metadata = metadata
        found = await door.caller(issuer.token(pair("k1")))
    assert isinstance(found, Refusal)
    assert found.status == 503
    assert why in caplog.text


async def test_in_production_an_issuer_on_this_machine_is_not_asked() -> None:
    async with issuing(pair("k1")) as issuer, bearing(issuer, environment="production") as door:
        found = await door.caller(issuer.token(pair("k1")))
        assert isinstance(found, Refusal)
        assert (found.status, issuer.asked) == (503, [])


async def test_the_keys_may_be_named_in_the_project() -> None:
    async with issuing(pair("k1")) as issuer, bearing(issuer, jwks_url=f"{issuer.url}/keys") as door:
        assert await door.caller(issuer.token(pair("k1"))) == ADA
        assert issuer.asked == ["/keys"]


async def test_a_key_without_a_name_fits_tokens_without_one() -> None:
    nameless = Pair(None)
    async with issuing(nameless) as issuer, bearing(issuer) as door:
        assert isinstance(await door.caller(issuer.token(nameless)), Caller)
        assert isinstance(await door.caller(issuer.token(pair("k1"))), Refusal)
