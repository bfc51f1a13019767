"""Good project files: every spelling of every field leads to the one entry."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.errors import SpecError
from luthier.spec import (
    Auth,
    Breaker,
    Project,
    Sandbox,
    ServerEntry,
    Tls,
    ToolFilter,
    find_project,
    load_project,
    read_project,
)
from luthier.spec.project import STORE
from luthier.spec.reader import camel
from luthier.taint import UNTRUSTED, Confidentiality, Integrity, Label
from tests.spec.plain import plain


def server(**fields: Any) -> ServerEntry:
    return read_project({"mcpServers": {"x": fields}}, root="/").servers["x"]


def written(text: str, tmp_path: Path) -> Project:
    path = tmp_path / "luthier.yaml"
    path.write_text(text, encoding="utf-8")
    return load_project(path)


def test_an_entry_has_the_defaults_of_the_contract() -> None:
    assert server(command="x") == ServerEntry(id="x", name="x", command="x", transport="stdio")
    entry = server(command="x")
    assert (entry.timeout, entry.tool_timeout, entry.tool_timeout_max, entry.cache_ttl) == (
        30,
        None,
        None,
        None,
    )
    assert (entry.max_retries, entry.max_message_bytes, entry.share, entry.required) == (
        2,
        10485760,
        True,
        False,
    )
    assert (entry.allowed_agents, entry.trust, entry.trusted) == (None, UNTRUSTED, False)


FIELDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "name and description": ({"name": "N", "description": "D"}, {"name": "N", "description": "D"}),
    "process": (
        {"args": ["-m", "a"], "env": {"A": "${env.B}"}, "inherit_env": ["C"], "cwd": ".."},
        {"args": ("-m", "a"), "env": {"A": "${env.B}"}, "inherit_env": ("C",), "cwd": ".."},
    ),
    "timeout sets both": ({"timeout": 15000}, {"timeout": 15.0, "tool_timeout": 15.0}),
    "the longer words win": (
        {"timeout": 1, "timeout_ms": 2000, "tool_timeout_ms": 500, "tool_timeout_max_ms": 1000},
        {"timeout": 2.0, "tool_timeout": 0.5, "tool_timeout_max": 1.0},
    ),
    "each longer word wins alone": (
        {"timeout": 1000, "timeout_ms": 2000},
        {"timeout": 2.0, "tool_timeout": 1.0},
    ),
    "limits": (
        {"max_retries": 0, "max_concurrent_calls": 1, "cache_ttl_ms": 0, "max_message_bytes": 4096.0},
        {"max_retries": 0, "max_concurrent_calls": 1, "cache_ttl": 0.0, "max_message_bytes": 4096},
    ),
    "nobody may call": ({"allowed_agents": []}, {"allowed_agents": ()}),
    "some may call": ({"allowed_agents": ["a", "ensemble:b"]}, {"allowed_agents": ("a", "ensemble:b")}),
    "tools as a list": ({"tools": ["a"]}, {"tools": ToolFilter(allow=("a",))}),
    "tool_names": ({"tool_names": ["a"]}, {"tools": ToolFilter(allow=("a",))}),
    "no tools at all": ({"tools": []}, {"tools": ToolFilter(allow=())}),
    "tools as a mapping": (
        {"tools": {"allow": ["a"], "deny": ["b"], "ask": ["e*"], "idempotent": ["c"], "readOnly": ["d"]}},
        {"tools": ToolFilter(allow=("a",), deny=("b",), ask=("e*",), idempotent=("c",), read_only=("d",))},
    ),
    "switches": (
        {"disabled": True, "share": False, "required": True, "approved": False},
        {"disabled": True, "share": False, "required": True, "approved": False},
    ),
    "breaker off": ({"breaker": False}, {"breaker": Breaker(enabled=False)}),
    "breaker off in a word": ({"breaker": "off"}, {"breaker": Breaker(enabled=False)}),
    "breaker on": ({"breaker": "on"}, {"breaker": Breaker()}),
    "breaker": (
        {"breaker": {"failures": 2, "cooldown_ms": 500, "successes": 1, "count_tool_errors": True}},
        {"breaker": Breaker(failures=2, cooldown=0.5, successes=1, count_tool_errors=True)},
    ),
    "sandbox in a word": ({"sandbox": "required"}, {"sandbox": Sandbox(mode="required")}),
    "sandbox": (
        {
            "sandbox": {
                "mode": "auto",
                "network": "none",
                "read": ["/a"],
                "write": ["/b"],
                "memory_mb": 5,
                "max_processes": 6,
            }
        },
        {
            "sandbox": Sandbox(
                mode="auto", network="none", read=("/a",), write=("/b",), memory_mb=5, max_processes=6
            )
        },
    ),
    "trusted": ({"trust": "trusted"}, {"trust": Label(Integrity.trusted, Confidentiality.private)}),
    "untrusted": ({"trust": "untrusted"}, {"trust": UNTRUSTED}),
    "trust in both parts": (
        {"trust": {"integrity": "trusted", "confidentiality": "public"}},
        {"trust": Label(Integrity.trusted, Confidentiality.public)},
    ),
    "half a trust": (
        {"trust": {"confidentiality": "secret"}},
        {"trust": Label(Integrity.untrusted, Confidentiality.secret)},
    ),
    "an era": ({"protocol": "2025-06-18"}, {"protocol": "2025-06-18"}),
    "any era": ({"protocol": "auto"}, {"protocol": None}),
}


@pytest.mark.parametrize(("given", "expected"), FIELDS.values(), ids=FIELDS)
def test_fields_of_a_process(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert server(command="x", **given) == ServerEntry(**{"id": "x", "name": "x", "command": "x", **expected})
    in_camel = {camel(key): value for key, value in given.items()}
    assert server(command="x", **in_camel) == server(command="x", **given)


URL = "https://mcp.example.com/mcp"
REMOTE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "auto": ({"url": URL}, {"transport": "auto"}),
    "httpUrl": ({"httpUrl": URL}, {"transport": "http"}),
    "serverUrl": ({"serverUrl": URL}, {"transport": "auto"}),
    "httpUrl with another transport": ({"httpUrl": URL, "type": "sse"}, {"transport": "sse"}),
    "rest": ({"url": URL, "transport": "rest"}, {"transport": "rest"}),
    "sse": ({"url": URL, "type": "sse"}, {"transport": "sse"}),
    "streamable": ({"url": URL, "type": "streamable-http"}, {"transport": "http"}),
    "streamable in snake case": ({"url": URL, "transport": "streamable_http"}, {"transport": "http"}),
    "streamable in camel case": ({"url": URL, "type": "streamableHttp"}, {"transport": "http"}),
    "nested": (
        {"transport": {"type": "http", "url": URL, "headers": {"A": "b"}}},
        {"transport": "http", "headers": {"A": "b"}},
    ),
    "nested beside": ({"transport": {"url": URL}, "secret": "s"}, {"transport": "auto", "secret": "s"}),
    "no auth in a word": ({"url": URL, "auth": "none"}, {"transport": "auto"}),
    "no auth": ({"url": URL, "auth": {"type": "none"}}, {"transport": "auto"}),
    "bearer": (
        {"url": URL, "auth": {"type": "bearer", "token": "t"}},
        {"transport": "auto", "auth": Auth(type="bearer", token="t")},
    ),
    "oauth": (
        {"url": URL, "auth": {"type": "oauth", "clientId": "i", "clientSecret": "s", "tokenUrl": "u"}},
        {
            "transport": "auto",
            "auth": Auth(type="oauth", client_id="i", client_secret="s", token_url="u"),
        },
    ),
    "interactive oauth": (
        {"url": URL, "auth": {"type": "oauth", "interactive": True, "scope": "c", "issuer": "o"}},
        {"transport": "auto", "auth": Auth(type="oauth", interactive=True, scope="c", issuer="o")},
    ),
    "tls": (
        {"url": URL, "tls": {"ca": "a", "cert": "b", "key": "c", "verify": False}},
        {"transport": "auto", "tls": Tls(ca="a", cert="b", key="c", verify=False)},
    ),
    "proxy": (
        {"url": URL, "proxy": "http://p", "allow_private": True},
        {"transport": "auto", "proxy": "http://p", "allow_private": True},
    ),
}


@pytest.mark.parametrize(("given", "expected"), REMOTE.values(), ids=REMOTE)
def test_fields_of_a_server_with_a_url(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert server(**given) == ServerEntry(**{"id": "x", "name": "x", "url": URL, **expected})


def test_a_url_may_hold_references() -> None:
    assert server(url="${env.BASE}/mcp").url == "${env.BASE}/mcp"


@pytest.mark.parametrize(
    "data",
    [
        {"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}},
        {"servers": {"a": {"command": "x"}, "b": {"command": "y"}}},
        {"mcp_servers": {"a": {"id": "a", "command": "x"}, "b": {"command": "y"}}},
        {"servers": [{"id": "a", "command": "x"}, {"id": "b", "command": "y"}]},
        {"mcp": {"servers": [{"name": "a", "command": "x"}, {"name": "b", "command": "y"}]}},
        {"mcp": {"servers": {"a": {"command": "x"}, "b": {"transport": {"type": "stdio", "command": "y"}}}}},
    ],
)
def test_servers_are_read_under_every_key_in_the_order_of_the_file(data: dict[str, Any]) -> None:
    servers = read_project(data, root="/").servers
    assert list(servers) == ["a", "b"]
    assert [entry.command for entry in servers.values()] == ["x", "y"]


def test_a_name_beside_an_id_is_for_people() -> None:
    servers = read_project({"servers": [{"id": "a", "name": "The A", "command": "x"}]}, root="/").servers
    assert servers["a"].name == "The A"


def test_an_entry_tells_where_each_field_is_written(tmp_path: Path) -> None:
    text = """
mcpServers:
  git:
    command: python
    args:
      - -m
    env: {TOKEN: "${env.T}"}
  web:
    transport:
      type: http
      url: https://x
    auth: {type: bearer, token: t}
"""
    project = written(text, tmp_path)
    file = project.file
    git, web = project.servers["git"], project.servers["web"]
    assert git.place("env", "TOKEN") == f"{file}:7:18 (mcpServers.git.env.TOKEN)"
    assert git.place("args", 0) == f"{file}:6:9 (mcpServers.git.args[0])"
    assert git.place("cwd") == f"{file}:4:5 (mcpServers.git.cwd)"
    assert web.place("url") == f"{file}:11:12 (mcpServers.web.transport.url)"
    assert web.place("auth", "token") == f"{file}:12:33 (mcpServers.web.auth.token)"
    assert server(command="x").place("env", "A") == "mcpServers.x.env.A"
    assert ServerEntry(id="x").place("env", "A") == "env.A"


def test_policies_tell_where_they_are_written(tmp_path: Path) -> None:
    text = "policies:\n  default: deny\n  rules:\n    - {then: ask, when: {tool: mcp://mail/*}}\n"
    policies = written(text, tmp_path).policies
    assert policies.place.endswith(":2:12 (policies.default)")
    assert policies.rules[0].place.endswith(":4:7 (policies.rules[0])")


@pytest.mark.parametrize(
    ("entry", "key", "nobody"),
    [
        ({"allowed_agents": None}, "allowed_agents", "nobody"),
        ({"allowedAgents": None}, "allowedAgents", "nobody"),
        ({"tools": None}, "tools", "none"),
        ({"tool_names": None}, "tool_names", "none"),
        *(
            ({"tools": {key: None}}, key, "none")
            for key in ("allow", "deny", "ask", "idempotent", "read_only")
        ),
    ],
)
def test_a_list_of_who_may_that_was_left_empty_is_neither_nobody_nor_everybody(
    entry: dict[str, Any], key: str, nobody: str
) -> None:
    with pytest.raises(SpecError) as caught:
        read_project({"mcpServers": {"git": {"command": "git", **entry}}})
    (fault,) = caught.value.faults
    assert fault.message.endswith(f": `{key}` is empty")
    assert fault.suggestion == f"[] for {nobody}, or leave the key out"


def test_without_a_default_what_no_rule_fits_is_allowed() -> None:
    rules = [{"then": "deny", "when": {"label": {"source": "mail/*"}}}]
    for said in (rules, {"rules": rules}):
        policies = read_project({"policies": said}).policies
        assert policies.default == "allow"
        assert [rule.label and rule.label.sources for rule in policies.rules] == ["mail/*"]
    assert read_project({}).policies.default == "allow"


def test_the_place_is_no_part_of_an_entry() -> None:
    assert server(command="x") == ServerEntry(id="x", name="x", command="x")
    assert hash(server(command="x").origin) == hash(ServerEntry(id="y").origin)
    assert repr(server(command="x").origin) == "Origin()"


def test_an_entry_s_facts_are_what_differs_from_the_defaults() -> None:
    entry = server(
        url=URL,
        auth={"type": "bearer", "token": "${T}"},
        trust="trusted",
        tools=["a"],
        breaker={"failures": 1},
    )
    assert entry.facts() == {
        "id": "x",
        "transport": "auto",
        "name": "x",
        "url": URL,
        "auth": {"type": "bearer", "token": "${T}"},
        "tools": {"allow": ["a"]},
        "breaker": {"failures": 1},
        "trust": {"integrity": "trusted", "confidentiality": "private", "sources": []},
    }
    assert ServerEntry(id="y").facts() == {"id": "y", "transport": "stdio"}


def test_a_project_says_more_than_servers(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\nB='2'\n", encoding="utf-8")
    text = "environment: production\nallowed_commands: [deno]\nexposeEnv: [A]\nenv_file: .env\n"
    project = written(f"{text}audit: {{fsync: true}}\nagents: {{r: {{}}}}\n", tmp_path)
    assert (project.environment, project.allowed_commands, project.expose_env) == (
        "production",
        ("deno",),
        ("A",),
    )
    assert project.audit.fsync
    assert project.unused == {"agents": {"r": {}}}
    assert [fault.message for fault in project.warnings] == ["this version does not use `agents` yet"]
    assert project.root == tmp_path.resolve()
    assert project.environ({"B": "ours", "C": "3"}) == {"A": "1", "B": "ours", "C": "3"}


def test_values_of_the_env_file_are_kept_out_of_sight(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=hunter2\n", encoding="utf-8")
    assert "hunter2" not in repr(written("env_file: .env\n", tmp_path))


def test_faulty_env_files_are_faults_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("hunter2\n", encoding="utf-8")
    with pytest.raises(SpecError, match="bad:1:1: this line is not NAME=value"):
        written("env_file: bad\n", tmp_path)
    (tmp_path / "bytes").write_bytes(b"A=\xff")
    with pytest.raises(SpecError, match="`bytes` is not UTF-8 text"):
        written("env_file: bytes\n", tmp_path)
    (tmp_path / "big").write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(SpecError, match="`big` is larger than 1024 KiB"):
        written("env_file: big\n", tmp_path)


def test_a_project_without_a_file_has_the_defaults(tmp_path: Path) -> None:
    project = read_project({}, root=tmp_path)
    assert project == Project(root=tmp_path.resolve(), store=STORE)
    assert (project.file, project.environment, project.expose_env) == (None, "development", ())
    assert project.allowed_commands == ("npx", "node", "python3", "python", "uvx")
    assert project.environ({"A": "1"}) == {"A": "1"}
    assert read_project({}).root == Path.cwd()


def test_python_data_with_faults_is_told_by_path() -> None:
    with pytest.raises(SpecError) as caught:
        read_project({"servers": {"a": {"comand": "x"}}})
    assert [str(fault) for fault in caught.value.faults] == [
        "servers.a: a server needs a `command` or a `url`",
        "servers.a.comand: unknown key `comand` (did you mean command?)",
    ]


def test_the_project_of_a_folder_is_the_nearest_one_above(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "luthier.yml").touch()
    assert find_project(deep) == tmp_path.resolve() / "luthier.yml"
    (tmp_path / "a" / "luthier.yaml").touch()
    assert find_project(deep) == tmp_path.resolve() / "a" / "luthier.yaml"
    (tmp_path / "a" / "luthier.yml").touch()
    assert find_project(deep) == tmp_path.resolve() / "a" / "luthier.yaml"
    assert find_project(Path(os.sep)) is None


WORDS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)
ENTRIES = st.fixed_dictionaries(
    {"command": WORDS},
    optional={
        "args": st.lists(WORDS, max_size=3),
        "env": st.dictionaries(WORDS, WORDS, max_size=3),
        "timeout_ms": st.integers(1, 10**6),
        "max_retries": st.integers(0, 10),
        "allowed_agents": st.lists(WORDS, max_size=3),
        "disabled": st.booleans(),
        "trust": st.sampled_from(["trusted", "untrusted"]),
    },
)


@settings(deadline=None)
@given(st.dictionaries(WORDS, ENTRIES, max_size=4))
def test_a_map_and_a_list_of_servers_say_the_same(servers: dict[str, Any]) -> None:
    listed = [{"id": key, "name": key, **value} for key, value in servers.items()]
    nested = {key: {"transport": {"type": "stdio", **value}} for key, value in servers.items()}
    expected = plain(read_project({"mcpServers": servers}).servers)
    assert plain(read_project({"servers": listed}).servers) == expected
    assert plain(read_project({"mcp": {"servers": nested}}).servers) == expected


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///.luthier/x.db",
        "sqlite:////srv/x.db",
        "postgresql://u@h/d",
        "postgres://h/d",
        "${env.STORE}",
    ],
)
def test_the_store_is_a_sqlite_file_or_postgresql(url: str) -> None:
    assert read_project({"store": url}).store == url


@pytest.mark.parametrize(
    "url", ["", "luthier.db", "sqlite://", "sqlite:///:memory:", "mysql://h/d", "sqlite:///?a"]
)
def test_a_store_of_another_kind_is_a_fault(url: str) -> None:
    with pytest.raises(SpecError, match="`store` is the path of a SQLite file or the URL"):
        read_project({"store": url})


LITERAL = ["postgresql://me:hush@h/d", "postgres://:hush@h/d", "postgresql:///d?host=h&password=hush"]


@pytest.mark.parametrize("url", LITERAL)
def test_a_literal_password_of_the_store_is_told_of_and_refused_in_production(url: str) -> None:
    assert "the password of `store` stands in the file" in str(read_project({"store": url}).warnings[0])
    with pytest.raises(SpecError, match="not allowed in production"):
        read_project({"store": url, "environment": "production"})
    assert read_project({"store": url.replace("hush", "${env.PASSWORD}")}).warnings == ()


def test_state_is_kept_where_there_is_a_folder_for_it(tmp_path: Path) -> None:
    (tmp_path / "luthier.yaml").write_text("servers: {}\n", encoding="utf-8")
    assert load_project(tmp_path / "luthier.yaml").store == STORE
    assert read_project({}, root=tmp_path).store == STORE
    assert read_project({}).store == ""
