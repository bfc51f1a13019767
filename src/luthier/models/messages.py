"""What a model is asked in one turn, and what it answers. Plain text: no label is ever among it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Role = Literal["user", "assistant"]
Stop = Literal["end", "length", "filter", "other"]
"""Why an answer ended: by itself, at `max_tokens`, by the provider's filter, or otherwise."""


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation."""

    role: Role
    content: str


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One question. None and empty leave a setting to the provider; a temperature of 0 is 0.

    `schema`: the answer is to be a JSON value that fits it, of whatever type.
    """

    model: str
    messages: tuple[Message, ...]
    system: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    schema: dict[str, Any] | None = None


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens as the provider counted them; those of a cache are among the input ones."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def plus(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
        )


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back. `value` is what a turn with a schema asked for, UNSET where the text is no JSON."""

    text: str
    model: str
    value: Any = msgspec.UNSET
    usage: Usage = Usage()
    stop: Stop = "end"
    request_id: str = ""
