"""An ensemble's file as a schema for editors."""

from __future__ import annotations

from luthier.spec.declarations import KEYS, TYPES
from luthier.spec.outputs import BLOCK_KEYS, FORMATS, REDIRECTS, SURE
from luthier.spec.read import UNUSED
from luthier.spec.schema import flow, steps
from luthier.spec.schema.serving import TRIGGER
from luthier.spec.schema.terms import (
    ANY,
    ANY_SECONDS,
    CONDITION,
    EXPRESSION,
    FLAG,
    OBJECT,
    TEXT,
    Schema,
    choice,
    either,
    emptied,
    items_of,
    key,
    mapping,
    ref,
    says,
    when,
    whole,
)
from luthier.spec.scoring import AGGREGATIONS, SCORE_BACKOFFS

_DECLARED = mapping(
    key("type", holds=choice(TYPES), says="Checked before anything starts."),
    key("required", holds=FLAG, says="Whether it must be given; false without it."),
    key("optional", holds=FLAG, says="The contrary of `required`."),
    key("default", says="Its value where it is not given; an expression may name `input`."),
    key("description", holds=TEXT, says="For people, and for clients of a served ensemble."),
    key("enum", holds=items_of(ANY, 1), says="The values that are allowed."),
    also=[
        *({"not": {"allOf": [says("required", flag), says("optional", flag)]}} for flag in (True, False)),
        *(
            when(
                says("type", type_),
                {
                    "properties": {
                        "default": emptied(either({"type": type_}, EXPRESSION)),
                        "enum": emptied(items_of({"type": type_})),
                    }
                },
            )
            for type_ in TYPES
        ),
    ],
)
_IS_DECLARED: Schema = {
    "type": "object",
    "minProperties": 1,
    "anyOf": [{"propertyNames": choice(sorted(KEYS))}, says("type", *TYPES)],
}
_INPUTS: Schema = {
    "type": "object",
    "additionalProperties": when(_IS_DECLARED, ref("declared_input")),
}

_FORMAT = mapping(
    key("type", holds=choice(FORMATS), needed=True),
    key("extract", holds=TEXT, says="The field of the body that is written."),
    key("content_type", holds=TEXT, says="What it is called; else what is usual for the format."),
)
_REDIRECT = mapping(
    key("url", says="Where to.", holds={"not": {"type": "null"}}, needed=True),
    key("status", holds=choice(REDIRECTS), says="302 without it."),
    key("template", says="The page that it carries, for whoever does not follow it."),
)
_BLOCK = mapping(
    key("when", holds=CONDITION, says="The first block for which it holds makes the response."),
    key("status", holds=whole(100, 599), says="200 without it."),
    key("headers", holds=OBJECT, says="Values become text."),
    key("body", says="What is delivered."),
    key("raw_body", says="What is delivered, as text."),
    key("redirect", holds=_REDIRECT, says="Goes before a body."),
    key("format", holds=either(choice(FORMATS), _FORMAT), says="The body as text of that format."),
    also=[{"not": {"required": ["body", spelled]}} for spelled in ("rawBody", "raw_body")],
)
_IS_BLOCK: Schema = {
    "type": "object",
    "propertyNames": choice(sorted(BLOCK_KEYS)),
    "anyOf": [
        *({"required": [name]} for name in sorted(SURE)),
        {"required": ["status"], "properties": {"status": {"type": "integer"}}},
    ],
}
_OUTPUTS = when({"type": "array"}, items_of(ref("block"), 1), when(_IS_BLOCK, ref("block")))

_STATE = mapping(
    key(
        "schema",
        holds={
            "type": "object",
            "additionalProperties": either(
                choice(TYPES), {"type": "object", "required": ["type"], "properties": {"type": choice(TYPES)}}
            ),
        },
        says="The types of the fields.",
    ),
    key("initial", holds=OBJECT, says="What they begin with; may name `input`."),
)

_SCORING = mapping(
    key("enabled", holds=FLAG, says="false: nothing is judged."),
    key(
        "default_thresholds", holds=steps.THRESHOLDS, says="Scores from 0 to 1; a minimum of 0.7 without it."
    ),
    key("criteria", says="What evaluators are told to go by."),
    key("max_retries", holds=whole(0, 100), says="Further attempts; 3 without it."),
    key("backoff_strategy", holds=choice(SCORE_BACKOFFS), says="How the waits grow; exponential without it."),
    key(
        "initial_backoff", holds=ANY_SECONDS, says="Milliseconds before the second attempt; 1000 without it."
    ),
    key("aggregation", holds=choice(AGGREGATIONS), says="How scores become one."),
    key("track_in_state", says="Without effect: `${scoring}` tells."),
)

_STEPS = key("agents", "steps", holds=items_of(ref("step"), 1), says="The steps.", needed=True)

ENSEMBLE: Schema = {
    "title": "An ensemble of Luthier",
    **mapping(
        key(
            "ensemble",
            "name",
            holds={"type": "string", "pattern": r"^[^\s/]([^/\r\n]*[^\s/])?$"},
            says="Its name; else that of its file.",
        ),
        key("description", holds=TEXT, says="For people, and for clients that see it as a tool."),
        key("inputs", "input", holds=_INPUTS, says="What it is given: declarations, types or defaults."),
        _STEPS,
        key(
            "flow",
            holds=ref("flow_items"),
            says="The written order; without it steps wait for what they name.",
        ),
        key(
            "outputs", "output", holds=_OUTPUTS, says="What it delivers: values, a block or a list of blocks."
        ),
        key("state", holds=_STATE, says="Fields that the steps of one run share."),
        key("scoring", holds=_SCORING, says="What holds for all steps that are judged."),
        key("cache", holds=ref("cache"), says="How long its whole result is kept."),
        key(
            "trigger",
            "triggers",
            holds=either(items_of(TRIGGER), TRIGGER),
            says="What starts it besides people.",
        ),
        key("version", says="For people."),
        *(key(name, says="Read, and without effect in this version.") for name in UNUSED),
    ),
    "$defs": {
        "declared_input": _DECLARED,
        "block": _BLOCK,
        **steps.DEFINITIONS,
        **flow.DEFINITIONS,
    },
}
