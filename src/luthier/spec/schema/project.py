"""luthier.yaml as a schema for editors."""

from __future__ import annotations

from luthier.models.providers import KINDS
from luthier.spec.budget import PER
from luthier.spec.policy import HINTS, THEN
from luthier.spec.profile import LONGEST
from luthier.spec.read_profiles import DIGEST, NAME
from luthier.spec.read_project import ENV_NAME, UNUSED
from luthier.spec.schema.servers import ID, SANDBOX, SERVERS, TRUST
from luthier.spec.schema.serving import SERVE, exactly
from luthier.spec.schema.terms import (
    ANY_SECONDS,
    FILLED,
    FLAG,
    SECONDS,
    TEXT,
    TEXTS,
    Schema,
    choice,
    either,
    emptied,
    items_of,
    key,
    lone,
    mapping,
    needs,
    ref,
    whole,
)
from luthier.taint import Confidentiality, Integrity

_PATTERNS = either(FILLED, items_of(FILLED, 1))
_LABEL = mapping(
    key("integrity", holds=choice(Integrity.__members__), says="At least that bad.", empty=False),
    key("confidentiality", holds=choice(Confidentiality.__members__), says="At least that.", empty=False),
    key("sources", "source", holds=FILLED, says="A pattern for SERVER/TOOL.", empty=False),
)
_WHEN = mapping(
    key("tool", "tools", holds=_PATTERNS, says="Patterns for addresses, such as mcp://mail/*.", empty=False),
    key("agent", "agents", holds=_PATTERNS, says="Patterns for callers.", empty=False),
    key(
        "argument",
        holds={"type": "string", "pattern": r"^(\*|/.*)$"},
        says="A JSON Pointer such as /to, or * for every argument.",
        empty=False,
    ),
    key(
        "label",
        holds={**_LABEL, "minProperties": 1},
        says="What the argument's label is at least.",
        empty=False,
    ),
    key(
        "annotations",
        holds={**mapping(*(key(hint, holds=FLAG, empty=False) for hint in HINTS)), "minProperties": 1},
        says="What the tool says of itself.",
        empty=False,
    ),
)
_RULE = mapping(
    key("name", holds=TEXT),
    key("then", holds=choice(THEN), says="What becomes of the call.", needed=True),
    key("reason", holds=TEXT, says="Told to whoever is refused."),
    key("when", holds=_WHEN, says="All of it must hold.", empty=False),
)
_POLICIES = either(
    items_of(_RULE),
    mapping(
        key("default", holds=choice(THEN), says="For calls that no rule fits; allow without it."),
        key("rules", holds=items_of(_RULE), says="Of those that fit, the strictest decides."),
    ),
)

_LIMITS = (
    key("calls", holds=whole()),
    key("bytes", holds=whole(), says="Of arguments and results."),
    key("time_ms", holds=ANY_SECONDS),
)
_BUDGET = mapping(
    key("name", holds=TEXT),
    key("per", holds=choice(PER), needed=True),
    *(key(name, holds=TEXT, says="A pattern.") for name in ("agent", "server", "tool")),
    *_LIMITS,
    also=[needs(*_LIMITS)],
)

_DOLLARS: Schema = {"type": "number", "minimum": 0}
_PRICE = mapping(
    *(
        key(name, holds=_DOLLARS, says="Dollars for a million tokens.", needed=True)
        for name in ("input", "output")
    ),
    *(key(name, holds=_DOLLARS) for name in ("cache_read", "cache_write")),
)
_KIND = key("type", "kind", holds=choice(KINDS), says="Whose API it speaks.")
_PROVIDER = mapping(
    _KIND,
    key("base_url", holds=TEXT, says="Where it is; else the provider's own address."),
    key("api_key", holds={"type": "string", "pattern": r"\$\{"}, says="A reference, never the key itself."),
    key("model", holds=TEXT, says="For steps that name none."),
    key("timeout_ms", "timeout", holds=SECONDS, says="Milliseconds that a turn may take."),
    key("prices", holds={"type": "object", "additionalProperties": _PRICE}, says="What each model costs."),
    key("trust", holds=TRUST, says="The label of its answers."),
    key("allow_private", holds=FLAG, says="Whether its address may be private or this machine's own."),
)
_PROVIDERS: Schema = {
    "type": "object",
    "propertyNames": ID,
    "properties": {kind: emptied(ref("provider")) for kind in KINDS},
    "additionalProperties": {"allOf": [ref("provider"), needs(_KIND)]},
}

_WORDS, _PATTERN = key("enum", holds=items_of(TEXT, 1)), key("pattern", holds=TEXT)
_PROFILE = mapping(
    key("executable", holds={"type": "string", "pattern": "^/"}, says="The program, in full.", needed=True),
    key("args", holds=TEXTS, says="Its arguments; `{name}` is a hole."),
    key(
        "holes",
        holds={
            "type": "object",
            "additionalProperties": mapping(
                _WORDS, _PATTERN, key("max_length", holds=whole(1, LONGEST)), also=[lone(_WORDS, _PATTERN)]
            ),
        },
        says="What may stand in each.",
    ),
    key("env", holds=TEXTS, says="Names that an entry may give values to."),
    key("cwd", holds={"type": "string", "pattern": "^/"}, says="The folder that it is started in."),
    *(key(name, holds=exactly(DIGEST.pattern)) for name in ("sha256", "script_sha256")),
    key("sandbox", holds=SANDBOX),
)

_AUDIT = mapping(
    key("key", holds={"type": "string", "pattern": r"\$\{"}, says="A reference to the key."),
    key("key_file", holds=TEXT, says="The file with the key."),
    key("checkpoints", holds=TEXT, says="Where signed checkpoints are kept."),
    key("fsync", holds=FLAG, says="Whether each record is forced to the disk."),
    key("sink", holds=choice(("files", "store"))),
    key(
        "record",
        holds=items_of(choice(("arguments", "results"))),
        says="What is kept whole, besides digests.",
    ),
    also=[{"not": {"allOf": [needs(key("key")), needs(key("key_file"))]}}],
)

_ENVIRONMENT = key("environment", holds=choice(("development", "production")), says="development without it.")
_UNUSED_WORDS = ("name", "version", "description")

PROJECT: Schema = {
    "title": "A project of Luthier",
    **mapping(
        *(key(name, says="For people.") for name in _UNUSED_WORDS),
        _ENVIRONMENT,
        key("mcpServers", "mcp_servers", "servers", holds=ref("servers"), says="The MCP servers, by id."),
        key(
            "mcp", holds=mapping(key("servers", holds=ref("servers"))), says="`mcp: {servers: …}`, the same."
        ),
        key(
            "allowed_commands",
            holds=TEXTS,
            says="What a server may be started with, by bare name.",
            empty=False,
        ),
        key(
            "allowed_modules",
            holds=TEXTS,
            says="What -m of a launch profile may run; mcp_server_*, *_mcp_server, *_mcp without it.",
            empty=False,
        ),
        key(
            "launch_profiles",
            holds={
                "type": "object",
                "propertyNames": exactly(NAME.pattern),
                "additionalProperties": _PROFILE,
            },
            says="How servers may be started in production.",
        ),
        key(
            "expose_env",
            holds=items_of(exactly(ENV_NAME.pattern)),
            says="Names that ensembles may read as env.X.",
        ),
        key("custom_tools", holds=TEXTS, says="Python files below scripts/ with tools of the project's own."),
        key("env_file", holds=TEXT, says="A file with more variables."),
        key("policies", holds=_POLICIES, says="What may be called with what."),
        key("budgets", holds=items_of(_BUDGET), says="How much may be used."),
        key("approval_timeout", holds=ANY_SECONDS, says="Milliseconds that an approval is waited for."),
        key("providers", holds=_PROVIDERS, says="Who models are asked of."),
        key("serve", holds=SERVE, says="What is offered to clients outside, and to whom."),
        key("store", holds=TEXT, says="The path of a SQLite file, or the URL of a PostgreSQL database."),
        key("storage", holds=mapping(key("files", holds=TEXT, says="The folder of `storage` steps."))),
        key("audit", holds=_AUDIT, says="The audit log."),
        *(
            key(name, says="Read, and without effect in this version.")
            for name in UNUSED
            if name not in _UNUSED_WORDS
        ),
    ),
    "$defs": {"servers": SERVERS, "provider": _PROVIDER},
}
