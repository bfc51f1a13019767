"""What a test claims of an execution: plain functions, and `expect(result)` for those who read better so.

Each raises AssertionError with what was there instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.taint import Integrity

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from luthier.testing.conductor import Call, Result

_ABSENT: Any = object()


def assert_successful(result: Result) -> None:
    _claim(result.success, f"the run failed: {_error(result)}")


def assert_failed(
    result: Result, *, kind: str | None = None, at: str | None = None, saying: str = ""
) -> None:
    """It failed; with an error of that kind, at that step, with these words in its message."""
    error = result.error
    _claim(error is not None, f"the run succeeded with {result.output!r}")
    if error is None:
        return
    _claim(kind in (None, error["kind"]), f"the run failed with kind {error['kind']!r}: {_error(result)}")
    _claim(at in (None, error.get("step")), f"the run failed at step {error.get('step')!r}: {_error(result)}")
    _claim(saying in error["message"], f"the run failed otherwise: {_error(result)}")


def assert_output(result: Result, expected: Any, value: Any = _ABSENT) -> None:
    """The whole output, or of a mapping one entry: `assert_output(result, "title", "Add a feature")`."""
    if value is _ABSENT:
        _claim(result.output == expected, f"the output is {result.output!r}, not {expected!r}")
        return
    there = result.output.get(expected, _ABSENT) if isinstance(result.output, dict) else _ABSENT
    _claim(there is not _ABSENT, f"there is no {expected!r} in the output {result.output!r}")
    _claim(there == value, f"{expected!r} of the output is {there!r}, not {value!r}")


def assert_output_shape(result: Result, shape: Mapping[str, type | tuple[type, ...]]) -> None:
    """The output is a mapping with these keys, whose values are of these types."""
    _claim(isinstance(result.output, dict), f"the output is {result.output!r}, no mapping")
    for key, kind in shape.items():
        _claim(key in result.output, f"there is no {key!r} in the output {result.output!r}")
        value = result.output[key]
        _claim(isinstance(value, kind), f"{key!r} of the output is {value!r}, a {type(value).__name__}")


def assert_executed(result: Result, *steps: str) -> None:
    """These steps ended without failing."""
    for step in steps:
        status = result.steps.get(step)
        _claim(status is not None, f"there is no step {step!r}; there are {', '.join(result.steps)}")
        if status is not None:
            why = (
                "was skipped"
                if status.skipped
                else f"failed: {status.error}"
                if status.failed
                else "did not run"
            )
            _claim(status.executed, f"step {step!r} {why}")


def assert_not_executed(result: Result, *steps: str) -> None:
    """These steps were not even started."""
    for step in steps:
        status = result.steps.get(step)
        _claim(status is None or not status.attempted, f"step {step!r} was started")


def assert_called(
    result: Result, tool: str, arguments: Mapping[str, Any] | None = None, *, times: int | None = None
) -> None:
    """`server:tool` was called: with these arguments at least once, or so many times."""
    calls = [call for call in result.calls if call.key == tool]
    if times is not None:
        _claim(
            len(calls) == times, f"{tool} was called {len(calls)} times, not {times}: {_list(result.calls)}"
        )
    else:
        _claim(bool(calls), f"{tool} was not called: {_list(result.calls)}")
    if arguments is not None:
        fitting = any(call.arguments == dict(arguments) for call in calls)
        _claim(fitting, f"{tool} was not called with {dict(arguments)!r}: {_list(tuple(calls))}")


def assert_not_called(result: Result, tool: str) -> None:
    assert_called(result, tool, times=0)


def assert_untrusted(result: Result, *sources: str) -> None:
    """The output is marked as untrusted, and as made from these tools, written `server:tool`."""
    _claim(result.label.integrity is Integrity.untrusted, f"the output is trusted: {result.label!r}")
    there = {f"{source.server}:{source.tool}" for source in result.label.sources}
    for source in sources:
        _claim(source in there, f"the output does not come from {source}, but from {sorted(there)}")


def assert_executed_steps(result: Result, count: int) -> None:
    """So many steps ended without failing, control steps and iterations left out."""
    names = [name for name, status in result.steps.items() if status.executed and "." not in name]
    _claim(len(names) == count, f"{len(names)} steps were executed, not {count}: {', '.join(names)}")


def assert_duration(
    result: Result, *, less_than: float | None = None, greater_than: float | None = None
) -> None:
    """How many milliseconds it took, by the clock of the test."""
    took = result.duration
    _claim(less_than is None or took < less_than, f"it took {took:g} ms, not less than {less_than}")
    _claim(greater_than is None or took > greater_than, f"it took {took:g} ms, not more than {greater_than}")


def assert_state(result: Result, expected: Mapping[str, Any]) -> None:
    """Steps have set these fields of the state, to these values at last."""
    for field, value in expected.items():
        _claim(field in result.state, f"no step set {field!r}; set were {', '.join(result.state) or 'none'}")
        there = result.state[field]
        _claim(there == value, f"{field!r} of the state is {there!r}, not {value!r}")


def assert_called_ai(result: Result, provider: str | None = None, *, times: int | None = None) -> None:
    """A model was asked, or one of that provider; at least once, or so many times."""
    turns = [call for call in result.turns if provider in (None, call.uri.name.rpartition("/")[2])]
    asked = f"{provider or 'a model'} was asked {len(turns)} times"
    _claim(len(turns) == times if times is not None else bool(turns), f"{asked}: {_list(result.turns)}")


def assert_used_tokens(result: Result, least: int) -> None:
    """The models took at least so many tokens."""
    used = sum(call.tokens for call in result.turns)
    _claim(used >= least, f"{used} tokens were used, not {least}")


def assert_cost_less_than(result: Result, dollars: float) -> None:
    """The models cost less; a price that nobody knows is no claim."""
    unknown = [call.arguments.get("model") for call in result.turns if call.cost is None]
    _claim(not unknown, f"nobody knows what {', '.join(map(str, unknown))} costs")
    cost = sum(call.cost or 0.0 for call in result.turns)
    _claim(cost < dollars, f"it cost {cost:g} dollars, not less than {dollars:g}")


class Expectation:
    """The same claims, one after the other: `expect(result).to_be_successful().to_have_called(…)`."""

    def __init__(self, result: Result) -> None:
        self._result = result

    def to_be_successful(self) -> Self:
        assert_successful(self._result)
        return self

    def to_have_failed(self, *, kind: str | None = None, at: str | None = None, saying: str = "") -> Self:
        assert_failed(self._result, kind=kind, at=at, saying=saying)
        return self

    def to_have_output(self, expected: Any, value: Any = _ABSENT) -> Self:
        assert_output(self._result, expected, value)
        return self

    def to_match_output_shape(self, shape: Mapping[str, type | tuple[type, ...]]) -> Self:
        assert_output_shape(self._result, shape)
        return self

    def to_have_executed(self, *steps: str) -> Self:
        assert_executed(self._result, *steps)
        return self

    def not_to_have_executed(self, *steps: str) -> Self:
        assert_not_executed(self._result, *steps)
        return self

    def to_have_called(
        self, tool: str, arguments: Mapping[str, Any] | None = None, *, times: int | None = None
    ) -> Self:
        assert_called(self._result, tool, arguments, times=times)
        return self

    def not_to_have_called(self, tool: str) -> Self:
        assert_not_called(self._result, tool)
        return self

    def to_have_executed_steps(self, count: int) -> Self:
        assert_executed_steps(self._result, count)
        return self

    def to_have_duration(self, *, less_than: float | None = None, greater_than: float | None = None) -> Self:
        assert_duration(self._result, less_than=less_than, greater_than=greater_than)
        return self

    def to_have_completed_in(self, milliseconds: float) -> Self:
        assert_duration(self._result, less_than=milliseconds)
        return self

    def to_have_state(self, field: str, value: Any) -> Self:
        assert_state(self._result, {field: value})
        return self

    def to_match_state(self, expected: Mapping[str, Any]) -> Self:
        assert_state(self._result, expected)
        return self

    def to_have_called_ai(self, provider: str | None = None, *, times: int | None = None) -> Self:
        assert_called_ai(self._result, provider, times=times)
        return self

    def to_have_used_tokens(self, least: int) -> Self:
        assert_used_tokens(self._result, least)
        return self

    def to_have_cost_less_than(self, dollars: float) -> Self:
        assert_cost_less_than(self._result, dollars)
        return self

    def to_be_untrusted(self, *sources: str) -> Self:
        assert_untrusted(self._result, *sources)
        return self


def expect(result: Result) -> Expectation:
    """Claims about an execution, one after the other."""
    return Expectation(result)


def _claim(holds: bool, otherwise: str) -> None:  # noqa: FBT001  (it is the claim itself)
    if not holds:
        raise AssertionError(otherwise)


def _error(result: Result) -> str:
    error = result.error or {}
    return f"[{error.get('kind')}] at {error.get('step')!r}: {error.get('message')}"


def _list(calls: tuple[Call, ...]) -> str:
    return "; ".join(f"{call.key}({call.arguments!r})" for call in calls) or "nothing was called"
