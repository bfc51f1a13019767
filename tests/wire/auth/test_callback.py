"""The page that a browser comes back to: only the right state ends the waiting."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from luthier.wire.auth.callback import Callback, Returned

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from luthier.clock import FakeClock


@pytest.fixture
async def callback(clock: FakeClock) -> AsyncIterator[Callback]:
    async with Callback(clock) as found:
        yield found


async def ask(callback: Callback, target: str, *, method: str = "GET", host: str | None = None) -> str:
    """The status line and body that come back."""
    place = urlsplit(callback.address)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(f"{method} {target} HTTP/1.1\r\nHost: {host or place.netloc}\r\n\r\n".encode())
    answer = (await asyncio.wait_for(reader.read(), 10)).decode()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_the_code_is_handed_on_with_the_issuer(callback: Callback) -> None:
    callback.expect("right")
    waiting = asyncio.ensure_future(callback.wait(300))
    answer = await ask(callback, "/callback?code=canary&state=right&iss=https%3A%2F%2Fauth.example")
    assert "200 OK" in answer
    assert "no-store" in answer
    assert "canary" not in answer
    returned = await waiting
    assert returned == Returned("canary", "https://auth.example")
    assert "canary" not in repr(returned)


async def test_an_error_is_handed_on(callback: Callback) -> None:
    callback.expect("right")
    waiting = asyncio.ensure_future(callback.wait(300))
    await ask(callback, "/callback?error=access_denied&state=right")
    assert await waiting == Returned(error="access_denied")


@pytest.mark.parametrize(
    ("target", "method", "host", "status"),
    [
        ("/callback?code=x&state=wrong", "GET", None, "400"),
        ("/callback?code=x", "GET", None, "400"),
        ("/callback?code=x&state=%C3%BC", "GET", None, "400"),
        ("/favicon.ico", "GET", None, "404"),
        ("/callback?code=x&state=right", "POST", None, "404"),
        ("/callback?code=x&state=right", "GET", "evil.example", "404"),
        ("/callback?code=x&state=right", "GET", "127.0.0.1", "404"),
    ],
)
async def test_whatever_else_comes_is_turned_away_and_ends_nothing(
    target: str, method: str, host: str | None, status: str, callback: Callback
) -> None:
    callback.expect("right")
    waiting = asyncio.ensure_future(callback.wait(300))
    assert f"HTTP/1.1 {status}" in await ask(callback, target, method=method, host=host)
    assert not waiting.done()
    await ask(callback, "/callback?code=good&state=right")
    assert (await waiting).code == "good"


async def test_nobody_is_let_in_before_a_login_has_begun(callback: Callback) -> None:
    assert "400" in await ask(callback, "/callback?code=x&state=")


async def test_a_browser_may_be_back_before_it_is_waited_for(callback: Callback) -> None:
    callback.expect("right")
    await ask(callback, "/callback?code=quick&state=right")
    assert (await callback.wait(300)).code == "quick"


async def test_the_first_answer_counts(callback: Callback) -> None:
    callback.expect("right")
    waiting = asyncio.ensure_future(callback.wait(300))
    await ask(callback, "/callback?code=first&state=right")
    await ask(callback, "/callback?code=second&state=right")
    assert (await waiting).code == "first"


async def test_the_waiting_is_bounded(callback: Callback, clock: FakeClock) -> None:
    waiting = asyncio.ensure_future(callback.wait(300))
    await clock.advance(300)
    with pytest.raises(TimeoutError):
        await waiting


async def test_a_browser_that_says_nothing_is_hung_up_on(callback: Callback, clock: FakeClock) -> None:
    place = urlsplit(callback.address)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(b"GET /call")
    async with asyncio.timeout(10):
        while not clock.waiting:  # noqa: ASYNC110  (the accept is the kernel's)
            await asyncio.sleep(0)
    await clock.advance(10)
    assert await asyncio.wait_for(reader.read(), 10) == b""
    writer.close()
    await writer.wait_closed()


async def test_too_much_of_a_request_is_not_read(callback: Callback) -> None:
    place = urlsplit(callback.address)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(b"GET /callback?" + b"x" * 40_000)
    answer = b""
    with contextlib.suppress(ConnectionResetError):
        answer = await asyncio.wait_for(reader.read(), 10)
    assert answer == b""
    writer.close()


async def test_a_port_that_is_taken_is_replaced_by_a_free_one(callback: Callback, clock: FakeClock) -> None:
    taken = urlsplit(callback.address).port
    assert taken
    async with Callback(clock, port=taken) as other:
        assert urlsplit(other.address).port not in (taken, 0)


async def test_it_listens_on_this_machine_only(callback: Callback) -> None:
    assert urlsplit(callback.address).hostname == "127.0.0.1"


async def test_who_is_still_connected_is_hung_up_on_at_the_end(clock: FakeClock) -> None:
    async with Callback(clock) as callback:
        place = urlsplit(callback.address)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        async with asyncio.timeout(10):
            while not clock.waiting:  # noqa: ASYNC110  (the accept is the kernel's)
                await asyncio.sleep(0)
    assert await asyncio.wait_for(reader.read(), 10) == b""
    writer.close()
    await writer.wait_closed()


async def test_waiting_before_listening_is_a_mistake(clock: FakeClock) -> None:
    with pytest.raises(RuntimeError, match="does not listen"):
        await Callback(clock).wait(1)
