"""Reads one server as Claude Desktop, Claude Code, Cursor, VS Code, Gemini and their like write it.

They differ in a handful of keys, so one reader knows them all. A grant becomes its opposite: what the host
would call without asking is called here only after asking. What has no meaning here is noted, not lost.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from luthier.spec.reader import Reader
from luthier.spec.words import kind, quoted

if TYPE_CHECKING:
    from luthier.spec.hosts.drafts import Draft
    from luthier.spec.reader import Found

_GRANTS = ("auto_approve", "autoapprove", "always_allow", "alwaysallow", "trust")
_TRANSPORTS = {"stdio": "stdio", "local": "stdio", "sse": "sse", "http": "http"} | dict.fromkeys(
    ("streamable-http", "streamable_http", "streamableHttp"), "http"
)
_NOTES = {
    "headersHelper": "the host would run this command for headers; it is never run here",
    "envFile": "the server will lack its names: list them under `env`, or name the file in luthier.yaml",
    "dev": "the host would start the server anew on changes",
}


class Habits:
    """What a host does differently. `falls_back`: its `http` tries SSE where that does not answer."""

    __slots__ = ("elsewhere", "falls_back")

    def __init__(self, *, falls_back: bool = False, elsewhere: bool = False) -> None:
        self.falls_back = falls_back
        self.elsewhere = elsewhere  # its workspace is not the project's folder


def read_entry(draft: Draft, value: Any, habits: Habits) -> None:
    """Put into the draft what the value says."""
    reader = Reader.of(draft.faults, draft.path, value, "a server")
    if reader is None:
        return
    for key in ("name", "description"):
        draft.put(key, reader.text(key), reader.places.get(key, draft.path))
    _read_reach(draft, reader, habits)
    _read_process(draft, reader, habits)
    headers = reader.inner("headers")
    if headers is not None:
        draft.put("headers", _texts(draft, headers), headers.path)
    _read_login(draft, reader)
    draft.put("tool_timeout_ms", _milliseconds(draft, reader), reader.places.get("timeout", draft.path))
    _read_tools(draft, reader)
    disabled, enabled = reader.flag("disabled"), reader.flag("enabled", default=True)
    if disabled or not enabled:
        draft.switch_off()
    for key in reader.left():
        message = f"{quoted(key)} is not taken over"
        draft.note(f"{message}: {_NOTES[key]}" if key in _NOTES else message, reader.at(key))


def _read_reach(draft: Draft, reader: Reader, habits: Habits) -> None:
    """How it is spoken to: said, or told by the kind of address."""
    said = reader.choice(_TRANSPORTS, "type", "transport")
    command, url = reader.text("command"), reader.text("url", "http_url", "server_url")
    at = reader.places.get("url", draft.path)
    if url is not None:
        if said is None and at[-1:] == ("httpUrl",):
            said = "http"
        elif said is None and re.search(r"/sse/?(?:[?#]|$)", url):
            said = "sse"
        elif said == "http" and habits.falls_back:
            said = "auto"
    draft.put("transport", said, reader.places.get("type", at))
    draft.put(
        "command",
        draft.text(command, reader.places.get("command", draft.path)),
        reader.places.get("command", draft.path),
    )
    draft.put("url", draft.text(url, at), at)


def _read_process(draft: Draft, reader: Reader, habits: Habits) -> None:
    args = reader.texts("args") or ()
    at = reader.places.get("args", draft.path)
    draft.put("args", [draft.text(text, (*at, index)) for index, text in enumerate(args)], at)
    env = reader.inner("env")
    if env is not None:
        draft.put("env", _texts(draft, env), env.path)
    cwd = draft.text(reader.text("cwd"), reader.places.get("cwd", draft.path))
    at = reader.places.get("cwd", draft.path)
    workspace = draft.around.workspace
    if habits.elsewhere and workspace is not None and "command" in draft.says:
        # The host would start it in its workspace, and relative paths count from there.
        cwd = str(workspace / cwd) if cwd and not cwd.startswith("${") else cwd or str(workspace)
    draft.put("cwd", cwd, at)


def _texts(draft: Draft, inner: Reader) -> dict[str, str]:
    """Names and texts, of `env` or of `headers`; numbers and switches are written out, null is none."""
    texts = {}
    for name, value in inner.data.items():
        at = (*inner.path, name)
        if isinstance(value, (bool, int, float)):
            texts[name] = str(value).lower() if isinstance(value, bool) else str(value)
        elif isinstance(value, str):
            texts[name] = draft.text(value, at) or ""
        elif value is None:
            draft.note(f"{quoted(name)} is null and is left out", at)
        else:
            draft.faults.wrong("text", at, value)
    return texts


def _milliseconds(draft: Draft, reader: Reader) -> float | None:
    found = reader.take("timeout")
    if found is None:
        return None
    if not isinstance(found.value, (int, float)) or isinstance(found.value, bool) or found.value <= 0:
        draft.note(f"`timeout` is not taken over: it is {kind(found.value)} and no time", found.path)
        return None
    if found.value < 1000:  # noqa: PLR2004  (nobody means less than a second; some hosts count in seconds)
        draft.note("`timeout` is read as seconds", found.path)
        return found.value * 1000
    return found.value


def _read_login(draft: Draft, reader: Reader) -> None:
    """OAuth with a person's login; `auth` may also be a word or a token."""
    found = reader.take("oauth", "auth")
    if found is None or found.value is False:
        return
    if isinstance(found.value, str) and found.value != "oauth":
        token = draft.text(found.value.removeprefix("Bearer "), found.path)
        draft.put("auth", {"type": "bearer", "token": token}, found.path)
        return
    auth: dict[str, Any] = {"type": "oauth", "interactive": True}
    if isinstance(found.value, dict):
        inner = Reader(draft.faults, found.path, found.value)
        if not inner.flag("enabled", default=True):
            return
        for key, spellings in {
            "client_id": ("client_id", "CLIENT_ID"),
            "client_secret": ("client_secret", "CLIENT_SECRET"),
        }.items():
            text = inner.text(*spellings)
            if text is not None:
                auth[key] = draft.text(text, inner.places[spellings[0]])
        if scope := _scope(inner):
            auth["scope"] = scope
        for key in inner.left():
            draft.note(
                f"{quoted(key)} is not taken over: the server itself says how one logs in", inner.at(key)
            )
    elif found.value not in (True, "oauth"):
        draft.faults.wrong("a mapping", *found)
        return
    draft.put("auth", auth, found.path)


def _scope(inner: Reader) -> str:
    found = inner.take("scopes", "scope")
    if found is None:
        return ""
    return found.value if isinstance(found.value, str) else " ".join(inner.sink.texts(*found) or ())


def _read_tools(draft: Draft, reader: Reader) -> None:
    """Which tools there are, and which are to be asked for."""
    says: dict[str, Any] = {}
    at = draft.path
    for key, names in {
        "allow": ("include_tools", "tools", "enabled_tools"),
        "deny": ("exclude_tools", "disabled_tools"),
    }.items():
        found = reader.take(*names)
        listed = None if found is None else _names(draft, found)
        if found is not None and listed is not None and listed != ["*"]:
            says[key], at = [_exactly(name) for name in listed], found.path
    asked = []
    for key in _GRANTS:
        found = reader.take(key)
        if found is None or found.value in (False, []):
            continue
        names_ = ["*"] if found.value is True else _names(draft, found)
        asked += [_at_least(name) for name in names_ or ["*"]]
        at = found.path
        draft.note(f"{quoted(str(found.path[-1]))} becomes `tools.ask`: such calls ask here", found.path)
    if asked:
        says["ask"] = ["*"] if "*" in asked else list(dict.fromkeys(asked))
    if says:
        draft.says["tools"] = says
        draft.put("tools", says, at)


def _names(draft: Draft, found: Found) -> list[str] | None:
    if found.value == "*":
        return ["*"]
    texts = draft.faults.texts(*found)
    return None if texts is None else list(texts)


def _exactly(name: str) -> str:
    """The pattern of that name and no other."""
    return re.sub(r"([*?\[])", r"[\1]", name)


def _at_least(name: str) -> str:
    """A pattern for that name; a `*` in it may stand for more names, which are asked for as well."""
    return re.sub(r"([?\[])", r"[\1]", name)
