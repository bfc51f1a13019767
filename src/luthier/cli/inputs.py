"""What `-i key=value`, `--inputs FILE` and `-a key=value` give: mappings of JSON values."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from luthier.errors import Fault, InputError
from luthier.given import RepeatedNameError, given_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from luthier.spec import Ensemble


LARGEST = 64 * 1024 * 1024
"""Bytes of a file that is the value of one input or argument."""


def read_inputs(ensemble: Ensemble, pairs: list[str], source: str | None) -> dict[str, Any]:
    """The run's inputs: the file's first, the single ones over them. Raises InputError with every fault."""
    from luthier.spec import read_input_text

    faults: list[Fault] = []
    values: dict[str, Any] = {}
    if source is not None:
        values.update(_from_file(source, faults))
    for key, text in _pairs(pairs, faults, option="-i"):
        if (content := _content(key, text, faults)) is None:
            continue
        try:
            values[key] = read_input_text(ensemble, key, content)
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(faults)
    return values


def undeclared(ensemble: Ensemble, given: Iterable[str]) -> list[Fault]:
    """A warning for each input that the ensemble does not declare: steps get it all the same."""
    from luthier.spec.words import meant, quoted

    return [
        Fault(
            f"the input {quoted(key)} is not declared", suggestion=meant(key, ensemble.inputs), warning=True
        )
        for key in given
        if key not in ensemble.inputs
    ]


def read_arguments(pairs: list[str], document: str | None) -> dict[str, Any]:
    """A call's arguments: `--args JSON` first, `-a key=value` over it (JSON if it parses, else text)."""
    faults: list[Fault] = []
    values: dict[str, Any] = {}
    if document is not None:
        try:
            values.update(given_json(document, dict[str, Any]))
        except RepeatedNameError as error:
            faults.append(Fault(f"--args: {error}"))
        except (msgspec.DecodeError, RecursionError) as error:
            faults.append(Fault(f"--args is not a JSON object: {error}"))
    for key, text in _pairs(pairs, faults, option="-a"):
        if (content := _content(key, text, faults)) is not None:
            values[key] = json_or_text(content, f"-a {key}", faults)
    if faults:
        raise InputError(faults)
    return values


def read_mocks(pairs: list[str]) -> dict[str, Any]:
    """The answers of `--mock SERVER:TOOL=VALUE`, JSON or text. Raises InputError with every fault."""
    faults: list[Fault] = []
    values: dict[str, Any] = {}
    for key, text in _pairs(pairs, faults, option="--mock", form="SERVER:TOOL=VALUE"):
        if key != "*" and ":" not in key.strip(":"):
            faults.append(Fault(f"--mock {key!r}: write --mock SERVER:TOOL=VALUE"))
        elif (content := _content(key, text, faults)) is not None:
            values[key] = json_or_text(content, f"--mock {key}", faults)
    if faults:
        raise InputError(faults)
    return values


def json_or_text(text: str, place: str, faults: list[Fault]) -> Any:
    """The JSON value that the text is, else the text; JSON with a key twice is a fault."""
    try:
        return given_json(text)
    except RepeatedNameError as error:
        faults.append(Fault(f"{place}: {error}"))
    except (msgspec.DecodeError, RecursionError):
        pass
    return text


def _pairs(
    pairs: list[str], faults: list[Fault], *, option: str, form: str = "key=value"
) -> list[tuple[str, str]]:
    found = []
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if equals and key:
            found.append((key, text))
        else:
            faults.append(Fault(f"{option} {pair!r}: write {option} {form}"))
    return found


def _content(key: str, text: str, faults: list[Fault]) -> str | None:
    from luthier.errors import SpecError
    from luthier.spec.load import read_text

    try:
        key.encode()
        if not text.startswith("@"):
            text.encode()
            return text
    except UnicodeEncodeError:  # bytes that the terminal's encoding does not have
        faults.append(Fault(f"{key}: this is not {sys.getfilesystemencoding().upper()} text"))
        return None
    try:
        return read_text(Path(text[1:]), text[1:], LARGEST)
    except SpecError as error:
        faults.extend(replace(one, message=f"{key}: {one.message}") for one in error.faults)
        return None


def _from_file(source: str, faults: list[Fault]) -> dict[str, Any]:
    from luthier.errors import SpecError
    from luthier.spec import load

    if source == "-" and sys.stdin is None:
        faults.append(Fault("--inputs -: stdin is closed"))
        return {}
    try:
        document = load(sys.stdin.buffer, file="stdin") if source == "-" else load(Path(source))
    except SpecError as error:
        faults.extend(error.faults)
        return {}
    if not isinstance(document.data, dict):
        faults.append(Fault(f"{source}: the inputs must be a mapping"))
        return {}
    return document.data
