"""Python functions as tools: how they are described, called, and answered for."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import enum
import logging
import math
import threading
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import pytest
from pydantic import BaseModel, Field

from luthier.clock import FakeClock
from luthier.context import CallContext
from luthier.errors import CallTimeoutError, ToolDefinitionError
from luthier.taint import TRUSTED, UNTRUSTED, Labelled
from luthier.tools import Reply, ToolCall
from luthier.tools.builtin import LocalTools
from luthier.tools.custom import CustomTool, tool
from luthier.tools.schema import Schema
from luthier.uri import ToolUri


class Color(enum.Enum):
    red = "r"
    blue = "b"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Person(BaseModel):
    name: str
    boss: Person | None = None


class Row(TypedDict, total=False):
    id: int
    tags: list[str]


class Pair(NamedTuple):
    left: int
    right: str


async def run(made: CustomTool[..., Any], context: CallContext | None = None, **arguments: Any) -> Reply:
    return await made.run(arguments, context or CallContext())


def text_of(reply: Reply) -> str:
    (block,) = reply.blocks
    assert block["type"] == "text"
    assert isinstance(block["text"], str)
    return block["text"]


class TestDescription:
    def test_name_description_and_schema_come_from_the_function(self) -> None:
        @tool
        def add_up(a: int, b: Annotated[int, Field(description="The other one", ge=0)] = 1) -> int:
            """Add two numbers.

            More that only Python users read.
            """
            return a + b

        assert add_up.tool.uri == ToolUri.custom("add_up")
        assert add_up.tool.description == "Add two numbers."
        assert add_up.tool.input_schema == {
            "type": "object",
            "properties": {
                "a": {"type": "integer"},
                "b": {"type": "integer", "default": 1, "minimum": 0, "description": "The other one"},
            },
            "required": ["a"],
            "additionalProperties": False,
        }
        assert (add_up.label, add_up.timeout) == (UNTRUSTED, 30.0)

    @pytest.mark.parametrize(
        ("docstring", "description"),
        [
            ("One line.", "One line."),
            ("\n    Over two\n    lines.\n\n    More.\n", "Over two lines."),
            ("First.\n\nArgs:\n    a: b", "First."),
        ],
    )
    def test_the_first_paragraph_is_the_description(self, docstring: str, description: str) -> None:
        def function() -> None: ...

        function.__doc__ = docstring
        assert tool(function).tool.description == description

    def test_everything_can_be_given(self) -> None:
        @tool(
            name="add-2", description="  Adds.  ", title="Adder", timeout=None, label=TRUSTED,
            annotations={"readOnlyHint": True},
        )  # fmt: skip
        def function() -> None:
            """Not this."""

        assert function.tool.uri == ToolUri.custom("add-2")
        assert (function.tool.description, function.tool.title) == ("Adds.", "Adder")
        assert function.tool.annotations == {"readOnlyHint": True}
        assert (function.label, function.timeout) == (TRUSTED, None)

    def test_a_function_without_parameters_takes_an_empty_object(self) -> None:
        @tool
        def nothing() -> None:
            """Does nothing."""

        assert nothing.tool.input_schema == {
            "type": "object",
            "properties": {},
            "additionalProperties": False,
        }

    def test_a_context_is_given_and_not_asked_for(self) -> None:
        @tool
        def who(context: CallContext, other: CallContext | None = None) -> list[str]:
            """Who calls."""
            return [context.run, other.run if other else "none"]

        assert who.tool.input_schema["properties"] == {}
        assert asyncio.run(run(who, CallContext(run="r9"))).structured == ["r9", "r9"]

    @pytest.mark.parametrize(
        "name",
        [
            "schema",
            "json",
            "copy",
            "model_config",
            "model_validate",
            "_private",
            "__dunder",
            "self",
            "validate",
        ],
    )
    async def test_a_parameter_may_have_any_name(self, name: str) -> None:
        namespace: dict[str, Any] = {}
        exec(f"def f({name}: int):\n    'Doc.'\n    return {name} + 1", namespace)  # noqa: S102  (names as data)
        made = tool(namespace["f"])
        assert list(made.tool.input_schema["properties"]) == [name]
        assert (await made.run({name: 1}, CallContext())).structured == 2

    def test_a_method_of_an_object_is_a_tool_without_its_self(self) -> None:
        class Counter:
            def step(self, by: int = 1) -> int:
                """Count on."""
                return by

        assert list(tool(Counter().step).tool.input_schema["properties"]) == ["by"]

    def test_a_partial_function_needs_a_name_and_a_description(self) -> None:
        def power(base: int, exponent: int) -> int:
            return int(base**exponent)

        made = tool(name="square", description="Squares.")(partial(power, exponent=2))
        assert asyncio.run(run(made, base=3)).structured == 9
        assert list(made.tool.input_schema["properties"]) == ["base"]
        with pytest.raises(ToolDefinitionError):
            tool(partial(power, exponent=2))

    @pytest.mark.parametrize("waits", [False, True])
    async def test_an_object_that_can_be_called_is_a_tool(self, *, waits: bool) -> None:
        class Adder:
            def __init__(self, by: int) -> None:
                self._by = by

            def __call__(self, a: int) -> int:
                return a + self._by

        class Waiter(Adder):
            async def __call__(self, a: int) -> int:  # type: ignore[override]
                await asyncio.sleep(0)
                return a + self._by

        made = tool(name="add", description="Adds.")((Waiter if waits else Adder)(3))
        assert made.tool.input_schema["properties"] == {"a": {"type": "integer"}}
        assert (await run(made, a=1)).structured == 4

    def test_it_stays_the_plain_function_for_python(self) -> None:
        @tool
        def double(a: int) -> int:
            """Doubles."""
            return 2 * a

        assert double(4) == 8
        assert double.__name__ == "double"  # type: ignore[attr-defined]
        assert double.__doc__ == "Doubles."
        assert repr(double) == "<CustomTool custom://double>"


class TestHints:
    @pytest.mark.parametrize(
        ("hint", "given", "received"),
        [
            (int, 1, 1),
            (float, 1, 1.0),
            (str, "a", "a"),
            (bool, False, False),
            (None, None, None),
            (Any, {"a": [1]}, {"a": [1]}),
            (Literal["a", 2], 2, 2),
            (Color, "b", Color.blue),
            (Point, {"x": 1}, Point(1)),
            (Person, {"name": "a", "boss": {"name": "b"}}, Person(name="a", boss=Person(name="b"))),
            (Row, {"id": 1, "tags": ["a"]}, {"id": 1, "tags": ["a"]}),
            (list[Row], [{"id": 1}], [{"id": 1}]),
            (Pair, [1, "a"], Pair(1, "a")),
            (list[int], [1, 2], [1, 2]),
            (set[str], ["a"], {"a"}),
            (tuple[int, str], [1, "a"], (1, "a")),
            (dict[str, Point], {"p": {"x": 1, "y": 2}}, {"p": Point(1, 2)}),
            (int | None, None, None),
            (int | str, "a", "a"),
            (dt.date, "2020-02-03", dt.date(2020, 2, 3)),
            (UUID, "00000000-0000-0000-0000-000000000001", UUID(int=1)),
            (Annotated[int, Field(ge=1, description="d")], 1, 1),
        ],
        ids=repr,
    )  # fmt: skip
    async def test_a_value_that_fits_the_schema_reaches_the_function_as_its_type(
        self, hint: Any, given: Any, received: Any
    ) -> None:
        seen: list[Any] = []

        def function(a: Any) -> None:
            """Doc."""
            seen.append(a)

        function.__annotations__["a"] = hint
        made = tool(function)
        assert Schema(made.tool.input_schema).faults({"a": given}) == ()
        reply = await run(made, a=given)
        assert not reply.is_error, reply
        assert seen == [received]
        assert type(seen[0]) is type(received)

    async def test_a_parameter_without_a_hint_takes_anything(self) -> None:
        @tool
        def echo(a, b=2):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
            """Echoes."""
            return [a, b]

        assert echo.tool.input_schema["properties"] == {"a": {}, "b": {"default": 2}}
        assert (await run(echo, a=None)).structured == [None, 2]

    async def test_defaults_are_the_function_s_own(self) -> None:
        mark = object()

        @tool
        def echo(
            a: Any = mark,
            b: int = Field(7, ge=5, description="At least five"),
            c: Color = Color.red,
            d: int = None,  # type: ignore[assignment]  # noqa: RUF013  (people write it)
        ) -> list[Any]:
            """Echoes."""
            return [a is mark, b, c.name, d]

        properties = echo.tool.input_schema["properties"]
        assert properties["a"] == {}
        assert properties["b"] == {
            "type": "integer",
            "default": 7,
            "minimum": 5,
            "description": "At least five",
        }
        assert properties["c"]["default"] == "r"
        assert "required" not in echo.tool.input_schema
        assert (await run(echo)).structured == [True, 7, "red", None]
        assert (await run(echo, b=0)).is_error

    def test_the_schema_is_one_that_can_be_used(self) -> None:
        @tool
        def all_of_it(p: Person, r: list[Row], c: Color | None = None) -> None:
            """Doc."""

        schema = Schema(all_of_it.tool.input_schema)
        assert schema.notes == ()
        assert schema.ok({"p": {"name": "a", "boss": {"name": "b"}}, "r": [{"id": 1}], "c": None})
        assert not schema.ok({"p": {"name": "a", "boss": {"name": 1}}, "r": []})


class TestRefusals:
    @pytest.mark.parametrize(
        ("source", "said"),
        [
            ("def f(*args): 'Doc.'", "given by name.*Write each parameter out"),
            ("def f(**kwargs): 'Doc.'", "given by name"),
            ("def f(a, /): 'Doc.'", "given by name"),
            ("def f(*contexts: CallContext): 'Doc.'", "given by name"),
            ("def f(a): pass", "nothing says what it does.*docstring"),
            ("def f(a): '  '", "nothing says what it does"),
            ("def f(a): 'Doc.'; yield 1", "it yields"),
            ("async def f(a): 'Doc.'; yield 1", "it yields"),
            ("def save_to_memory(a): 'Doc.'\nf = save_to_memory", "the name of a built-in tool"),
            ("f = lambda a: a", "'<lambda>' cannot be the name.*name="),
            ("def f(a: 'Nowhere'): 'Doc.'", "cannot be described.*Nowhere"),
            ("def f(a: object()): 'Doc.'", "cannot be described"),
            ("class Odd: ...\ndef f(a: Odd): 'Doc.'", "cannot be described.*Odd"),
            ("f = 7", "cannot be the name"),
            (f"def {'f' * 65}(a): 'Doc.'\nf = {'f' * 65}", "at most 64"),
        ],
    )
    def test_what_cannot_be_a_tool_is_refused_when_it_is_made(self, source: str, said: str) -> None:
        namespace: dict[str, Any] = {"CallContext": CallContext}
        exec(source, namespace)  # noqa: S102  (definitions as data)
        with pytest.raises(ToolDefinitionError, match=f"(?s){said}"):
            tool(namespace["f"])

    @pytest.mark.parametrize("name", ["", "a b", "a/b", "ü", "a" * 65, "save_to_memory"])
    def test_a_name_that_is_given_must_be_a_name(self, name: str) -> None:
        with pytest.raises(ToolDefinitionError):
            tool(name=name, description="Doc.")(lambda: None)

    def test_an_empty_description_is_none(self) -> None:
        def documented() -> None:
            """Doc."""

        with pytest.raises(ToolDefinitionError, match="nothing says"):
            tool(description=" ")(documented)


class TestArguments:
    async def test_what_does_not_fit_is_an_answer_that_names_every_fault_and_no_value(self) -> None:
        @tool
        def function(a: int, p: Point, c: Color) -> None:
            """Doc."""

        reply = await run(function, a="hunter2", p={"x": "hunter2", "z": 1}, d=1)
        assert reply.is_error
        words = text_of(reply)
        assert words.startswith("Invalid arguments: ")
        for place in ("/a: ", "/p/x: ", "/p/z: ", "/c: ", "/d: "):
            assert place in words
        assert "hunter2" not in words

    async def test_what_was_given_is_not_changed_by_the_function(self) -> None:
        @tool
        def function(a: list[int]) -> None:
            """Doc."""
            a.append(2)

        given = [1]
        await run(function, a=given)
        assert given == [1]


class TestResults:
    @pytest.mark.parametrize(
        ("value", "structured", "text"),
        [
            ({"a": 1, "b": [None]}, {"a": 1, "b": [None]}, '{"a":1,"b":[null]}'),
            ([1, 2], [1, 2], "[1,2]"),
            ((1, "a"), [1, "a"], '[1,"a"]'),
            (7, 7, "7"),
            (0, 0, "0"),
            (2**80, 2**80, str(2**80)),
            (1.5, 1.5, "1.5"),
            (True, True, "true"),
            (None, None, "null"),
            ([], [], "[]"),
            (Point(1, 2), {"x": 1, "y": 2}, '{"x":1,"y":2}'),
            (Person(name="a"), {"name": "a", "boss": None}, '{"name":"a","boss":null}'),
            (
                [Person(name="a"), Color.red],
                [{"name": "a", "boss": None}, "r"],
                '[{"name":"a","boss":null},"r"]',
            ),
            ({1: dt.date(2020, 2, 3)}, {"1": "2020-02-03"}, '{"1":"2020-02-03"}'),
            (frozenset({1}), [1], "[1]"),
            ([math.nan, math.inf], [None, None], "[null,null]"),
        ],
        ids=repr,
    )
    async def test_a_value_is_structured_and_told_as_text(
        self, value: Any, structured: Any, text: str
    ) -> None:
        @tool
        def give() -> Any:
            """Gives."""
            return value

        reply = await run(give)
        assert (reply.structured, text_of(reply), reply.is_error) == (structured, text, False)
        assert reply.content == structured

    @pytest.mark.parametrize(
        ("value", "text"), [("hello", "hello"), ("", ""), ("[1]", "[1]"), (Color.red, "r")]
    )
    async def test_a_text_is_a_text(self, value: Any, text: str) -> None:
        @tool
        def give() -> Any:
            """Gives."""
            return value

        reply = await run(give)
        assert reply.blocks == [{"type": "text", "text": text}]
        assert reply == Reply(blocks=reply.blocks)

    async def test_a_reply_is_passed_on_as_it_is(self) -> None:
        given = Reply(blocks=[{"type": "image", "data": "…"}], is_error=True)

        @tool
        def give() -> Reply:
            """Gives."""
            return given

        assert await run(give) is given

    @pytest.mark.parametrize(
        "value", [object(), b"\xff", {"a": threading.Lock()}], ids=["object", "bytes", "lock"]
    )
    async def test_what_is_not_json_is_an_error_that_says_so(self, value: Any) -> None:
        @tool
        def give() -> Any:
            """Gives."""
            return value

        reply = await run(give)
        assert reply.is_error
        assert "Error" in text_of(reply)


class TestRunning:
    async def test_a_plain_function_runs_in_a_thread_and_does_not_hold_the_loop(self) -> None:
        loop_went_on = threading.Event()

        @tool
        def wait() -> bool:
            """Waits for the loop."""
            return loop_went_on.wait(10)

        task = asyncio.ensure_future(run(wait))
        await asyncio.sleep(0)
        loop_went_on.set()
        assert (await task).structured is True

    async def test_an_async_function_runs_on_the_loop(self) -> None:
        @tool
        async def where() -> bool:
            """Where it runs."""
            await asyncio.sleep(0)
            return threading.current_thread() is threading.main_thread()

        assert (await run(where)).structured is True
        assert await where() is True

    async def test_a_plain_function_may_hand_back_what_is_to_be_awaited(self) -> None:
        async def later() -> str:
            return "later"

        @tool
        def give() -> Any:
            """Gives."""
            return later()

        assert text_of(await run(give)) == "later"

    @pytest.mark.parametrize(
        ("error", "text"),
        [
            (ValueError("bad luck"), "ValueError: bad luck"),
            (TimeoutError(), "TimeoutError"),
            (SystemExit(3), "SystemExit: 3"),
            (CallTimeoutError("upstream"), "CallTimeoutError: upstream"),
            (StopIteration(), "RuntimeError: coroutine raised StopIteration"),
        ],
        ids=lambda value: type(value).__name__,
    )
    async def test_what_a_function_raises_is_an_error_reply(
        self, error: BaseException, text: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        @tool
        def plain() -> None:
            """Raises."""
            raise error

        @tool
        async def waited() -> None:
            """Raises."""
            raise error

        with caplog.at_level(logging.INFO, logger="luthier.tools"):
            for made in (plain, waited):
                reply = await run(made)
                assert reply.is_error
                assert text_of(reply) == text
        assert "custom://plain failed" in caplog.text
        assert "Traceback" in caplog.text

    async def test_a_cancelled_call_stays_cancelled(self) -> None:
        started = asyncio.Event()

        @tool
        async def wait() -> None:
            """Waits."""
            started.set()
            await asyncio.get_running_loop().create_future()

        task = asyncio.ensure_future(run(wait))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def test_through_the_registry_it_has_its_timeout(self) -> None:
        clock = FakeClock()
        release = threading.Event()

        @tool(timeout=3)
        def wait(a: int) -> int:
            """Waits."""
            release.wait(10)
            return a

        call = ToolCall(id="1", uri=wait.tool.uri, arguments=Labelled({"a": 1}))
        task = asyncio.ensure_future(LocalTools([wait], clock=clock).run(call))
        await clock.advance(3)
        with pytest.raises(CallTimeoutError, match="custom://wait did not answer within 3 s"):
            await task
        release.set()

    async def test_through_the_registry_it_gets_its_arguments_and_context(self) -> None:
        @tool
        def greet(name: str, context: CallContext) -> str:
            """Greets."""
            return f"Hello {name} from {context.principal}"

        call = ToolCall(id="1", uri=greet.tool.uri, arguments=Labelled({"name": "Ada"}))
        assert text_of(await LocalTools([greet]).run(call)) == "Hello Ada from operator"
