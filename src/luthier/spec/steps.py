"""Reads the list of steps: each entry on its own, so that a faulty one costs only itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from luthier.expr import compile_value
from luthier.spec.control import Backoff, Cache, OnTimeout, Retry
from luthier.spec.draft import Draft, Uses
from luthier.spec.ensemble import Step
from luthier.spec.expressions import placed, placed_condition
from luthier.spec.names import name_fault
from luthier.spec.operations import read_config, read_operation
from luthier.spec.origin import Origin
from luthier.spec.reader import Reader
from luthier.spec.scoring import read_scoring
from luthier.spec.state import read_step_state
from luthier.spec.words import quoted

if TYPE_CHECKING:
    from luthier.spec.expressions import Placed
    from luthier.spec.origin import KeyPath
    from luthier.spec.reader import Sink

UNUSED = ("schema", "logging", "metrics")

BACKOFFS = ("exponential", "linear", "fixed")
_DEFAULTS = Retry()


def read_steps(sink: Sink, path: KeyPath, value: Any) -> list[Draft]:
    """Every entry of `agents:`, the faulty ones too; one without a name is called nothing."""
    if not isinstance(value, list):
        sink.add(f"{quoted(str(path[-1]))} must be a list of steps", path)
        return []
    if not value:
        sink.add("an ensemble has at least one step", path)
    drafts: list[Draft] = []
    lines: dict[str, int] = {}
    for index, item in enumerate(value):
        reader = Reader.of(sink, (*path, index), item, "a step")
        if reader is None:
            continue
        draft = _read_step(reader)
        drafts.append(draft)
        at = (*draft.path, "name")
        if draft.name in lines:
            where = f"the first is in line {lines[draft.name]}" if lines[draft.name] else ""
            sink.add(f"there are two steps named {quoted(draft.name)}", at, suggestion=where)
        elif draft.name:
            lines[draft.name], _ = sink.document.mark(at)
    return drafts


def _read_step(reader: Reader) -> Draft:
    sink = reader.sink
    name = reader.text("name", required=True)
    if name is not None and (fault := name_fault(name)):
        sink.add(f"a step cannot be named {quoted(name)}", (*reader.path, "name"), suggestion=fault)
    draft = Draft(name or "", reader.path)
    operation = read_operation(reader)
    config = read_config(operation, reader, draft) if operation else None
    if operation is None:
        _note_config(reader, draft)
    fields = read_common(reader, draft.uses)
    description = reader.text("description") or ""
    reader.refuse(UNUSED, lambda key: f"this version does not use {quoted(key)} of steps yet", warning=True)
    reader.done()
    if operation and config:
        origin = Origin(sink.document, reader.path, reader.places)
        draft.step = Step(
            name=draft.name,
            operation=operation,
            config=config,
            description=description,
            origin=origin,
            **fields,
        )
        _check_arguments(sink, draft.step, draft)
        _check_fields(reader, draft.step)
    return draft


def read_common(reader: Reader, uses: Uses) -> dict[str, Any]:
    """What a step and its place in a flow have in common: inputs, condition, depends_on, retry, timeout."""
    inputs = placed(reader.sink, reader.take("inputs", "input"))
    condition = placed_condition(reader.sink, reader.take("condition", "when"))
    uses.expressions |= {key: use for key, use in (("inputs", inputs), ("condition", condition)) if use}
    if depends_on := reader.take("depends_on"):
        path, value = depends_on
        reader.sink.texts(path, value, "a list of step names")
        names = enumerate(value if isinstance(value, list) else ())
        uses.depends_on = [((*path, index), name) for index, name in names if isinstance(name, str)]
    return {
        "inputs": inputs.compiled if inputs else None,
        "condition": condition.compiled if condition else None,
        "depends_on": tuple(name for _, name in uses.depends_on),
        "retry": _read_retry(reader.inner("retry")),
        "timeout": reader.seconds("timeout"),
        "on_timeout": _read_on_timeout(reader, uses),
        "cache": read_cache(reader, uses.expressions),
        "state": read_step_state(reader, uses),
        "scoring": read_scoring(reader, uses),
    }


def _read_on_timeout(reader: Reader, uses: Uses) -> OnTimeout | None:
    """`{fallback: value}` or `{error: message}`; `error: false` is a fallback of null."""
    inner = reader.inner("on_timeout")
    if inner is None:
        return None
    there = inner.raw("fallback")
    fallback = placed(reader.sink, there)
    error = inner.take("error")
    inner.done()
    if fallback is not None:
        uses.expressions["on_timeout.fallback"] = fallback
        if error is not None and error.value:
            reader.sink.add("only one of `fallback` and `error` can be", error.path, key=True)
        return OnTimeout(fallback=fallback.compiled)
    if error is None:
        reader.sink.add("one of `fallback` and `error` is missing", inner.path)
    elif error.value is False:
        return OnTimeout(fallback=compile_value(None))
    elif isinstance(error.value, str):
        return OnTimeout(error=error.value)
    elif error.value is not True:
        reader.sink.wrong("text, true or false", *error)
    return None


def read_cache(reader: Reader, expressions: dict[str, Placed]) -> Cache | None:
    """`{ttl: seconds, key: expression}`; with `bypass: true` there is none."""
    inner = reader.inner("cache")
    if inner is None:
        return None
    needed = inner.take("ttl", required=True)
    ttl = inner.seconds("ttl", per=1) if needed else None
    key = placed(reader.sink, inner.take("key"))
    bypass = inner.flag("bypass")
    inner.done()
    if key is not None:
        expressions["cache.key"] = key
    if ttl is None or bypass:
        return None
    return Cache(ttl=ttl, key=key.compiled if key else None)


def _read_retry(reader: Reader | None) -> Retry | None:
    if reader is None:
        return None
    attempts = reader.whole("max_attempts", "attempts", low=1, high=100)
    backoff = reader.choice(BACKOFFS, "backoff")
    initial = reader.seconds("initial_delay", zero=True)
    longest = reader.seconds("max_delay", zero=True)
    retry_on = _read_retry_on(reader)
    reader.done({"retryIf": "list statuses or error kinds under `retryOn`"})
    return Retry(
        max_attempts=attempts or _DEFAULTS.max_attempts,
        backoff=cast("Backoff", backoff or _DEFAULTS.backoff),
        initial_delay=_DEFAULTS.initial_delay if initial is None else initial,
        max_delay=_DEFAULTS.max_delay if longest is None else longest,
        retry_on=_DEFAULTS.retry_on if retry_on is None else retry_on,
    )


def _read_retry_on(reader: Reader) -> tuple[int | str, ...] | None:
    found = reader.take("retry_on")
    if found is None:
        return None
    if not isinstance(found.value, list):
        reader.sink.wrong("a list of statuses", *found)
        return None
    for index, item in enumerate(found.value):
        if not isinstance(item, (int, str)) or isinstance(item, bool):
            reader.sink.wrong("a status or the name of an error kind", (*found.path, index), item)
    return tuple(found.value)


def _check_fields(reader: Reader, step: Step) -> None:
    """What a step of its operation cannot have."""
    if step.cache is not None and step.operation in ("transform", "endorse", "hitl"):
        reader.sink.add(f"what a `{step.operation}` makes is not cached", reader.places["cache"], key=True)
    if step.timeout is not None and step.operation == "hitl":
        message = "the time that a person has is `timeout` of the step's `config`"
        reader.sink.add(message, reader.places["timeout"], key=True)


def _note_config(reader: Reader, draft: Draft) -> None:
    """The config of an operation that we lack: only its expressions are looked at."""
    if found := placed(reader.sink, reader.take("config")):
        draft.uses.expressions["config"] = found
    for key in ("agent", "prompt"):
        reader.take(key)


def _check_arguments(sink: Sink, step: Step, draft: Draft) -> None:
    """A tool and a nested ensemble take a mapping; what is no expression can be judged now."""
    inputs = draft.uses.expressions.get("inputs")
    if inputs is None or step.operation not in ("tools", "ensemble"):
        return
    if inputs.compiled and inputs.compiled.is_constant and not isinstance(inputs.value, dict):
        sink.wrong("a mapping", inputs.path, inputs.value)
