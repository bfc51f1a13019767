"""Reads the parts of a server entry that have keys of their own: auth, tools, tls, breaker and so on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from luthier.spec.patterns import names_in, tool_names
from luthier.spec.profile import Sandbox, SandboxMode
from luthier.spec.project import Auth, AuthType, Breaker, Launch, Tls, ToolFilter
from luthier.taint import UNTRUSTED, Confidentiality, Integrity, Label

if TYPE_CHECKING:
    from luthier.spec.reader import Reader

SANDBOX_MODES = ("off", "auto", "required")
AUTH_TEXTS = (
    "token", "client_id", "client_secret", "token_url", "scope", "issuer",
    "id_token", "idp_token_url", "idp_client_id",
)  # fmt: skip


def read_auth(reader: Reader) -> Auth | None:
    """`{type: bearer|oauth|none, …}`, complete for its type."""
    found = reader.take("auth")
    if found is None or found.value == "none":
        return None
    inner = reader.inner("auth")
    if inner is None:
        return None
    type_ = inner.choice(("bearer", "oauth", "none"), "type")
    if type_ is None and "type" not in inner.places:
        inner.sink.add("`type` is missing", inner.path, suggestion="bearer, oauth or none")
    interactive = inner.flag("interactive")
    needed = _needed_auth(type_, inner) if not interactive else ()
    texts = {key: inner.text(key, required=key in needed) for key in AUTH_TEXTS}
    inner.done({"accessToken": "write {type: bearer, token: …}"})
    return Auth(type=cast("AuthType", type_ or "none"), interactive=interactive, **texts)


def _needed_auth(type_: str | None, inner: Reader) -> tuple[str, ...]:
    """The keys that this type cannot do without. An issuer says itself where its token endpoint is."""
    if type_ == "bearer":
        return ("token",)
    if type_ != "oauth":
        return ()
    if inner.take("id_token"):
        return ("client_id", "client_secret", "issuer", "idp_token_url")
    where = () if inner.take("issuer") else ("token_url",)
    return ("client_id", "client_secret", *where)


def read_tools(reader: Reader) -> ToolFilter | None:
    """A list of the tools that are allowed, or a mapping that says more."""
    found = reader.stated("tools", "tool_names")
    if found is None:
        return None
    if isinstance(found.value, list):
        return ToolFilter(allow=names_in(reader.sink, *found))
    inner = reader.inner("tools", "tool_names")
    if inner is None:
        return None
    fields = tool_names(inner, "allow", "deny", "ask", "idempotent", "read_only")
    inner.done()
    return ToolFilter(**_given(fields))


def read_tls(reader: Reader) -> Tls | None:
    inner = reader.inner("tls")
    if inner is None:
        return None
    fields = {key: inner.text(key) for key in ("ca", "cert", "key")}
    verify = inner.flag("verify", default=True)
    inner.done()
    return Tls(verify=verify, **fields)


def read_breaker(reader: Reader) -> Breaker | None:
    """A mapping, or a switch: true, false, on, off."""
    found = reader.take("breaker")
    if found is None:
        return None
    if isinstance(found.value, bool):
        return Breaker(enabled=found.value)
    if found.value in ("on", "off"):
        return Breaker(enabled=found.value == "on")
    inner = reader.inner("breaker")
    if inner is None:
        return None
    fields = {
        "enabled": inner.flag("enabled", default=True),
        "failures": inner.whole("failures", low=1),
        "cooldown": inner.seconds("cooldown_ms"),
        "successes": inner.whole("successes", low=1),
        "count_tool_errors": inner.flag("count_tool_errors"),
    }
    inner.done()
    return Breaker(**_given(fields))


def read_sandbox(reader: Reader) -> Sandbox | None:
    """A mode, or a mapping with `mode` and what is allowed inside."""
    found = reader.take("sandbox")
    if found is None:
        return None
    if isinstance(found.value, str):
        return Sandbox(mode=cast("SandboxMode | None", reader.choice(SANDBOX_MODES, "sandbox")))
    inner = reader.inner("sandbox")
    if inner is None:
        return None
    fields = {
        "mode": inner.choice(SANDBOX_MODES, "mode"),
        "network": inner.choice(("none", "host"), "network"),
        "read": inner.texts("read"),
        "write": inner.texts("write"),
        "memory_mb": inner.whole("memory_mb", low=1),
        "max_processes": inner.whole("max_processes", low=1),
    }
    inner.done()
    return Sandbox(**_given(fields))


def read_launch(reader: Reader) -> Launch | None:
    """The name of a launch profile, or a mapping that fills its holes too."""
    found = reader.take("launch")
    if found is None:
        return None
    if isinstance(found.value, str):
        return Launch(profile=found.value)
    inner = reader.inner("launch")
    if inner is None:
        return None
    profile, values = inner.text("profile", required=True), inner.text_map("values")
    inner.done()
    return Launch(profile=profile or "", values=values)


def read_trust(reader: Reader) -> Label | None:
    """`trusted`, `untrusted`, or both parts of a label. What is trusted is private unless told."""
    found = reader.take("trust")
    if found is None:
        return None
    if isinstance(found.value, str):
        word = reader.choice(list(Integrity.__members__), "trust")
        return Label(Integrity[word], UNTRUSTED.confidentiality) if word else None
    inner = reader.inner("trust")
    if inner is None:
        return None
    integrity = inner.choice(list(Integrity.__members__), "integrity") or UNTRUSTED.integrity.name
    confidentiality = inner.choice(list(Confidentiality.__members__), "confidentiality")
    inner.done()
    return Label(Integrity[integrity], Confidentiality[confidentiality or UNTRUSTED.confidentiality.name])


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}
