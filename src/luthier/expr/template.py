"""Values whose strings may hold expressions: what a step's inputs, conditions and outputs are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.errors import ExpressionError
from luthier.expr.budget import ITEM, Frame
from luthier.expr.calculate import Run, join_text
from luthier.expr.expression import Expression, parse
from luthier.expr.scan import Segment, UnclosedError, segments
from luthier.taint import Labelled, merge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luthier.expr.references import Reference
    from luthier.expr.scope import Scope

Path = tuple[str | int, ...]

_DEEPEST = 100  # levels of a document


class Compiled:
    """A JSON-like value with its expressions parsed. Containers are entered, keys are left alone.

    `source` is the value as written. `is_constant` says that it holds no expression at all.
    """

    __slots__ = ("_run", "is_constant", "looked_at", "references", "source")

    def __init__(self, source: Any, expressions: list[Expression], run: Run) -> None:
        self.source = source
        self.is_constant = not expressions
        self.references: frozenset[Reference] = frozenset().union(*(one.references for one in expressions))
        self.looked_at: frozenset[str] = frozenset().union(*(one.looked_at for one in expressions))
        self._run = run

    def __repr__(self) -> str:
        return f"Compiled({self.source!r})"

    def evaluate(self, scope: Scope) -> Labelled[Any]:
        """The value with one label per leaf. Raises ExpressionError, and nothing else.

        A string that is one lone expression gives its value as it is, envelopes kept; any other string gives
        text. What comes out of the scope is not copied: it must not be changed.
        """
        try:
            return self._run(Frame(scope))
        except RecursionError:
            raise ExpressionError("The data is nested too deeply for this expression.") from None


def compile_value(value: Any) -> Compiled:
    """Parse every expression in a value. Raises ExpressionError for the first fault."""
    expressions: list[Expression] = []
    run = _compile(value, expressions, 0)
    return Compiled(value, expressions, run)


def compile_condition(value: Any) -> Compiled:
    """Parse a condition: text without delimiters, or with several, is one expression as well.

    So `a.failed`, `${a.failed}` and `${a.failed} && ${b.failed}` are conditions.
    """
    if not isinstance(value, str) or _is_lone(value):
        return compile_value(value)
    if not value.strip():
        raise ExpressionError("An empty condition.", source=value, offset=0)
    expression = parse(value)
    return Compiled(value, [expression], _placed(expression.run, value, 0))


def compile_faults(value: Any) -> list[tuple[Path, ExpressionError]]:
    """Every fault in a value: the path of the string that holds it, and the error with its offset in it."""
    return list(_faults(value, ()))


def _faults(value: Any, path: Path) -> Iterator[tuple[Path, ExpressionError]]:
    if len(path) > _DEEPEST:
        yield path, _too_deep()
        return
    match value:
        case str():
            for error in _string_faults(value):
                yield path, error
        case dict():
            for key, item in value.items():
                yield from _faults(item, (*path, key))
        case list() | tuple():
            for index, item in enumerate(value):
                yield from _faults(item, (*path, index))


def _string_faults(text: str) -> Iterator[ExpressionError]:
    try:
        cut = segments(text)
    except UnclosedError as error:
        yield _unclosed(text, error)
        return
    for segment in cut:
        if segment.is_expression:
            try:
                _parse_within(text, segment)
            except ExpressionError as error:
                yield error


def _compile(value: Any, expressions: list[Expression], depth: int) -> Run:
    if depth > _DEEPEST:
        raise _too_deep()
    before = len(expressions)
    match value:
        case str():
            return _compile_string(value, expressions)
        case dict():
            entries = {key: _compile(item, expressions, depth + 1) for key, item in value.items()}
            if len(expressions) > before:
                return lambda frame: merge({key: run(_paid(frame)) for key, run in entries.items()})
        case list() | tuple():
            items = [_compile(item, expressions, depth + 1) for item in value]
            if len(expressions) > before:
                return lambda frame: merge([run(_paid(frame)) for run in items])
    constant = _unescaped(value)
    return lambda _: Labelled(_fresh(constant))


def _compile_string(text: str, expressions: list[Expression]) -> Run:
    try:
        cut = segments(text)
    except UnclosedError as error:
        raise _unclosed(text, error) from None
    parts: list[str | Run] = []
    for segment in cut:
        if not segment.is_expression:
            parts.append(segment.content)
            continue
        expression = _parse_within(text, segment)
        expressions.append(expression)
        parts.append(_placed(expression.run, text, segment.start))
    if len(parts) == 1 and not isinstance(parts[0], str):
        return parts[0]
    if all(isinstance(part, str) for part in parts):
        plain = Labelled("".join(map(str, parts)))
        return lambda _: plain
    fixed = tuple(parts)
    return _placed(lambda frame: join_text(fixed, frame), text, 0)


def _parse_within(text: str, segment: Segment) -> Expression:
    try:
        return parse(segment.content)
    except ExpressionError as error:
        error.source = text
        error.offset += segment.start
        if text.startswith("${{", segment.start - 2):
            error.hint = "Write ${…} or {{…}}, not both."
        raise


def _too_deep() -> ExpressionError:
    return ExpressionError(f"This value is nested deeper than {_DEEPEST} levels.")


def _unclosed(text: str, error: UnclosedError) -> ExpressionError:
    opening = text[error.start : error.start + 2]
    return ExpressionError(
        f"`{opening}` is not closed.",
        source=text,
        offset=error.start,
        hint=f"Close its quotes and brackets, or write \\{opening} where it is only text.",
    )


def _placed(work: Run, text: str, start: int) -> Run:
    """The same work, its faults pointing into the string that was written."""

    def run(frame: Frame) -> Labelled[Any]:
        try:
            return work(frame)
        except ExpressionError as error:
            if not error.source:
                error.source = text
                error.offset = max(error.offset, 0) + start
            raise

    return run


def _paid(frame: Frame) -> Frame:
    frame.spend(ITEM)
    return frame


def _unescaped(value: Any) -> Any:
    """A value without expressions as it is meant, the escapes in its strings undone."""
    match value:
        case str():
            return "".join(segment.content for segment in segments(value))
        case dict():
            return {key: _unescaped(item) for key, item in value.items()}
        case list() | tuple():
            return [_unescaped(item) for item in value]
        case _:
            return value


def _fresh(value: Any) -> Any:
    """A copy of a constant, so that nobody can change what the file says."""
    match value:
        case dict():
            return {key: _fresh(item) for key, item in value.items()}
        case list() | tuple():
            return [_fresh(item) for item in value]
        case _:
            return value


def _is_lone(text: str) -> bool:
    try:
        cut = segments(text)
    except UnclosedError:
        return True
    return len(cut) == 1 and cut[0].is_expression
