"""The `config` of each operation, as schemas for editors."""

from __future__ import annotations

from typing import get_args

from luthier.spec.api import HIGHEST, LARGEST, LOWEST, MAPPINGS, SPELLED
from luthier.spec.ensemble import CoerceType, TableFormat
from luthier.spec.hitl import CLOSED, UNMET
from luthier.spec.schema.terms import (
    ANY,
    ANY_SECONDS,
    EXPRESSION,
    FILLED,
    FLAG,
    LITERAL,
    MAPPING,
    OBJECT,
    PLAIN,
    SECONDS,
    TEXT,
    TEXT_MAP,
    TEXTS,
    Key,
    Schema,
    choice,
    either,
    items_of,
    key,
    mapping,
    says,
    when,
    whole,
    without,
)
from luthier.spec.storage import ACTIONS, NAMES, TAKES
from luthier.spec.think import ROLES, SETTINGS
from luthier.tools.closed import LONGEST, MOST

_TIMEOUT = key("timeout", holds=SECONDS, says="Milliseconds that one request may take.")

_TOOLS = mapping(
    key("mcp", holds=LITERAL, says="The server, by its id in luthier.yaml.", needed=True),
    key("tool", holds=LITERAL, says="One of its tools.", needed=True),
    key(
        "timeout",
        holds=SECONDS,
        says="Milliseconds that the call may take; else what the server's entry says.",
    ),
    key(
        "cache_discovery",
        holds=FLAG,
        says="Whether the list of its server's tools may be as old as `cache_ttl`; else as its entry says.",
    ),
    key("cache_ttl", "cacheTTL", holds=ANY_SECONDS, says="Seconds; 300 without it."),
)

_CODE = mapping(
    key(
        "script",
        holds={
            "type": "string",
            "allOf": [LITERAL, {"pattern": r"^\s*(\./)?(scripts/|script://)[^\n(\\]*$"}],
        },
        says="A Python file below scripts/, with a function `run(context)`.",
        needed=True,
    )
)

_ENSEMBLE = mapping(
    key("ensemble", "name", holds=LITERAL, says="The ensemble that runs inside.", needed=True)
)

_BOUNDS = {"type": "array", "prefixItems": [{"type": "number"}] * 2, "minItems": 2, "maxItems": 2}
_CLOSED = either(
    {"const": "boolean"},
    mapping(
        key(
            "enum",
            holds={
                "type": "array",
                "minItems": 1,
                "maxItems": MOST,
                "items": {"type": ["string", "number", "boolean", "null"], "maxLength": LONGEST},
            },
            needed=True,
        )
    ),
    mapping(key("integer", holds=_BOUNDS, needed=True)),
    mapping(key("number", holds=_BOUNDS, needed=True)),
    mapping(key("pattern", holds={"type": "string", "maxLength": LONGEST}, needed=True)),
    {
        "type": "object",
        "required": ["id_of"],
        "properties": {"id_of": {"not": {"type": "null"}}},
        "additionalProperties": False,
    },
)
_ENDORSE = mapping(
    key("value", says="What is to be trusted.", holds={"not": {"type": "null"}}, needed=True),
    key(
        "as", holds=_CLOSED, says="The closed type that it must be of, or `id_of`: one of these.", needed=True
    ),
    key("reason", holds=FILLED, says="Why; it is written down.", needed=True),
)

_MESSAGE = mapping(
    key("role", holds=either(choice(ROLES), EXPRESSION), needed=True),
    key("content", needed=True),
)
_PENALTY: Schema = {"type": "number", "minimum": -2, "maximum": 2}
_SETTINGS: dict[str, tuple[Schema, str]] = {
    "model": (TEXT, "The model's name, as the provider calls it."),
    "prompt": (TEXT, "What is asked."),
    "system": (TEXT, "What the model is told before."),
    "messages": (
        either(items_of(either(_MESSAGE, EXPRESSION)), EXPRESSION),
        "A conversation: a list of `{role, content}`.",
    ),
    "temperature": (
        either({"type": "number", "minimum": 0, "maximum": 2}, EXPRESSION),
        "0 is 0: always the likeliest.",
    ),
    "max_tokens": (either(whole(1), EXPRESSION), "How long the answer may become."),
    "top_p": (either({"type": "number", "minimum": 0, "maximum": 1}, EXPRESSION), "From 0 to 1."),
    "frequency_penalty": (either(_PENALTY, EXPRESSION), "From -2 to 2: against saying the same again."),
    "presence_penalty": (either(_PENALTY, EXPRESSION), "From -2 to 2: against staying with one subject."),
    "stop": (either(TEXTS, TEXT), "Texts at which the answer ends."),
    "seed": (either(whole(None), EXPRESSION), "For providers that repeat themselves on request."),
}
_THINK = mapping(
    key("provider", holds=PLAIN, says="Who is asked: a provider of luthier.yaml, anthropic or openai."),
    *(key(*names, holds=_SETTINGS[name][0], says=_SETTINGS[name][1]) for name, names in SETTINGS.items()),
    key(
        "schema",
        "output_schema",
        holds={"type": "object", "minProperties": 1},
        says="The JSON Schema of the answer, which is then a value and no text.",
    ),
    key("timeout", holds=SECONDS, says="Milliseconds that the turn may take."),
)

_BODY = key("body", holds=ANY, says="What is sent: text as it is, anything else as JSON.")
_FORM = key("form", holds=MAPPING, says="Fields of a form, in place of `body`.")
_SAID = {
    "params": "The query; a list is its name several times, null is nothing.",
    "headers": "Headers of the request.",
}
_WITH_BODY = [spelled for spelled, method in SPELLED.items() if method not in ("GET", "HEAD")]
_API = mapping(
    key("url", holds=FILLED, says="The address.", needed=True),
    key("method", holds=choice(SPELLED), says="GET without it."),
    *(key(name, holds=MAPPING, says=_SAID[name]) for name in MAPPINGS if name in _SAID),
    _BODY,
    _FORM,
    key(
        "max_bytes",
        holds=whole(1, LARGEST),
        says="Bytes of the answer, unpacked, at most; 10 MiB without it.",
    ),
    _TIMEOUT,
    key(
        "allow_status",
        holds=either({"const": "any"}, items_of(whole(LOWEST, HIGHEST))),
        says="Answers of these statuses are data, not failures.",
    ),
    key("allow_private", holds=FLAG, says="Whether the address may be private or this machine's own."),
    key("idempotent", holds=FLAG, says="Whether the request may be sent twice; else as the method says."),
    also=[
        when({"not": says("method", *_WITH_BODY)}, without([_BODY, _FORM])),
        {"not": {"required": ["body", "form"]}},
    ],
)

_COLUMNS = choice(get_args(TableFormat))
_SOURCES = tuple(
    key(name, holds=holds, says=said, empty=False)
    for name, holds, said in (
        ("value", ANY, "The value itself."),
        ("merge", either(items_of(ANY, 1), FILLED), "Mappings that become one, or lists that become one."),
        ("input", ANY, "What the keys below work on, in the order in which they stand here."),
    )
)
_TRANSFORM = mapping(
    *_SOURCES,
    key("parse", holds=_COLUMNS, says="Text as a table."),
    key("filter", holds=TEXT, says="Keeps the rows where this field is truthy."),
    key("trim", holds=FLAG, says="Takes blanks off texts."),
    key("compact", holds=FLAG, says="Takes out what is null."),
    key(
        "coerce",
        holds={"type": "object", "additionalProperties": choice(get_args(CoerceType))},
        says="Fields as values of a type.",
    ),
    key("defaults", holds=OBJECT, says="What fields are where they are missing.", empty=False),
    key("rename", holds=TEXT_MAP, says="New names of fields."),
    key("pick", holds=TEXTS, says="The fields that stay."),
    key("omit", holds=TEXTS, says="The fields that go."),
    key("dedupe", holds={"type": ["boolean", "string"]}, says="Rows once, or once by that field."),
    key(
        "sort",
        holds=either(
            TEXT, mapping(key("by", holds=FILLED, needed=True), key("order", holds=choice(("asc", "desc"))))
        ),
        says="The field that rows are ordered by, or `{by, order}`.",
    ),
    key("offset", holds=whole(), says="Rows to leave out at the beginning."),
    key("limit", holds=whole(1), says="Rows at most."),
    key("format", holds=_COLUMNS, says="The table as text."),
    key("columns", holds=TEXTS, says="The columns of a csv or tsv that is written."),
    also=[
        {"oneOf": [{"required": [source.names[0]]} for source in _SOURCES]},
        when({"not": {"required": ["input"]}}, {"maxProperties": 1}),
    ],
)


_HITL = mapping(
    key("action", holds=choice(("suspend",)), says="Says what is so anyway."),
    key("prompt", "message", holds=TEXT, says="What the person is asked."),
    key("data", says="What they see besides."),
    key(
        "schema",
        holds=when(
            {
                "type": "object",
                "maxProperties": 1,
                "minProperties": 1,
                "propertyNames": choice(sorted(CLOSED)),
            },
            _CLOSED,
            either({"const": "boolean"}, {"type": "object", "minProperties": 1}),
        ),
        says="What the answer must be: a closed type, or a JSON Schema.",
    ),
    key("timeout", holds=SECONDS, says="Milliseconds that it is waited for."),
    key("on_reject", holds=choice(UNMET), says="What comes of a no; fail without it."),
    key("on_timeout", holds=choice(UNMET), says="What comes when nobody answered; fail without it."),
    key(
        "approvers",
        holds=items_of(LITERAL, 1),
        says="Who may answer: clients, roles, or `caller`.",
    ),
)

_KEPT_SAYS = {
    "key": "What the value is kept under.",
    "value": "What is kept.",
    "ttl": "Seconds that it is kept.",
    "expiration": "Until when, in Unix seconds.",
    "metadata": "What is kept beside it.",
    "prefix": "How the names begin that are listed.",
    "limit": "How many at most.",
    "cursor": "Where the last list ended.",
    "path": "Of the file, in the project's folder for them.",
    "content": "What the file holds.",
    "encoding": "text, or base64 for bytes.",
}
_KEPT = {
    "ttl": either(SECONDS, EXPRESSION),
    "limit": either(SECONDS, EXPRESSION),
    "expiration": either({"type": "number"}, EXPRESSION),
    "encoding": either(choice(("text", "base64")), EXPRESSION),
    "value": ANY,
    "metadata": ANY,
}


def _storage() -> Schema:
    """One mapping for each type and action: what it needs, and what it may have."""
    types = key("type", "backend", holds=choice(ACTIONS), says="What is kept: values, or files.", needed=True)
    verbs = key(
        "action",
        "operation",
        holds=choice(name for actions in ACTIONS.values() for name in actions),
        says="What is done with it.",
        needed=True,
    )
    forms = []
    for (type_, action), (needed, more) in TAKES.items():
        spellings = [word for word, meaning in ACTIONS[type_].items() if meaning == action]
        this = key(*types.names, holds=choice((type_,)), says=types.says, needed=True)
        form = mapping(this, verbs, *(_kept(type_, name, needed=name in needed) for name in (*needed, *more)))
        chosen = [_named(types, type_), _named(verbs, *spellings)]
        forms.append(when({"allOf": chosen}, form))
    known = [
        when(_named(types, type_), {"properties": {name: choice(actions) for name in verbs.spellings}})
        for type_, actions in ACTIONS.items()
    ]
    return mapping(types, verbs, also=[*known, *forms], closed=False)


def _named(one: Key, *values: str) -> Schema:
    return {"anyOf": [says(spelled, *values) for spelled in one.spellings]}


def _kept(type_: str, name: str, *, needed: bool) -> Key:
    return key(*NAMES[type_][name], holds=_KEPT.get(name, TEXT), says=_KEPT_SAYS[name], needed=needed)


_STORAGE = _storage()

CONFIGS: dict[str, Schema] = {
    "tools": _TOOLS,
    "code": _CODE,
    "transform": _TRANSFORM,
    "ensemble": _ENSEMBLE,
    "endorse": _ENDORSE,
    "think": _THINK,
    "api": _API,
    "http": _API,
    "storage": _STORAGE,
    "hitl": _HITL,
}
"""What `config` may say, by operation."""
