"""Locks of triggers: passwords, and signatures over the body in the forms that senders have."""

from __future__ import annotations

import base64
import hmac
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.serve.caller import Caller, Proof, Refusal
from luthier.serve.locks import ANONYMOUS, Basic, Open, Signature
from luthier.testing import FakeClock

HOOK = Caller(id="trigger/hook")
KEY, OLD = "k" * 20, "o" * 20
BODY = b'{"a": 1}'
NOW = 1_000_000_000


async def read() -> bytes:
    return BODY


def basic(text: str) -> list[tuple[bytes, bytes]]:
    return [(b"Authorization", b"Basic " + base64.b64encode(text.encode()))]


@pytest.mark.parametrize(
    ("headers", "ok"),
    [
        (basic("ada:lovelace"), True),
        (basic("old:password"), True),
        (basic("ada:"), False),
        ([], False),
        ([(b"authorization", b"Basic !")], False),
        ([(b"authorization", b"Basic YWRhOmxvdmVsYWNl\xff")], False),
        ([(b"authorization", b"Bearer YWRhOmxvdmVsYWNl")], False),
        (basic("ada:lovelace") * 2, False),
    ],
)
async def test_a_password(headers: list[tuple[bytes, bytes]], *, ok: bool) -> None:
    found = await Basic(("ada:lovelace", "old:password"), HOOK).admit(headers, read)
    assert found == HOOK if ok else isinstance(found, Refusal) and found.status == 401


def digits(message: bytes, key: str = KEY) -> str:
    return hmac.new(key.encode(), message, sha256).hexdigest()


def lock(preset: str = "default") -> Signature:
    secrets = (KEY, OLD)
    return Signature(secrets, HOOK, FakeClock(), preset=preset, tolerance=300)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("preset", "headers"),
    [
        (
            "default",
            {"X-Webhook-Signature": digits(b"1000000000." + BODY), "X-Webhook-Timestamp": str(NOW)},
        ),
        (
            "default",
            {
                "X-Webhook-Signature": f"sha256={digits(b'999999700.' + BODY, OLD)}",
                "X-Webhook-Timestamp": str(NOW - 300),
            },
        ),
        ("github", {"X-Hub-Signature-256": f"sha256={digits(BODY)}"}),
        (
            "slack",
            {
                "X-Slack-Signature": f"v0={digits(b'v0:1000000000:' + BODY)}",
                "X-Slack-Request-Timestamp": str(NOW),
            },
        ),
    ],
)
async def test_a_signature_of_a_sender_opens(preset: str, headers: dict[str, str]) -> None:
    sent = [(name.encode(), value.encode()) for name, value in headers.items()]
    found = await lock(preset).admit(sent, read)
    assert isinstance(found, Caller)
    assert (found.id, found.proof is None) == (HOOK.id, preset == "github")


async def proof(key: str = KEY, at: int = NOW, scope: str = "", prefix: str = "") -> Proof:
    opened = Signature((KEY, OLD), HOOK, FakeClock(), preset="default", tolerance=300, scope=scope)
    made = f"{prefix}{digits(f'{at}.'.encode() + BODY, key)}"
    sent = [(b"x-webhook-signature", made.encode()), (b"x-webhook-timestamp", str(at).encode())]
    found = await opened.admit(sent, read)
    assert isinstance(found, Caller)
    assert found.proof is not None
    return found.proof


async def test_a_signature_with_a_time_is_known_again_however_it_is_written() -> None:
    first = await proof()
    assert first.until == NOW + 300
    assert await proof(prefix="sha256=") == first
    others = [await proof(key=OLD), await proof(at=NOW - 1), await proof(scope="other /path")]
    assert len({one.key for one in (first, *others)}) == 4
    assert digits(f"{NOW}.".encode() + BODY) not in first.key


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-webhook-signature": digits(b"1000000000." + BODY)},
        {"x-webhook-timestamp": str(NOW)},
        {"x-webhook-signature": "", "x-webhook-timestamp": str(NOW)},
        {"x-webhook-signature": digits(b"999999699." + BODY), "x-webhook-timestamp": str(NOW - 301)},
        {"x-webhook-signature": digits(b"1000000301." + BODY), "x-webhook-timestamp": str(NOW + 301)},
        {"x-webhook-signature": digits(b"1000000000." + BODY), "x-webhook-timestamp": str(NOW + 1)},
        {"x-webhook-signature": digits(b"soon." + BODY), "x-webhook-timestamp": "soon"},
        {"x-webhook-signature": digits(b"1000000000." + BODY, "x" * 20), "x-webhook-timestamp": str(NOW)},
        {"x-webhook-signature": digits(BODY), "x-webhook-timestamp": str(NOW)},
        {"x-hub-signature-256": f"sha256={digits(BODY)}"},
    ],
)
async def test_no_other_signature_does(headers: dict[str, str]) -> None:
    found = await lock().admit([(name.encode(), value.encode()) for name, value in headers.items()], read)
    assert isinstance(found, Refusal)
    assert found.status == 401


@given(st.integers(0, 8 * len(BODY) - 1))
async def test_no_bit_of_a_body_can_be_turned(bit: int) -> None:
    turned = bytearray(BODY)
    turned[bit // 8] ^= 1 << bit % 8

    async def other() -> bytes:
        return bytes(turned)

    sent = [(b"x-hub-signature-256", f"sha256={digits(BODY)}".encode())]
    assert isinstance(await lock("github").admit(sent, other), Refusal)


async def test_where_there_is_no_lock_everybody_is_nobody() -> None:
    assert await Open().admit([], read) == ANONYMOUS
