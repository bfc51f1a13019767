"""One MCP server's entry as a schema for editors."""

from __future__ import annotations

from luthier.spec.project import REVISIONS
from luthier.spec.schema.terms import (
    ANY_SECONDS,
    FILLED,
    FLAG,
    SECONDS,
    TEXT,
    TEXT_MAP,
    TEXTS,
    Key,
    Schema,
    choice,
    either,
    filled,
    items_of,
    key,
    mapping,
    needs,
    says,
    when,
    whole,
    without,
)
from luthier.spec.server_parts import AUTH_TEXTS, SANDBOX_MODES
from luthier.spec.servers import BESIDE_LAUNCH, ONLY_PROCESS, ONLY_URL, TRANSPORTS
from luthier.taint import Confidentiality, Integrity
from luthier.uri import SCHEMES, SERVER_ID

ID: Schema = {"type": "string", "pattern": f"^({SERVER_ID.pattern})$"}
_TOOL_NAMES = items_of({"type": "string", "not": {"pattern": f"^({'|'.join(SCHEMES)})://"}})

_YES = (True,)
_AUTH = mapping(
    key("type", holds=choice(("bearer", "oauth", "none")), says="How we say who we are.", needed=True),
    key("interactive", holds=FLAG, says="A person logs in, in a browser."),
    *(key(name, holds=TEXT) for name in AUTH_TEXTS),
    also=[
        when(says("type", "bearer"), filled("token")),
        when(
            {"allOf": [says("type", "oauth"), {"not": says("interactive", *_YES)}]},
            {
                "allOf": [
                    filled("client_id", "client_secret"),
                    when(needs(key("id_token")), filled("issuer", "idp_token_url")),
                    when(
                        {"not": needs(key("id_token"), key("issuer"))},
                        filled("token_url"),
                    ),
                ]
            },
        ),
    ],
)
_TOOLS = mapping(
    key("allow", holds=_TOOL_NAMES, says="The only ones that there are for us.", empty=False),
    key("deny", holds=_TOOL_NAMES, says="Those that there are not.", empty=False),
    key("ask", holds=_TOOL_NAMES, says="Those of which each call needs an approval.", empty=False),
    key(
        "idempotent",
        holds=_TOOL_NAMES,
        says="Your word that calling them twice does nothing twice.",
        empty=False,
    ),
    key("read_only", holds=_TOOL_NAMES, says="Your word that they change nothing.", empty=False),
)
_BREAKER = mapping(
    key("enabled", holds=FLAG),
    key("failures", holds=whole(1), says="In a row, until the server is left alone; 5 without it."),
    key("cooldown_ms", holds=SECONDS, says="How long; 30000 without it."),
    key("successes", holds=whole(1), says="Until all is well again; 2 without it."),
    key("count_tool_errors", holds=FLAG, says="Whether a tool's own errors count."),
)
SANDBOX = either(
    choice(SANDBOX_MODES),
    mapping(
        key("mode", holds=choice(SANDBOX_MODES)),
        key("network", holds=choice(("none", "host"))),
        key("read", holds=TEXTS, says="Paths that it may read."),
        key("write", holds=TEXTS, says="Paths that it may write."),
        key("memory_mb", holds=whole(1)),
        key("max_processes", holds=whole(1)),
    ),
)
TRUST = either(
    choice(Integrity.__members__),
    mapping(
        key("integrity", holds=choice(Integrity.__members__)),
        key("confidentiality", holds=choice(Confidentiality.__members__)),
    ),
)
_LAUNCH = either(
    TEXT,
    mapping(key("profile", holds=FILLED, says="By name.", needed=True), key("values", holds=TEXT_MAP)),
)
_TLS = mapping(*(key(name, holds=TEXT) for name in ("ca", "cert", "key")), key("verify", holds=FLAG))

_ID = key("id", holds=ID, says="In a list: what it is called in mcp://ID/tool.")
_NAME = key("name", holds=TEXT, says="For people.")
_REACH = (
    key(
        "command",
        holds=TEXT,
        says="What starts it: npx, node, python3, python, uvx, or as allowed_commands says.",
    ),
    key("url", "http_url", "server_url", holds=TEXT, says="Where it is reached."),
    key("launch", holds=_LAUNCH, says="A launch profile, in place of command and args."),
)
_COMMAND, _URL, _PROFILE = _REACH
_FIELDS = (
    key("description", holds=TEXT, says="For people."),
    *_REACH,
    key("args", holds=TEXTS, says="Arguments of the command."),
    key("env", holds=TEXT_MAP, says="Variables of the process."),
    key("inherit_env", holds=TEXTS, says="Names of our variables that it gets too."),
    key("cwd", holds=TEXT, says="The folder that it is started in."),
    key("headers", holds=TEXT_MAP, says="Headers of every request."),
    key("auth", holds=either({"const": "none"}, _AUTH), says="Who the server is told we are."),
    key("secret", holds=TEXT, says="What each request is signed with (HMAC)."),
    key("timeout", holds=SECONDS, says="Milliseconds to connect, and for one call."),
    key("timeout_ms", holds=SECONDS, says="Milliseconds to connect; 30000 without it."),
    key("tool_timeout_ms", holds=SECONDS, says="Milliseconds for one call; 30000 without it."),
    key("tool_timeout_max_ms", holds=SECONDS, says="What progress extends a call to at most."),
    key("cache_ttl_ms", holds=ANY_SECONDS, says="How long the list of tools is kept; 300000 without it."),
    key("max_retries", holds=whole(0, 10), says="Tries to connect after the first; 2 without it."),
    key("max_concurrent_calls", holds=whole(1), says="Calls at the same time."),
    key(
        "allowed_agents",
        holds=TEXTS,
        says="Who may use it: agents, and ensemble:NAME; [] is nobody.",
        empty=False,
    ),
    key(
        "tools",
        "tool_names",
        holds=either(_TOOL_NAMES, _TOOLS),
        says="Which of its tools there are for us.",
        empty=False,
    ),
    key("disabled", holds=FLAG, says="Kept, and not used."),
    key("approved", holds=FLAG, says="false: neither started nor reached until the operator approves it."),
    key("tls", holds=_TLS, says="Files for TLS."),
    key("proxy", holds=TEXT, says="The proxy's address."),
    key(
        "breaker",
        holds=either(FLAG, choice(("on", "off")), _BREAKER),
        says="When it is left alone for a while.",
    ),
    key("max_message_bytes", holds=whole(1024), says="The largest message that is read; 10 MiB without it."),
    key("allow_private", holds=FLAG, says="Whether its addresses may be private or this machine's own."),
    key("share", holds=FLAG, says="false: each caller has a connection of its own."),
    key("required", holds=FLAG, says="true: nothing starts without it."),
    key("sandbox", holds=SANDBOX, says="How it is locked up."),
    key("trust", holds=TRUST, says="The label of what it returns; untrusted without it."),
    key("protocol", holds=choice(("auto", *REVISIONS)), says="The revision of MCP that it is held to."),
)
_BY_NAME = {one.names[0]: one for one in _FIELDS}


def _some(names: tuple[str, ...]) -> list[Key]:
    return [_BY_NAME[name] for name in names]


def _server(*, listed: bool) -> Schema:
    """An entry; what stands in the mapping under `transport` belongs to the entry itself."""
    words = key(
        "transport", "type", holds=choice(TRANSPORTS), says="How it is spoken to; told by command or url."
    )
    inside = mapping(key("type", holds=words.holds), _ID, _NAME, *_FIELDS)
    wide = key("transport", holds=either(words.holds, inside), says=words.says)
    kind = key("type", holds=words.holds, says="The same as `transport`.")
    flat: list[Schema] = [
        {"not": {"required": ["transport", "type"]}},
        needs(*_REACH),
        {"not": {"allOf": [needs(_COMMAND), needs(_URL)]}},
        when(needs(_COMMAND), without(_some(ONLY_URL))),
        when(needs(_URL), without(_some(ONLY_PROCESS))),
        when(needs(_PROFILE), without(_some((*BESIDE_LAUNCH, *ONLY_URL)))),
        when(needs(_URL), {"properties": {name: {"not": {"const": "stdio"}} for name in words.names}}),
        when(
            needs(_COMMAND, _PROFILE),
            {"properties": {name: {"enum": ["stdio", None]} for name in words.names}},
        ),
    ]
    nested: Schema = {"required": ["transport"], "properties": {"transport": {"type": "object"}}}
    inner: Schema = {"properties": {"transport": needs(*_REACH)}}
    also = [when(nested, {"anyOf": [needs(*_REACH), inner]}, {"allOf": flat})]
    if listed:
        said: Schema = {"anyOf": [needs(_ID), {"properties": {"name": ID}, **needs(_NAME)}]}
        also.append(when(nested, {"anyOf": [said, {"properties": {"transport": needs(_ID, _NAME)}}]}, said))
    return mapping(_ID, _NAME, wide, kind, *_FIELDS, also=also)


SERVERS = either(
    {"type": "object", "propertyNames": ID, "additionalProperties": _server(listed=False)},
    items_of(_server(listed=True)),
)
