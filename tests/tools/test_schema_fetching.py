"""No schema makes us open a file or a connection: canaries stand where it would have to pass."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from luthier.errors import SchemaError
from luthier.tools.schema import Schema
from tests.uncounted import uncounted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Canary:
    """A listener on the loopback that counts who comes."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.visitors = 0
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while True:
            try:
                visitor, _ = self._socket.accept()
            except OSError:
                return
            self.visitors += 1
            visitor.close()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)


@pytest.fixture
def canary() -> Iterator[Canary]:
    listener = Canary()
    yield listener
    listener.close()


# What Python itself opens while schemas are compiled and used; a compiled library passes it by, and listener
# and pipe catch that. A hook cannot be taken out again, so this runs in an interpreter of its own.
WATCHED = """
import json, sys
from luthier.errors import SchemaError
from luthier.tools.schema import Schema

definitions, seen = json.load(sys.stdin), []
Schema({}).faults({})  # what is loaded with the first one

def watch(event, arguments):
    if event in ("open", "socket.connect", "socket.getaddrinfo"):
        seen.append(f"{event} {arguments}")

sys.addaudithook(watch)
for definition in definitions:
    try:
        Schema(definition).faults({"a": 1})
    except SchemaError:
        pass
    eval(sys.argv[1])
kept = list(seen)
print(json.dumps(kept))
"""


def opened(definitions: list[Any], then: str = "None") -> list[str]:
    """What was opened by compiling and using each of them, and by the expression behind each."""
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, then], input=json.dumps(definitions), env=uncounted(),
        capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    seen: list[str] = json.loads(done.stdout)
    return seen


PLACES = ["$ref", "$dynamicRef", "$recursiveRef", "$schema", "$id"]


@pytest.mark.parametrize("scheme", ["http", "https", "ftp", "HTTP", "ws"])
def test_nothing_is_fetched_over_the_network(canary: Canary, scheme: str) -> None:
    address = f"{scheme}://127.0.0.1:{canary.port}/schema.json"
    definitions = [
        definition
        for place in PLACES
        for definition in (
            {place: address},
            {"properties": {"a": {place: address}}},
            {"$defs": {"never-used": {place: address + "#/x"}}},
            {"$id": address, "properties": {"a": {"$ref": "other.json"}}},
            {"$id": address, "properties": {"a": {"$ref": "/other.json"}}},
            {"$id": f"{scheme}:", "$ref": f"//127.0.0.1:{canary.port}/x"},
        )
    ]
    assert opened(definitions) == []
    assert canary.visitors == 0


def test_the_canary_sings_when_somebody_comes(canary: Canary) -> None:
    visit = f"__import__('socket').create_connection(('127.0.0.1', {canary.port}), timeout=5).recv(1)"
    assert any(one.startswith("socket.connect") for one in opened([{}], visit))
    assert canary.visitors == 1


@pytest.mark.parametrize("form", ["file://{}", "file:{}", "{}", "file://localhost{}"])
def test_no_file_is_opened(tmp_path: Path, form: str) -> None:
    """A named pipe without a writer: who opens it waits for ever, which the test's own bound finds."""
    pipe = tmp_path / "schema.json"
    os.mkfifo(pipe)
    definitions: list[Any] = [
        {"$id": f"file://{tmp_path}/root.json", "properties": {"a": {"$ref": "schema.json"}}}
    ]
    for place in ("$ref", "$dynamicRef", "$schema"):
        definitions.append({"properties": {"a": {place: form.format(pipe)}}})
        definitions.append(
            {"$id": f"file://{tmp_path}/root.json", "properties": {"a": {place: "schema.json"}}}
        )
    assert opened(definitions) == []


def test_a_file_that_is_opened_is_seen(tmp_path: Path) -> None:
    assert opened([{}], f"open({str(tmp_path / 'x')!r}, 'w').close()")


@pytest.mark.parametrize(
    ("reference", "shown"),
    [
        ("http://schemas.test/x.json", "http://schemas.test/x.json"),
        ("https://schemas.test/x.json#/$defs/a", "https://schemas.test/x.json"),
        ("file:///etc/passwd", "file:///etc/passwd"),
        ("ftp://schemas.test/x", "ftp://schemas.test/x"),
        ("urn:example:x", "urn:example:x"),
        ("other.json", "other.json"),
        ("../other.json", "other.json"),
        ("//schemas.test/x", "schemas.test/x"),
        ("data:application/json,7", "data:application/json,7"),
    ],
)
def test_a_reference_that_leads_outside_makes_the_schema_unusable_and_is_named(
    reference: str, shown: str
) -> None:
    with pytest.raises(SchemaError, match="nothing outside a schema is fetched") as caught:
        Schema({"properties": {"a": {"$ref": reference}}}).compile()
    assert shown in str(caught.value)


def test_another_dialect_is_outside_too() -> None:
    with pytest.raises(SchemaError, match="leads nowhere"):
        Schema({"properties": {"a": {"$ref": "http://json-schema.org/draft-07/schema#"}}}).compile()
