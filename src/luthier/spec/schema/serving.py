"""What is offered to clients outside (`trigger:`, `serve:`), as schemas for editors."""

from __future__ import annotations

from luthier.spec.http_trigger import KINDS, METHODS, PRESETS
from luthier.spec.http_trigger import LATER as UNUSED
from luthier.spec.issuer import ALGORITHMS, MOST_LEEWAY
from luthier.spec.schema.terms import (
    FILLED,
    FLAG,
    SECONDS,
    TEXT,
    TEXTS,
    Schema,
    choice,
    either,
    items_of,
    key,
    mapping,
    needs,
    says,
    when,
    whole,
    without,
)
from luthier.spec.serve import CLIENT, HASH, HOST, ORIGIN, ROLES, TOOL_NAME
from luthier.spec.trigger import LATER, OTHER_AUTH, TYPES
from luthier.uri import SCHEMES


def exactly(pattern: str) -> Schema:
    return {"type": "string", "pattern": f"^({pattern})$"}


_TOKEN: Schema = {"type": "string", "pattern": rf"^(\$\{{.*\}}|{HASH.pattern})$"}
_TOKENS = either(_TOKEN, items_of(_TOKEN))
_ADDRESS: Schema = {"type": "string", "pattern": f"^({'|'.join(SCHEMES)})://"}

_AUTH = when(
    says("type", *OTHER_AUTH),
    {},
    mapping(
        key("type", holds=choice(("bearer",))),
        key(
            "tokens",
            "token",
            "secret",
            holds=_TOKENS,
            says="References to tokens, or their hashes.",
            needed=True,
        ),
    ),
)
_MCP = mapping(
    key("type", holds=choice(("mcp",)), needed=True),
    key("name", "tool_name", holds=exactly(TOOL_NAME.pattern), says="The tool's name; else the ensemble's."),
    key("description", holds=TEXT, says="The tool's; else the ensemble's."),
    key("clients", holds=TEXTS, says="Who may call it; everybody with a token without it.", empty=False),
    key("auth", holds={"type": "object", **_AUTH}, says="Tokens that open this ensemble and nothing else."),
    key(
        "output_schema",
        holds={"type": "object", "required": ["type"], "properties": {"type": {"const": "object"}}},
        says="What the output fits.",
    ),
    key("public", holds=FLAG, says="Without effect: every caller needs a token."),
)
_API = mapping(
    key("type", holds=choice(("api",)), needed=True),
    key("clients", holds=TEXTS, says="Who may run it; every client without it.", empty=False),
)

_OF_SIGNATURES = (
    key(
        "preset",
        holds=choice(PRESETS),
        says="Which headers the signature stands in, and over what it is made.",
    ),
    key("tolerance", holds=SECONDS, says="Seconds that a signature is old at most; 300 without it."),
)
_HTTP_AUTH = mapping(
    key("type", holds=choice(KINDS), says="bearer without it."),
    key("secret", "token", "tokens", holds=_TOKENS, says="References, or hashes of tokens.", needed=True),
    *_OF_SIGNATURES,
    also=[when({"not": says("type", "signature")}, without(_OF_SIGNATURES))],
)
_RATE = mapping(
    key("requests", holds=whole(1), says="So many at most,", needed=True),
    key("window", holds=SECONDS, says="within so many seconds,", needed=True),
    key("key", holds=choice(("ip", "user")), says="from each address or caller."),
)
_PATHS: Schema = {"type": "string", "pattern": "^/"}
_METHOD = choice((*METHODS, *map(str.lower, METHODS)))
_HTTP = mapping(
    key("type", holds=choice(("http", "webhook")), needed=True),
    key("path", holds=_PATHS, says="Its address, such as /orders/:id; else the ensemble's name."),
    key("paths", holds=items_of(_PATHS, 1), says="Several addresses."),
    key("methods", holds=items_of(_METHOD, 1), says="GET without it; of a webhook, POST."),
    key("auth", holds=_HTTP_AUTH, says="What opens this address and nothing else."),
    key("public", holds=FLAG, says="Whether everybody may ask."),
    key("clients", holds=TEXTS, says="Which of the project's clients may ask.", empty=False),
    key("async", holds=FLAG, says="Whether the answer does not wait for the run."),
    key("timeout", holds=SECONDS, says="Milliseconds for the run."),
    key("rate_limit", holds=_RATE, says="How many requests are taken."),
    key("cache", holds=TEXT, says="The Cache-Control of the answers."),
    *(key(name, says="Read, and without effect in this version.") for name in UNUSED),
    also=[
        {"not": {"allOf": [needs(key("path")), needs(key("paths"))]}},
        when(
            says("public", *(True,)), {"allOf": [{"not": needs(key(name))} for name in ("auth", "clients")]}
        ),
    ],
)
TRIGGER: Schema = {
    "type": "object",
    "required": ["type"],
    "properties": {"type": choice((*TYPES, *LATER))},
    **when(
        says("type", "mcp"),
        _MCP,
        when(says("type", "api"), _API, when(says("type", "http", "webhook"), _HTTP)),
    ),
}

_ROLE = choice(ROLES)
_CLIENT = mapping(
    key("tokens", "token", holds=_TOKENS, says="References to tokens, or their hashes.", needed=True),
    key("roles", holds=items_of(_ROLE), says="What it may do; run without it."),
)
_ISSUER = mapping(
    key("issuer", holds=FILLED, says="Whose tokens open the door.", needed=True),
    key("resource", "audience", holds=FILLED, says="This server, as its tokens name it.", needed=True),
    key("jwks_url", "jwks_uri", holds=TEXT, says="Its keys; else as its metadata says."),
    key("algorithms", holds=items_of(choice(ALGORITHMS)), says="Signatures that are accepted."),
    key("scopes", holds={"type": "object", "additionalProperties": _ROLE}, says="The role of each scope."),
    key(
        "leeway",
        holds={"type": "number", "minimum": 0, "maximum": MOST_LEEWAY},
        says="Seconds that clocks may differ.",
    ),
    key("allow_private", holds=FLAG, says="Whether its addresses may be private or this machine's own."),
)

_TOOL_NAMES: Schema = {
    "type": "object",
    "propertyNames": exactly(TOOL_NAME.pattern),
    "additionalProperties": {**_ADDRESS, "not": {"pattern": r"[*?\[]"}},
}
_VARIABLE = mapping(
    key("description", holds=TEXT, says="For people."),
    key("enum", holds=TEXTS, says="What it may be; any text without it."),
)
_RESOURCE = mapping(
    key("uri", holds=FILLED, says="Its address, perhaps with {variables}.", needed=True),
    key("file", holds=FILLED, says="Its file in the project, with the same variables.", needed=True),
    key("name", holds=TEXT, says="A short name; else that of the file."),
    key("title", holds=TEXT, says="A name for people."),
    key("description", holds=TEXT, says="What it is."),
    key("mime_type", holds=TEXT, says="Its type; else as its name says."),
    key(
        "variables",
        holds={"type": "object", "additionalProperties": {"anyOf": [_VARIABLE, {"type": "null"}]}},
        says="What is known of the variables.",
    ),
    key("clients", holds=TEXTS, says="Who may read it; every client without it."),
)

SERVE = mapping(
    key(
        "clients",
        holds={
            "type": "object",
            "propertyNames": exactly(CLIENT.pattern),
            "additionalProperties": either(_TOKENS, _CLIENT),
        },
        says="The tokens of each client: references, or `sha256:` and the hash of one; or `{tokens, roles}`.",
    ),
    key("oauth", holds=_ISSUER, says="An authorization server whose tokens are taken too."),
    key(
        "tools",
        holds=either(items_of(either(_ADDRESS, _TOOL_NAMES)), _TOOL_NAMES),
        says="Tools that are offered as they are: addresses and patterns, or names for addresses.",
    ),
    key("resources", holds=items_of(_RESOURCE), says="Files that clients may read."),
    key("prompts", holds=TEXT, says="The folder of prompts that clients may ask for."),
    key("hosts", holds=items_of(exactly(HOST.pattern)), says="Names that this server is called by."),
    key("origins", holds=items_of(exactly(ORIGIN.pattern)), says="Pages that may call it."),
    key("max_body_bytes", holds=whole(1), says="The largest request; 4 MiB without it."),
)
