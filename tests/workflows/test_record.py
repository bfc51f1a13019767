"""The record: what a line looks like, and that it comes back as it was, secrets aside."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import RecordError
from luthier.taint import (
    SECRET,
    TRUSTED,
    UNTRUSTED,
    Confidentiality,
    Integrity,
    Label,
    Labelled,
    Source,
    escape_pointer,
)
from luthier.tools import Envelope
from luthier.workflows import Entry, decode, encode
from luthier.workflows.record import (
    WITHHELD,
    AttemptFailed,
    BranchTaken,
    CallIntended,
    CallSettled,
    Data,
    Failure,
    RunEnded,
    RunHalted,
    RunStarted,
    StepEnded,
    StepStarted,
)

LABEL = Label(Integrity.untrusted, Confidentiality.private, frozenset({Source("s", "one", "c")}))
FAILURE = Failure(kind="code", message="no", facts={"line": 3, "list": [1]}, note="for the operator")


def entry(data: Data, seq: int = 1) -> Entry:
    return Entry(seq=seq, at=12.5, data=data, step="a", attempt=2)


def back(data: Data) -> Data:
    (read,) = decode(encode(entry(data)))
    return read.data


def test_an_entry_is_one_line_with_six_members() -> None:
    line = encode(entry(BranchTaken(taken=True, label=LABEL)))
    assert line.count(b"\n") == 1
    assert json.loads(line) == {
        "seq": 1,
        "at": 12.5,
        "kind": "BranchTaken",
        "step": "a",
        "attempt": 2,
        "data": {"taken": True, "label": LABEL.to_json()},
    }


@pytest.mark.parametrize(
    "data",
    [
        RunStarted(
            run="r", ensemble="e", plan="p", inputs=Labelled({"a": [1]}, LABEL), parent="q", control=LABEL
        ),
        BranchTaken(taken=False),
        StepStarted(),
        CallIntended(call="c", uri="mcp://s/t", arguments=Labelled({"a": 1}, parts={"/a": LABEL})),
        CallSettled(call="c", outcome="ok", duration=1.5),
        AttemptFailed(error=FAILURE, retry_in=2.0, label=LABEL),
        StepEnded(end="ok", output=Labelled([1, {"x/y": None}], LABEL, {"/1/x~1y": TRUSTED}), label=LABEL),
        StepEnded(end="failed", error=FAILURE, duration=3.0, cached=True),
        RunHalted(error=FAILURE),
        RunEnded(success=False, error=FAILURE, step="a", duration=4.0),
        RunEnded(success=True, output=Labelled("é\u2028")),
        RunEnded(success=True, output=Labelled(2**70)),
        RunEnded(success=True, output=Labelled("half \ud800 of one")),
    ],
)
def test_every_kind_comes_back_as_it_was(data: Data) -> None:
    assert back(data) == data


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(VALUES)
def test_any_value_comes_back_as_it_was(value: Any) -> None:
    assert back(RunEnded(success=True, output=Labelled(value))) == RunEnded(
        success=True, output=Labelled(value)
    )


class TestEnvelopes:
    FIELDS: ClassVar = {"tool": "t", "server": "s", "content": {"n": 1}, "duration": 1.0, "isError": False}

    def test_they_come_back_as_envelopes_wherever_they_stand(self) -> None:
        value = {
            "a/b": [Envelope(self.FIELDS)],
            "c": Envelope({**self.FIELDS, "content": Envelope(self.FIELDS)}),
        }
        data = back(RunEnded(success=True, output=Labelled(value)))
        assert isinstance(data, RunEnded)
        found = data.output.value
        assert found == value
        assert isinstance(found["a/b"][0], Envelope)
        assert isinstance(found["c"]["content"], Envelope)

    @pytest.mark.parametrize("blocks", [None, [], [{"type": "text", "text": "x"}]])
    @pytest.mark.parametrize("content", [{"n": 1}, "x", [1]])
    def test_with_their_blocks(self, content: Any, blocks: Any) -> None:
        value = Envelope({**self.FIELDS, "content": content}, blocks)
        data = back(RunEnded(success=True, output=Labelled(value)))
        assert isinstance(data, RunEnded)
        found = data.output.value
        assert isinstance(found, Envelope)
        assert found == value
        if blocks is not None:
            assert found.raw_blocks() == blocks

    def test_blocks_that_are_the_content_are_kept_once(self) -> None:
        blocks = [{"type": "image", "data": "unique"}]
        data = RunEnded(success=True, output=Labelled(Envelope({**self.FIELDS, "content": blocks}, blocks)))
        assert encode(entry(data)).count(b"unique") == 1
        read = back(data)
        assert isinstance(read, RunEnded)
        assert read.output.value.raw_blocks() == blocks

    def test_a_mapping_that_looks_like_one_stays_a_mapping(self) -> None:
        data = back(RunEnded(success=True, output=Labelled(dict(self.FIELDS))))
        assert isinstance(data, RunEnded)
        assert type(data.output.value) is dict


class TestSecrets:
    @pytest.mark.parametrize(
        "labelled",
        [
            Labelled("hunter2", SECRET),
            Labelled({"a": "hunter2"}, SECRET, {"/a": TRUSTED}),
            Labelled({"a": ["hunter2"]}, parts={"/a": SECRET}),
            Labelled({"a": ["hunter2", 1]}, UNTRUSTED, {"/a/0": SECRET}),
            Labelled({"a/b": {"c": "hunter2"}}, parts={f"/{escape_pointer('a/b')}/c": SECRET}),
        ],
    )
    def test_a_value_labelled_secret_is_not_kept_and_a_marker_says_so(self, labelled: Labelled[Any]) -> None:
        for data in (
            RunStarted(run="r", ensemble="e", plan="p", inputs=labelled),
            CallIntended(call="c", uri="u", arguments=labelled),
            StepEnded(end="ok", output=labelled, label=labelled.whole),
            RunEnded(success=True, output=labelled),
        ):
            line = encode(entry(data))
            assert b"hunter2" not in line
            assert b'"withheld":[' in line
            decode(line)

    def test_what_is_beside_it_is_kept(self) -> None:
        data = back(RunEnded(success=True, output=Labelled({"a": 1, "b": 2}, parts={"/a": SECRET})))
        assert isinstance(data, RunEnded)
        assert data.output == Labelled({"a": None, "b": 2}, parts={"/a": SECRET})

    def test_an_error_of_a_step_with_a_secret_is_withheld_too(self) -> None:
        failure = Failure(kind="code", message="hunter2", facts={"x": "hunter2"}, note="hunter2")
        for data in (
            StepEnded(end="failed", error=failure, label=SECRET),
            AttemptFailed(error=failure, retry_in=1.0, label=SECRET),
            RunEnded(success=False, error=failure, output=Labelled(None, SECRET)),
        ):
            line = encode(entry(data))
            assert b"hunter2" not in line
            assert WITHHELD.encode() in line


class TestReading:
    @pytest.mark.parametrize(
        "line",
        [
            b"{",
            b"[]",
            b'{"seq": 1}',
            b'{"seq":1,"at":1,"kind":"Unheard","step":"","attempt":0,"data":{}}',
            b'{"seq":1,"at":1,"kind":"RunHalted","step":"","attempt":0,"data":{"error":{"kind":1}}}',
            b'{"seq":1,"at":1,"kind":"StepEnded","step":"","attempt":0,"data":{"unknown":1}}',
        ],
    )
    def test_a_line_that_cannot_be_read_is_numbered(self, line: bytes) -> None:
        good = encode(entry(StepStarted()))
        with pytest.raises(RecordError, match="line 2 of the record cannot be read"):
            decode(good + line + b"\n")

    def test_a_record_of_a_later_version_is_refused(self) -> None:
        line = encode(entry(RunStarted(run="r", ensemble="e", plan="p", version=2)))
        with pytest.raises(RecordError, match="line 1: the record is of version 2, this program reads 1"):
            decode(line)

    def test_nothing_is_an_empty_record(self) -> None:
        assert decode(b"") == decode(b"\n") == ()
