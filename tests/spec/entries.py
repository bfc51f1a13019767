"""Server entries of every shape that a file can say, each field of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from luthier.spec import Auth, Breaker, Launch, Sandbox, ServerEntry, Tls, ToolFilter
from luthier.spec.project import REVISIONS
from luthier.taint import Confidentiality, Integrity, Label

ODD = (
    "yes", "null", "1", "-1.5e3", "0x1f", ".inf", "-", "---", "...", "a: b", "# no", "${env.X}", "{{x}}",
    "${a ? 'b: c' : \"d\"}", "@scope/x", "-y", "--flag=1", "https://x.example/?a=1#b", "*a", "&a", "!t",
    "|", "\U0001f3bb", "\x7f\x85\u2028\ufeff", "a\n\tb\r\n ", "'\"\\", "%x", "<<", "=", "a #b", "[1", "}",
    ",", "a:", ":a", "?", "~", "é",
)  # fmt: skip
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(ODD)
FULL = TEXTS.filter(lambda text: text.strip())
NAMES = st.from_regex(r"[a-zA-Z0-9_-]{1,64}", fullmatch=True)
TUPLES = st.lists(TEXTS, max_size=3).map(tuple)
MAPS = st.dictionaries(TEXTS, TEXTS, max_size=3)
TIMES = st.one_of(
    st.integers(1, 10**7).map(lambda number: number / 1000), st.sampled_from([1.1, 0.3, 15.0, 0.25])
)
COUNTS = st.integers(1, 2**40)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


OAUTH = {"client_id": FULL, "client_secret": FULL, "scope": maybe(TEXTS)}
AUTHS = st.one_of(
    st.just(Auth()),
    st.builds(Auth, type=st.just("bearer"), token=FULL, scope=maybe(TEXTS)),
    st.builds(Auth, type=st.just("oauth"), token_url=FULL, issuer=maybe(TEXTS), **OAUTH),
    st.builds(
        Auth,
        type=st.just("oauth"),
        issuer=FULL,
        id_token=FULL,
        idp_token_url=FULL,
        idp_client_id=maybe(TEXTS),
        **OAUTH,
    ),
    st.builds(Auth, type=st.just("oauth"), interactive=st.sampled_from([True]), client_id=maybe(TEXTS)),
)

_LISTS = {name: TUPLES for name in ToolFilter.__struct_fields__ if name != "allow"}
_COMMON: dict[str, st.SearchStrategy[Any]] = {
    "id": NAMES,
    "name": FULL,
    "description": TEXTS,
    "timeout": TIMES,
    "tool_timeout": maybe(TIMES),
    "max_retries": st.integers(0, 10),
    "max_concurrent_calls": maybe(COUNTS),
    "cache_ttl": maybe(TIMES | st.just(0.0)),
    "allowed_agents": maybe(TUPLES),
    "tools": st.builds(ToolFilter, allow=maybe(TUPLES), **_LISTS),
    "breaker": st.builds(
        Breaker,
        enabled=st.booleans(),
        failures=COUNTS,
        cooldown=TIMES,
        successes=COUNTS,
        count_tool_errors=st.booleans(),
    ),
    "max_message_bytes": st.integers(1024, 2**40),
    "trust": st.builds(Label, st.sampled_from(Integrity), st.sampled_from(Confidentiality)),
    "protocol": maybe(st.sampled_from(REVISIONS)),
}
_PROCESS: dict[str, st.SearchStrategy[Any]] = {
    "transport": st.just("stdio"),
    "command": TEXTS,
    "args": TUPLES,
    "env": MAPS,
    "inherit_env": TUPLES,
    "cwd": maybe(TEXTS),
    "sandbox": st.builds(
        Sandbox,
        mode=maybe(st.sampled_from(["off", "auto", "required"])),
        network=maybe(st.sampled_from(["none", "host"])),
        read=TUPLES,
        write=TUPLES,
        memory_mb=maybe(COUNTS),
        max_processes=maybe(COUNTS),
    ),
}
_PROFILED: dict[str, st.SearchStrategy[Any]] = {
    "transport": st.just("stdio"),
    "launch": st.builds(Launch, profile=FULL, values=MAPS),
    "env": MAPS,
    "inherit_env": TUPLES,
}
_URL: dict[str, st.SearchStrategy[Any]] = {
    "transport": st.sampled_from(["http", "sse", "rest", "auto"]),
    "url": st.sampled_from(["https://x.example/mcp", "http://[::1]:8080/?a=b", "${env.URL}"]),
    "headers": MAPS,
    "auth": AUTHS,
    "secret": maybe(TEXTS),
    "tls": maybe(st.builds(Tls, ca=maybe(TEXTS), cert=maybe(TEXTS), key=maybe(TEXTS), verify=st.booleans())),
    "proxy": maybe(TEXTS),
    "allow_private": st.booleans(),
}
_DERIVED = {"tool_timeout_max", "origin"}
_FLAGS = {
    name: st.booleans()
    for name in ServerEntry.__struct_fields__
    if name not in _COMMON | _PROCESS | _PROFILED | _URL and name not in _DERIVED
}
"""What is left are flags; a field of another kind that is new fails to be built, and wants a place above."""


def _longest(entry: ServerEntry) -> st.SearchStrategy[ServerEntry]:
    least = entry.tool_timeout or 0.001
    longest = maybe(st.integers(0, 1000).map(lambda more: (round(least * 1000) + more) / 1000))
    return longest.map(lambda value: _with(entry, value))


def _with(entry: ServerEntry, longest: float | None) -> ServerEntry:
    fields = {name: getattr(entry, name) for name in entry.__struct_fields__}
    return ServerEntry(**fields | {"tool_timeout_max": longest})


ENTRIES = st.one_of(
    st.builds(ServerEntry, **_COMMON, **_PROCESS, **_FLAGS),
    st.builds(ServerEntry, **_COMMON, **_PROFILED, **_FLAGS),
    st.builds(ServerEntry, **_COMMON, **_URL, **_FLAGS),
).flatmap(_longest)
