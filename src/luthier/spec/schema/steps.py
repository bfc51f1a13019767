"""A step, and what steps and their places in a flow have in common, as schemas for editors."""

from __future__ import annotations

from luthier.spec.control import Retry
from luthier.spec.schema.operations import CONFIGS
from luthier.spec.schema.terms import (
    ANY_SECONDS,
    CONDITION,
    FILLED,
    FLAG,
    MAPPING,
    OBJECT,
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
    ref,
    says,
    when,
    whole,
)
from luthier.spec.scoring import ON_LOW
from luthier.spec.steps import BACKOFFS, UNUSED

NAME: Schema = {"type": "string", "pattern": r"^[A-Za-z_][A-Za-z0-9_]*(-[A-Za-z0-9_]+)*$", "maxLength": 64}
"""What a step may be called, as far as a pattern can say it."""

CACHE = mapping(
    key("ttl", holds=SECONDS, says="Seconds that a result is kept.", needed=True),
    key("key", says="What it is kept by; else all that was given."),
    key("bypass", holds=FLAG, says="Turns it off."),
)

_FALLBACK = key("fallback", says="What the step's output is then; it has succeeded.")
_ERROR = key("error", holds={"type": ["string", "boolean"]}, says="The failure in other words; false: null.")
_ON_TIMEOUT = mapping(
    _FALLBACK,
    _ERROR,
    also=[
        {"anyOf": [{"required": ["fallback"]}, needs(_ERROR)]},
        when({"required": ["fallback"]}, {"properties": {"error": {"enum": [False, "", None]}}}),
    ],
)

_USUAL = Retry()
_RETRY = mapping(
    key(
        "max_attempts",
        "attempts",
        holds=whole(1, 100),
        says=f"Tries in all; {_USUAL.max_attempts} without it.",
    ),
    key("backoff", holds=choice(BACKOFFS), says="How the waits grow; exponential without it."),
    key("initial_delay", holds=ANY_SECONDS, says="Milliseconds before the second try; 1000 without it."),
    key("max_delay", holds=ANY_SECONDS, says="Milliseconds that a wait grows to at most; 30000 without it."),
    key(
        "retry_on",
        holds=items_of({"type": ["integer", "string"]}),
        says="Statuses of HTTP and kinds of errors that are tried again.",
    ),
)

_STATE = mapping(
    key("use", holds=TEXTS, says="Fields that a script sees as `context.state`."),
    key(
        "set",
        holds=either(OBJECT, TEXTS),
        says="Fields that a script writes, or values written after the step.",
    ),
)

_SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
THRESHOLDS = mapping(
    key("minimum", holds=_SHARE, says="Below it the output will not do.", needed=True),
    key("target", holds=_SHARE, says="For people."),
    key("excellent", holds=_SHARE, says="For people."),
)
_SCORING = mapping(
    key("evaluator", holds=FILLED, says="The step that judges; it runs only for that.", needed=True),
    key("thresholds", holds=THRESHOLDS, says="Scores from 0 to 1; else the ensemble's."),
    key("criteria", says="What the evaluator is told to go by."),
    key(
        "on_failure", holds=choice(ON_LOW), says="What comes of a score below the minimum; retry without it."
    ),
    key("retry_limit", holds=whole(0, 100), says="Further attempts; else the ensemble's, 3."),
    key("require_improvement", holds=FLAG, says="Whether each attempt must be better than the one before."),
    key("min_improvement", holds=_SHARE, says="By how much."),
)

COMMON = (
    key("inputs", "input", says="What it is given; else the ensemble's inputs."),
    key("condition", "when", holds=CONDITION, says="It runs only where this is true."),
    key("depends_on", holds=TEXTS, says="Steps that it waits for, besides those that its expressions name."),
    key("retry", holds=ref("retry"), says="How often it is tried, and on what."),
    key("timeout", holds=SECONDS, says="Milliseconds until it is called off."),
    key("on_timeout", holds=ref("on_timeout"), says="What comes when it takes too long."),
    key("cache", holds=ref("cache"), says="How long its result is kept."),
    key("state", holds=ref("step_state"), says="What it uses and sets of the state."),
    key("scoring", holds=ref("scoring"), says="Who judges its output, and what comes of a low score."),
)

UNUSED_KEYS = tuple(key(name, says="Read, and without effect in this version.") for name in UNUSED)

_STEP = mapping(
    key("name", holds=NAME, says="What expressions call it.", needed=True),
    key("operation", holds=choice(CONFIGS), says="What it does.", needed=True),
    key("config", holds=OBJECT, says="What its operation needs to know.", needed=True),
    key("description", holds=TEXT, says="For people."),
    *COMMON,
    *UNUSED_KEYS,
    also=[
        *(
            when(says("operation", name), {"properties": {"config": ref(f"{name}_config")}})
            for name in CONFIGS
        ),
        when(
            says("operation", "tools", "ensemble"),
            {"properties": {name: either(MAPPING, {"type": "null"}) for name in ("inputs", "input")}},
        ),
        when(says("operation", "transform", "endorse", "hitl"), {"properties": {"cache": {"type": "null"}}}),
        when(says("operation", "hitl"), {"properties": {"timeout": {"type": "null"}}}),
    ],
)

DEFINITIONS: dict[str, Schema] = {
    "step": _STEP,
    "cache": CACHE,
    "retry": _RETRY,
    "on_timeout": _ON_TIMEOUT,
    "step_state": _STATE,
    "scoring": _SCORING,
    **{f"{name}_config": config for name, config in CONFIGS.items()},
}
