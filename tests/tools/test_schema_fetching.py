"""No schema makes us open a file or a connection: canaries stand where it would have to pass."""

from __future__ import annotations

import os
import socket
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from luthier.errors import SchemaError
from luthier.tools.schema import Schema

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


_watching: list[list[str]] = []


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and event in ("open", "socket.connect", "socket.getaddrinfo"):
        _watching[-1].append(f"{event} {arguments}")


sys.addaudithook(_audit)


@contextmanager
def watched() -> Iterator[list[str]]:
    """What Python itself opens meanwhile. A compiled library passes it by; listener and pipe catch that."""
    seen: list[str] = []
    _watching.append(seen)
    try:
        yield seen
    finally:
        _watching.remove(seen)


def used(definition: Any) -> str:
    """Compile and judge; what was said of a schema that cannot be used."""
    try:
        Schema(definition).faults({"a": 1})
    except SchemaError as error:
        return str(error)
    return ""


PLACES = ["$ref", "$dynamicRef", "$recursiveRef", "$schema", "$id"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("scheme", ["http", "https", "ftp", "HTTP", "ws"])
def test_nothing_is_fetched_over_the_network(canary: Canary, place: str, scheme: str) -> None:
    address = f"{scheme}://127.0.0.1:{canary.port}/schema.json"
    with watched() as seen:
        for definition in (
            {place: address},
            {"properties": {"a": {place: address}}},
            {"$defs": {"never-used": {place: address + "#/x"}}},
            {"$id": address, "properties": {"a": {"$ref": "other.json"}}},
            {"$id": address, "properties": {"a": {"$ref": "/other.json"}}},
            {"$id": f"{scheme}:", "$ref": f"//127.0.0.1:{canary.port}/x"},
        ):
            used(definition)
    assert canary.visitors == 0
    assert seen == []


def test_the_canary_sings_when_somebody_comes(canary: Canary) -> None:
    with watched() as seen, socket.create_connection(("127.0.0.1", canary.port), timeout=5) as visitor:
        assert visitor.recv(1) == b""
    assert canary.visitors == 1
    assert seen


@pytest.mark.parametrize("place", ["$ref", "$dynamicRef", "$schema"])
@pytest.mark.parametrize("form", ["file://{}", "file:{}", "{}", "file://localhost{}"])
def test_no_file_is_opened(tmp_path: Path, place: str, form: str) -> None:
    """A named pipe without a writer: who opens it waits for ever, which the test's own bound finds."""
    pipe = tmp_path / "schema.json"
    os.mkfifo(pipe)
    with watched() as seen:
        used({"properties": {"a": {place: form.format(pipe)}}})
        used({"$id": f"file://{tmp_path}/root.json", "properties": {"a": {place: "schema.json"}}})
    assert seen == []


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
