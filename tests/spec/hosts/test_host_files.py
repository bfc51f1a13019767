"""Files of other hosts: realistic ones, read as the cases say, and what is wrong with those that are none."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.errors import NotFoundError, SpecError
from luthier.spec import ServerEntry, load
from luthier.spec.hosts import Import, import_file, sent, suspects
from luthier.spec.hosts.files import ids_for
from luthier.taint import UNTRUSTED
from luthier.uri import SERVER_ID
from tests.spec.plain import plain

FOLDER = Path(__file__).parents[2] / "cases" / "hosts"
CASES: list[dict[str, Any]] = load(FOLDER / "expected.yaml").data


class Desk:
    """A folder with a host's file in it, and the project beside it that imports."""

    def __init__(self, root: Path) -> None:
        self.here = root / "here"
        self.here.mkdir()

    def put(self, name: str, text: str) -> Path:
        path = self.here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("HERE", str(self.here)), encoding="utf-8")
        return path

    def read(self, path: Path, *, workspace: str = "", only: tuple[str, ...] = (), offer: str = "") -> Import:
        return import_file(
            path,
            root=self.here / "project",
            home=self.here / "home",
            workspace=self.here / workspace if workspace else None,
            only=only,
            offer=offer,
        )

    def servers(self, data: Any, name: str = "mcp.json", **options: Any) -> dict[str, ServerEntry]:
        read = self.read(self.put(name, json.dumps(data)), **options)
        return {one.entry.id: one.entry for one in read.servers}

    def faults(self, text: str, name: str = "mcp.json", **options: Any) -> list[str]:
        path = self.put(name, text)
        with pytest.raises(SpecError) as caught:
            self.read(path, **options)
        return [str(fault).replace(f"{path}:", "").replace(str(path), name) for fault in caught.value.faults]

    def one(self, entry: dict[str, Any], name: str = "mcp.json") -> ServerEntry:
        return self.servers({"mcpServers": {"a": {"command": "x"} | entry}}, name)["a"]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"] + str(case.get("options", "")))
def test_a_hosts_file_is_read_as_the_case_says(desk: Desk, case: dict[str, Any]) -> None:
    path = desk.put(case["as"], (FOLDER / case["file"]).read_text(encoding="utf-8"))
    options = dict(case.get("options", {}))
    read = desk.read(path, **options | {"only": tuple(options.get("only", ()))})
    notes = [*read.notes, *(note for one in read.servers for note in one.notes)]
    found = {
        "host": read.host,
        "servers": [one.entry.facts() for one in read.servers],
        "notes": [str(note).replace(f"{path}:", "") for note in notes],
        "sent": [
            f"{one.entry.id}: {each.reference} at {each.key} to {each.to}"
            for one in read.servers
            for each in sent(one.entry)
        ],
        "suspects": [f"{one.entry.id}: {each.key}" for one in read.servers for each in suspects(one.entry)],
    }
    assert json.loads(json.dumps(found).replace(str(desk.here), "HERE")) == {key: case[key] for key in found}
    assert all(note.warning for note in notes)


FAULTS: list[dict[str, str]] = load(FOLDER / "faults.yaml").data


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case["name"])
def test_a_file_that_cannot_be_read_is_one_fault_at_its_place(desk: Desk, case: dict[str, str]) -> None:
    (fault,), said = desk.faults(case["text"]), case["fault"]
    assert fault == said or fault.startswith(f"{said} ("), fault


def test_all_faults_of_all_servers_are_told_together_in_the_order_of_the_file(desk: Desk) -> None:
    text = '{"mcpServers": {"b": {"command": 5},\n "a": {"url": "nowhere"},\n "c": {"command": "x"}}}'
    assert [fault.partition(" ")[0] for fault in desk.faults(text)] == ["1:34:", "2:15:"]
    assert [one.entry.id for one in desk.read(desk.put("mcp.json", text), only=("c",)).servers] == ["c"]


def test_a_server_that_is_not_in_the_file_is_told_with_the_nearest(desk: Desk) -> None:
    with pytest.raises(NotFoundError, match="Did you mean notes"):
        desk.servers({"mcpServers": {"notes": {"command": "x"}}}, only=("note",))


def test_an_offer_that_is_not_made_is_told_with_those_that_are(desk: Desk) -> None:
    text = '{"name": "a/b", "remotes": [{"type": "sse", "url": "https://e.example.com"}]}'
    assert desk.faults(text, offer="remotes[1]") == [
        "1:1: nothing is offered as `remotes[1]` (did you mean remotes[0]?)"
    ]


def test_what_is_no_file_to_read_is_one_fault_that_names_it(desk: Desk) -> None:
    missing, folder = desk.here / "none.json", desk.here
    large = desk.put("large.json", '{"mcpServers": {}, "x": "' + "x" * (8 * 1024 * 1024) + '"}')
    latin = desk.here / "latin.json"
    latin.write_bytes(b'{"mcpServers":\n {"\xe9": 1}}')
    for path, said in (
        (missing, "the file cannot be read: No such file or directory"),
        (folder, "the file cannot be read: Is a directory"),
        (large, "the file is larger than 8192 KiB"),
        (latin, "this is not UTF-8 text: the byte 0xe9 does not belong here"),
    ):
        with pytest.raises(SpecError) as caught:
            desk.read(path)
        (fault,) = caught.value.faults
        assert fault.message == said
        assert fault.file == str(path)


def test_a_file_that_may_not_be_read_is_one_fault(desk: Desk) -> None:
    path = desk.put("mcp.json", "{}")
    path.chmod(0)
    if os.access(path, os.R_OK):
        return  # for root there is no such file
    with pytest.raises(SpecError, match="Permission denied"):
        desk.read(path)


@pytest.mark.parametrize("text", ['{"a":' * 100_000, "[" * 5_000, '{"a": [{"b":' * 70 + "1"])
def test_what_is_nested_too_deep_is_one_fault(desk: Desk, text: str) -> None:
    (fault,) = desk.faults(text)
    assert "nested more than 64 levels deep" in fault


def test_a_file_of_very_many_values_is_one_fault(desk: Desk) -> None:
    (fault,) = desk.faults("[" + "1," * 200_000 + "1]")
    assert "more than 100000 values" in fault


# Grants and trust


@pytest.mark.parametrize(
    "name", ["mcp.json", ".mcp.json", "claude_desktop_config.json", ".gemini/settings.json"]
)
@pytest.mark.parametrize(
    ("entry", "ask"),
    [
        ({"autoApprove": ["a", "b"]}, ("a", "b")),
        ({"alwaysAllow": ["a"], "autoApprove": ["b", "a"]}, ("b", "a")),
        ({"autoApprove": True}, ("*",)),
        ({"autoApprove": "*"}, ("*",)),
        ({"autoApprove": ["*", "a"]}, ("*",)),
        ({"autoApprove": []}, ()),
        ({"autoApprove": False, "trust": False}, ()),
        ({"trust": True}, ("*",)),
        ({"trust": True, "alwaysAllow": ["a"]}, ("*",)),
        ({"autoapprove": ["a?[b]"]}, ("a[?][[]b]",)),
    ],
)
def test_a_grant_is_read_as_a_question_and_never_as_trust(
    desk: Desk, name: str, entry: dict[str, Any], ask: tuple[str, ...]
) -> None:
    got = desk.one(entry, name)
    assert got.tools.ask == ask
    assert got.tools.allow is None
    assert got.trust == UNTRUSTED
    assert not got.approved


@pytest.mark.parametrize(
    "key", ["approved", "required", "allow_private", "allowedAgents", "sandbox", "tls", "breaker", "policies"]
)
def test_keys_of_our_own_in_a_strangers_file_have_no_say(desk: Desk, key: str) -> None:
    path = desk.put("mcp.json", json.dumps({"mcpServers": {"a": {"command": "x", key: True}}}))
    (one,) = desk.read(path).servers
    assert one.entry == ServerEntry(id="a", name="a", command="x", approved=False)
    assert [note.message for note in one.notes] == [f"`{key}` is not taken over"]


def test_tools_of_a_host_are_taken_by_their_very_names(desk: Desk) -> None:
    got = desk.one({"includeTools": ["a*", "b"], "disabledTools": ["c"]})
    assert (got.tools.allow, got.tools.deny) == (("a[*]", "b"), ("c",))
    assert desk.one({"tools": ["*"]}).tools.allow is None
    assert desk.one({"tools": []}).tools.allow == ()


def test_an_entry_without_a_root_key_and_one_of_a_gemini_allow_list_are_read(desk: Desk) -> None:
    assert list(desk.servers({"a": {"command": "x"}})) == ["a"]
    data = {"mcp": {"allowed": ["a"]}, "mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}}}
    got = desk.servers(data, ".gemini/settings.json")
    assert [entry.disabled for entry in got.values()] == [False, True]


def test_logins_and_tokens_are_taken_over(desk: Desk) -> None:
    def auth(**entry: Any) -> Any:
        data = {"mcpServers": {"a": {"url": "https://e.example.com/mcp"} | entry}}
        return desk.servers(data)["a"].auth

    assert auth(auth="oauth").interactive
    assert auth(oauth=True).interactive
    assert auth(auth="Bearer ${TOKEN}").token == "${TOKEN}"
    assert auth(oauth={"enabled": False}).type == "none"
    assert auth(auth=False).type == "none"


def test_a_users_own_file_knows_no_workspace_and_an_option_names_it(desk: Desk) -> None:
    data = {"mcpServers": {"a": {"command": "x", "args": ["${workspaceFolder}"], "cwd": "${env:PLACE}"}}}
    text = json.dumps(data)
    assert desk.faults(text, "home/.cursor/mcp.json")[0].endswith("(name the folder: --workspace DIR)")
    got = desk.servers(data, "home/.cursor/mcp.json", workspace="open")["a"]
    assert got.args == (str(desk.here / "open"),)
    assert got.cwd == "${PLACE}"
    project = desk.servers({"mcpServers": {"a": {"command": "x"}}}, "project/.cursor/mcp.json")["a"]
    assert project.cwd is None


# Ids


@given(st.lists(st.text(max_size=70), unique=True, max_size=8))
def test_every_name_gets_a_valid_id_of_its_own_and_valid_names_are_kept(names: list[str]) -> None:
    ids = ids_for(names)
    assert len(set(ids)) == len(names)
    for name, id_ in zip(names, ids, strict=True):
        assert SERVER_ID.fullmatch(id_)
        assert id_ == name or not SERVER_ID.fullmatch(name)


ENTRY_KEYS = (
    *("command", "args", "env", "url", "headers", "type", "auth", "oauth"),
    *("trust", "tools", "name", "timeout", "autoApprove"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*ENTRY_KEYS, "a"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
ROOTS = st.sampled_from(["mcpServers", "servers", "mcp", "packages", "remotes", "projects", "inputs", "name"])


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(ROOTS, JSON | st.dictionaries(st.sampled_from(["a", "b c", "servers"]), JSON, max_size=3))
)
def test_any_shape_is_read_or_told_as_faults_and_never_approved(tmp_path_factory: Any, data: Any) -> None:
    folder = tmp_path_factory.mktemp("any")
    path = folder / "mcp.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with suppress(SpecError):
        read = import_file(path, root=folder, home=folder)
        assert not any(one.entry.approved for one in read.servers)
        plain([one.entry for one in read.servers])
