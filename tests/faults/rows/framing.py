"""Rows about bytes: what may stand on a server's stdout and stderr, and how messages may be written."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from luthier.errors import ConnectionLostError, MessageTooLargeError
from tests.faults.rows.table import row

if TYPE_CHECKING:
    from tests.faults.bench import House

TAIL = 8 * 1024


@row("1", "banner")
async def a_banner_before_the_first_message_is_passed_over(house: House) -> None:
    assert (await house.call("echo", a=1)).content == {"a": 1}
    assert any("Starting faulty" in noise for noise in house.watcher.noise)


@row("1", "stdout_noise_in_call")
async def log_lines_among_messages_are_passed_over_and_told_of_without_a_flood(house: House) -> None:
    assert (await house.call("act")).content == "done"
    assert 1 <= len(house.watcher.noise) <= 60  # of 600 lines


@row("2", "bom")
async def a_byte_order_mark_is_stripped_from_lines_and_kept_in_strings(house: House) -> None:
    assert (await house.call("act")).content == "\ufeffkept"


@row("3", "crlf")
async def carriage_returns_are_taken_and_never_sent(house: House) -> None:
    assert (await house.call("echo", text="a\r\nb")).content == {"text": "a\r\nb"}
    assert all(line["clean"] for line in house.journal.lines() if "heard" in line)


@row("3", "blank_lines")
async def empty_lines_are_nothing(house: House) -> None:
    assert (await house.call("echo", a=1)).content == {"a": 1}
    assert house.watcher.noise == []


@row("5", "foreign_locale", fields={"env": {"PYTHONIOENCODING": "cp1252", "LC_ALL": "C"}})
async def text_is_utf8_both_ways_whatever_the_locale(house: House) -> None:
    said = "naïve ☃ 🎻"
    assert (await house.call("act", said=said)).content == {"said": said, "hex": said.encode().hex()}


@row("6", "u2028")
async def only_a_newline_ends_a_line(house: House) -> None:
    assert (await house.call("act")).content == "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\x1dh\x1ei"
    assert house.watcher.noise == []


@row("7", "stderr_flood")
async def a_megabyte_on_stderr_holds_up_nothing(house: House) -> None:
    assert (await house.call("act")).content == "answered"


@row("7", "stderr_flood", survives=False)
async def the_tail_of_a_flooded_stderr_is_bounded_and_ends_with_the_last_words(house: House) -> None:
    with pytest.raises(ConnectionLostError) as raised:
        await house.call("die")
    assert raised.value.exit_status == 7
    assert raised.value.stderr_tail.rstrip().endswith("the last words")
    assert len(raised.value.stderr_tail.encode()) <= TAIL


@row("0.5", "pretty")
async def a_message_over_several_lines_is_put_together(house: House) -> None:
    assert (await house.call("act")).content == "spread out"


@row("0.5", "lone_surrogate")
async def half_an_emoji_costs_that_half_only(house: House) -> None:
    reply = await house.call("act")
    assert reply.content == "half \ufffd"
    assert reply.notes


@row("0.6", "bad_utf8_line")
async def a_line_in_another_encoding_costs_that_line_only(house: House) -> None:
    assert (await house.call("act")).content == "done"


@row("0.6", "bad_utf8_reply")
async def a_reply_with_a_byte_that_is_not_utf8_keeps_the_rest(house: House) -> None:
    reply = await house.call("act")
    assert reply.content == "caf\ufffd!"
    assert reply.notes


@row("w1", "batch", eras=("legacy",))
async def messages_in_an_array_are_taken_one_by_one(house: House) -> None:
    assert (await house.call("echo", a=1)).content == {"a": 1}


@row("w2", "oversized", fields={"max_message_bytes": 1024 * 1024})
async def a_message_over_the_limit_fails_its_own_call_at_once(house: House) -> None:
    small = asyncio.create_task(house.call("act", size=1000))
    with pytest.raises(MessageTooLargeError) as raised:
        await house.call("act", size=3 * 1024 * 1024)
    assert "max_message_bytes" in str(raised.value)
    assert len((await small).content) == 1000
