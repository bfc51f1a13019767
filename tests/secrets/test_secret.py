"""A secret is told only to who asks for it."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import inspect
import io
import json
import logging
import pickle
import pprint
import traceback
from typing import TYPE_CHECKING, Any

import msgspec
import pydantic_core
import pytest
from rich.console import Console
from rich.traceback import Traceback
from ruamel.yaml import YAML

from luthier.redaction import redact
from luthier.secrets import Secret

if TYPE_CHECKING:
    from collections.abc import Callable

CANARY = "s3cr3t-canary"


def test_it_is_revealed_to_who_asks() -> None:
    assert Secret(CANARY).reveal() == CANARY


def _yaml(value: Any) -> str:
    stream = io.StringIO()
    YAML(typ="safe").dump({"token": value}, stream)
    return stream.getvalue()


def _traced(value: Any) -> str:
    """A traceback that shows the values of its frames, as crash reporters do."""
    stream = io.StringIO()
    shown = ""
    try:
        len(value)
    except TypeError as error:
        locals_ = Traceback.from_exception(type(error), error, error.__traceback__, show_locals=True)
        Console(file=stream, width=200).print(locals_)
        shown = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert "_traced" in shown
    return stream.getvalue() + shown


def _members(value: Any) -> str:
    """Whatever hangs on its attributes, unbound and unasked."""
    return repr([(name, member) for name, member in inspect.getmembers(value) if name != "reveal"])


WAYS: dict[str, Callable[[Any], object]] = {
    "str": str,
    "repr": repr,
    "in a list": lambda value: str([value]),
    "as a key": lambda value: repr({value: 1}),
    "f-string": lambda value: f"{value} {value!r} {value!s:>30}",
    "format": lambda value: format(value, ">30"),
    "str.format": "{0} {0!r} {0:*^20}".format,
    "percent": lambda value: "%s %r %a" % (value, value, value),  # noqa: UP031
    "bytes": bytes,
    "vars": vars,
    "members": _members,
    "pprint": pprint.pformat,
    "pickle": pickle.dumps,
    "getstate": lambda value: value.__getstate__(),
    "reduce": lambda value: value.__reduce__(),
    "reduce_ex": lambda value: value.__reduce_ex__(4),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "json": json.dumps,
    "json by repr": lambda value: json.dumps(value, default=repr),
    "json by vars": lambda value: json.dumps(value, default=vars),
    "msgspec": msgspec.json.encode,
    "msgspec by str": lambda value: msgspec.json.encode(value, enc_hook=str),
    "msgspec, MessagePack": msgspec.msgpack.encode,
    "msgspec, builtins": msgspec.to_builtins,
    "pydantic": pydantic_core.to_json,
    "yaml": _yaml,
    "exception": lambda value: f"{ValueError(value)} {ValueError(value)!r}",
    "traceback": _traced,
    "asdict": lambda value: dataclasses.asdict(dataclasses.make_dataclass("D", ["token"])(value)),
    "struct": lambda value: repr(msgspec.defstruct("S", ["token"])(value)),
    "error": lambda value: repr(vars(type(value))),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_no_way_of_showing_or_keeping_it_shows_it(way: Callable[[Any], object]) -> None:
    secret, shown = Secret(CANARY), io.StringIO()
    try:
        print(way(secret), file=shown)
    except (TypeError, ValueError, AttributeError) as error:
        print(repr(error), file=shown)
    except Exception as error:  # noqa: BLE001  (each library has its own)
        print(repr(error), file=shown)
    assert CANARY not in shown.getvalue()


def test_it_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("somebody").warning("it is %s, %r", Secret(CANARY), [Secret(CANARY)])
    assert CANARY not in caplog.text


def test_it_is_known_to_the_redactor() -> None:
    assert redact(f"<{CANARY}>") == f"<{CANARY}>"
    Secret(CANARY)
    assert redact(f"<{CANARY}>") == "<[redacted]>"


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_is_not_pickled(protocol: int) -> None:
    with pytest.raises(TypeError, match="not pickled") as raised:
        pickle.dumps({"token": Secret(CANARY)}, protocol)
    assert CANARY not in str(raised.value)


@pytest.mark.parametrize("encode", [json.dumps, msgspec.json.encode, msgspec.to_builtins])
def test_it_is_not_encoded(encode: Callable[[Any], object]) -> None:
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


def test_it_cannot_be_given_another_text() -> None:
    secret = Secret(CANARY)
    with contextlib.suppress(AttributeError):
        secret.text = "x"  # type: ignore[attr-defined]
    assert secret.reveal() == CANARY
