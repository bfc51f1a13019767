"""`code` steps: what a script is given, what it may give back, and how it fails."""

from __future__ import annotations

import logging
import os
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from luthier.taint import SECRET, UNTRUSTED, Labelled
from luthier.tools import Envelope, Reply
from tests.workflows.house import House

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.workflows import Run

STEP = "{name: a, operation: code, config: {script: scripts/it}, input: INPUT}"


class Desk:
    """A project with one script."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "scripts").mkdir()
        self.house = House(root=root)

    def script(self, text: str, name: str = "it.py") -> None:
        (self.root / "scripts" / name).write_text(textwrap.dedent(text))

    def text(self, given: str = "{}", script: str = "scripts/it", more: str = "") -> str:
        step = STEP.replace("INPUT", given).replace("scripts/it", script)
        return f"ensemble: t\nagents:\n  - {step}\n{more}"

    async def run(self, text: str | None = None, inputs: Any = None) -> Run:
        return await self.house.run(text or self.text(), inputs)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def error_of(desk: Desk, **rest: Any) -> dict[str, Any]:
    run = await desk.run(**rest)
    assert run.error is not None
    return run.error


class TestWhatItIsGiven:
    async def test_the_step_s_inputs(self, desk: Desk) -> None:
        desk.script("def run(context): return context.input['n'] + 1")
        assert (await desk.run(desk.text("{n: 2}"))).output == 3

    async def test_the_ensemble_s_inputs_where_it_has_none(self, desk: Desk) -> None:
        desk.script("def run(context): return context.input")
        text = desk.text().replace(", input: {}", "")
        assert (await desk.run(text, {"x": [1]})).output == {"x": [1]}

    async def test_the_run_and_an_empty_state(self, desk: Desk) -> None:
        desk.script("def run(context): return [dict(context.run), dict(context.state)]")
        run, state = (await desk.run()).output
        assert run == {"id": "run-1", "ensemble": "t", "started": 1_000_000_000.0}
        assert state == {}

    async def test_neither_can_be_changed(self, desk: Desk) -> None:
        desk.script("def run(context): context.run['id'] = 1")
        assert (await error_of(desk))["type"] == "TypeError"

    async def test_a_log(self, desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "luthier.scripts")
        desk.script("def run(context): context.log.info('hello')")
        await desk.run()
        assert [(record.name, record.message) for record in caplog.records] == [
            ("luthier.scripts.it", "hello")
        ]

    async def test_a_tool_s_result_as_a_mapping_that_falls_through_to_its_content(self, desk: Desk) -> None:
        desk.house.gate.tools["s/one"] = Reply(structured={"number": 7}, is_error=True)
        desk.script(
            """
            def run(context):
                result = context.input["result"]
                return [result.isError, result["isError"], result.content, result.number, result["number"]]
            """
        )
        text = (
            "ensemble: t\nagents:\n  - {name: one, operation: tools, config: {mcp: s, tool: one}}\n  - "
            + STEP.replace("INPUT", '{result: "${one.output}"}')
        )
        assert (await desk.run(text)).output == [True, True, {"number": 7}, 7, 7]

    async def test_data_as_it_came(self, desk: Desk) -> None:
        desk.script("def run(context): return [context.input['text'] == '\\ud800', len(str(context.input))]")
        deep: list[Any] = []
        for _ in range(150):
            deep = [deep]
        text = desk.text('{text: "${input.text}", deep: "${input.deep}"}')
        same, length = (await desk.run(text, {"text": "\ud800", "deep": deep})).output
        assert same is True
        assert length > 300

    async def test_what_it_changes_is_its_own_copy(self, desk: Desk) -> None:
        desk.script("def run(context): context.input['list'].append(1)")
        text = desk.text(
            '{list: "${input.list}"}', more='outputs: {list: "${input.list}", a: "${a.success}"}'
        )
        given = [0]
        assert (await desk.run(text, {"list": given})).output == {"list": [0], "a": True}
        assert given == [0]


class TestHowItIsFound:
    @pytest.mark.parametrize(
        ("written", "file"),
        [
            ("scripts/it", "it.py"),
            ("scripts/it.py", "it.py"),
            ("script://it", "it.py"),
            ("scripts/it-is", "it-is.py"),
            ("scripts/it-is", "it_is.py"),
            ("scripts/it_is", "it-is.py"),
        ],
    )
    async def test_by_its_path(self, desk: Desk, written: str, file: str) -> None:
        desk.script("def run(context): return 1", file)
        assert (await desk.run(desk.text(script=written))).output == 1

    @pytest.mark.parametrize("name", ["run", "default", "handle_it"])
    async def test_by_the_function_s_name(self, desk: Desk, name: str) -> None:
        desk.script(f"def {name}(context): return 1", "handle-it.py")
        assert (await desk.run(desk.text(script="scripts/handle-it"))).output == 1

    async def test_run_comes_first(self, desk: Desk) -> None:
        desk.script("def it(context): return 2\ndef run(context): return 1")
        assert (await desk.run()).output == 1

    async def test_a_script_without_a_function_says_which_are_looked_for(self, desk: Desk) -> None:
        desk.script("x = 1")
        assert (await error_of(desk))["message"] == "it.py defines no function named run or default or it"

    async def test_a_script_that_is_not_there_is_named(self, desk: Desk) -> None:
        error = await error_of(desk)
        assert error["kind"] == "code"
        assert "scripts/it.py" in error["message"]

    async def test_a_link_that_leads_out_is_not_followed(self, desk: Desk, tmp_path: Path) -> None:
        outside = tmp_path / "outside.py"
        outside.write_text("def run(context): return 1")
        (desk.root / "scripts" / "it.py").symlink_to(outside)
        assert "leads out of scripts/" in (await error_of(desk))["message"]

    async def test_a_link_is_looked_at_again_each_time(self, desk: Desk, tmp_path: Path) -> None:
        desk.script("def run(context): return 1", "one.py")
        desk.script("def run(context): return 22", "two.py")
        link = desk.root / "scripts" / "it.py"
        link.symlink_to("one.py")
        assert (await desk.run()).output == 1
        link.unlink()
        link.symlink_to("two.py")
        assert (await desk.run()).output == 22
        link.unlink()
        assert "scripts/it.py" in (await error_of(desk))["message"]
        (tmp_path / "outside.py").write_text("def run(context): return 1")
        link.symlink_to(tmp_path / "outside.py")
        assert "leads out of scripts/" in (await error_of(desk))["message"]

    async def test_it_is_not_found_by_sys_path_and_leaves_nothing_there(self, desk: Desk) -> None:
        desk.script("import helper\ndef run(context): return 1")
        desk.script("x = 1", "helper.py")
        assert (await error_of(desk))["type"] == "ModuleNotFoundError"

    async def test_no_compiled_copy_is_left_beside_it(self, desk: Desk) -> None:
        desk.script("def run(context): return 1")
        await desk.run()
        assert [path.name for path in (desk.root / "scripts").iterdir()] == ["it.py"]

    async def test_a_file_is_run_once_until_it_changes(self, desk: Desk) -> None:
        desk.script("seen = []\ndef run(context): seen.append(1); return len(seen)")
        assert [(await desk.run()).output for _ in range(3)] == [1, 2, 3]
        desk.script("def run(context): return 'another version'")
        assert (await desk.run()).output == "another version"

    async def test_a_script_knows_its_file(self, desk: Desk) -> None:
        desk.script("def run(context): return [__file__, __name__ == '__main__']")
        assert (await desk.run()).output == [str(desk.root / "scripts" / "it.py"), False]

    async def test_a_script_may_define_dataclasses(self, desk: Desk) -> None:
        desk.script(
            """
            from __future__ import annotations
            from dataclasses import asdict, dataclass

            @dataclass
            class Point:
                x: int

            def run(context):
                return asdict(Point(1))
            """
        )
        assert (await desk.run()).output == {"x": 1}


class TestHowItRuns:
    async def test_sync_code_runs_in_a_daemon_thread_that_is_used_again(self, desk: Desk) -> None:
        desk.script(
            """
            import threading
            def run(context):
                thread = threading.current_thread()
                return [thread.daemon, thread is threading.main_thread(), thread.ident]
            """
        )
        first, second = (await desk.run()).output, (await desk.run()).output
        assert first[:2] == [True, False]
        assert first == second

    async def test_async_code_runs_on_a_loop_of_its_own(self, desk: Desk) -> None:
        desk.script(
            """
            import asyncio, threading
            async def run(context):
                await asyncio.sleep(0)
                return threading.current_thread() is threading.main_thread()
            """
        )
        assert (await desk.run()).output is False
        assert (await desk.run()).output is False

    @pytest.mark.parametrize(
        "body",
        [
            pytest.param("while not gate.is_set(): pass", id="that never gives way"),
            pytest.param(
                "while not gate.is_set():\n        try: await asyncio.sleep(0.01)\n"
                "        except asyncio.CancelledError: pass",
                id="that swallows its cancellation",
            ),
        ],
    )
    async def test_async_code_holds_up_nobody_else_at_its_timeout(self, desk: Desk, body: str) -> None:
        desk.script(
            f"import asyncio, threading\ngate = threading.Event()\nasync def run(context):\n    {body}\n"
        )
        (desk.root / "scripts" / "free.py").write_text("def run(context): return 1\n")
        text = desk.text().replace("name: a,", "name: a, timeout: 1000,")
        async with desk.house.running(text) as task:
            await desk.house.clock.advance(1.0)
            run = await task
        assert run.error is not None
        assert run.error["kind"] == "timeout"
        assert (await desk.run(desk.text(script="scripts/free"))).output == 1
        sys.modules[f"luthier_script:{desk.root / 'scripts' / 'it.py'}"].gate.set()

    @pytest.mark.parametrize("raised", ["KeyboardInterrupt", "GeneratorExit", "asyncio.CancelledError"])
    async def test_what_async_code_raises_is_its_failure_whatever_it_is(
        self, desk: Desk, raised: str
    ) -> None:
        desk.script(f"import asyncio\nasync def run(context): raise {raised}")
        assert (await error_of(desk))["kind"] == "code"

    async def test_a_result_without_an_end_holds_up_nobody_else(self, desk: Desk) -> None:
        desk.script(
            """
            import collections.abc, threading
            gate = threading.Event()
            class Endless(collections.abc.Mapping):
                def __getitem__(self, key): return 1
                def __len__(self): return 1
                def __iter__(self):
                    gate.wait(30)
                    yield "a"
            def run(context): return Endless()
            """
        )
        text = desk.text().replace("name: a,", "name: a, timeout: 1000,")
        async with desk.house.running(text) as task:
            await desk.house.clock.advance(1.0)
            run = await task
        assert run.error is not None
        assert run.error["kind"] == "timeout"

    async def test_what_a_sync_function_promises_is_awaited(self, desk: Desk) -> None:
        desk.script("async def work(): return 1\ndef run(context): return work()")
        assert (await desk.run()).output == 1

    async def test_many_run_at_once(self, desk: Desk) -> None:
        desk.script(
            """
            import threading
            meeting = threading.Barrier(12, timeout=30)
            def run(context):
                meeting.wait()
            """
        )
        step = STEP.replace("INPUT", "{}")
        steps = "\n".join(f"  - {step.replace('name: a', f'name: a{number}')}" for number in range(12))
        assert (await desk.run(f"ensemble: t\nagents:\n{steps}")).success

    async def test_at_its_timeout_the_thread_is_left_behind_and_the_error_says_so(self, desk: Desk) -> None:
        pipe = desk.root / "pipe"
        os.mkfifo(pipe)
        desk.script("import pathlib\ndef run(context): pathlib.Path(context.input['pipe']).read_text()")
        text = desk.text(f"{{pipe: {pipe}}}").replace("name: a,", "name: a, timeout: 1000,")
        async with desk.house.running(text) as task:
            await desk.house.clock.advance(1.0)
            run = await task
        assert run.error is not None
        assert run.error["kind"] == "timeout"
        assert run.error["message"].startswith("timed out after 1 s. Its thread cannot be stopped")
        descriptor = os.open(pipe, os.O_WRONLY)  # lets the thread go
        os.close(descriptor)

    async def test_async_code_is_cancelled_at_its_timeout(self, desk: Desk) -> None:
        desk.script(
            """
            import asyncio
            async def run(context):
                if context.input["wait"]:
                    await asyncio.Event().wait()
            """
        )
        assert (await desk.run(desk.text("{wait: false}"))).success
        text = desk.text("{wait: true}").replace("name: a,", "name: a, timeout: 1000,")
        async with desk.house.running(text) as task:
            await desk.house.clock.advance(1.0)
            assert (await task).error == {"kind": "timeout", "message": "timed out after 1 s", "step": "a"}


class TestWhatItGives:
    @pytest.mark.parametrize(
        ("expression", "value"),
        [
            ("None", None),
            ("(1, [2.5, True], {'a': ()})", [1, [2.5, True], {"a": []}]),
            ("float('nan')", None),
            ("[float('inf')]", [None]),
            ("10 ** 30", 10**30),
            ("'\\ud800x'", "?x"),
            ("'é'", "é"),
            ("__import__('collections').OrderedDict(a=1)", {"a": 1}),
            ("type('Text', (str,), {})('x')", "x"),
        ],
    )
    async def test_json_values(self, desk: Desk, expression: str, value: Any) -> None:
        desk.script(f"def run(context): return {expression}")
        run = await desk.run()
        assert run.output == value
        assert type(run.output) is type(value)

    async def test_a_tool_s_result_stays_one(self, desk: Desk) -> None:
        desk.house.gate.tools["s/one"] = {"n": 1}
        desk.script("def run(context): return context.input['one']")
        text = (
            "ensemble: t\nagents:\n  - {name: one, operation: tools, config: {mcp: s, tool: one}}\n  - "
            + STEP.replace("INPUT", '{one: "${one.output}"}')
        )
        run = await desk.run(text)
        assert isinstance(run.steps["a"].output, Envelope)
        assert run.output == {"n": 1}

    @pytest.mark.parametrize(
        ("expression", "message"),
        [
            ("{1, 2}", "the result is a value of type set, which is not JSON"),
            (
                "{'when': [__import__('datetime').date.today()]}",
                "the result at /when/0 is a value of type date",
            ),
            ("{'a/b': b'x'}", "the result at /a~1b is a value of type bytes"),
            ("{'a': {1: 2}}", "the result at /a has the key 1; keys of a mapping must be text"),
            ("{1: 2}", "the result has the key 1"),
            ("{'n': 10 ** 5000}", "the result at /n is an integer of more than 4,000 digits"),
            ("(lambda x: x.append(x) or x)([])", "the result is nested more than 100 deep, or holds itself"),
        ],
    )
    async def test_anything_else_is_a_failure_that_names_the_place(
        self, desk: Desk, expression: str, message: str
    ) -> None:
        desk.script(f"def run(context): return {expression}")
        error = await error_of(desk)
        assert error["kind"] == "code"
        assert error["message"].startswith(message)

    async def test_it_carries_the_labels_of_the_inputs(self, desk: Desk) -> None:
        desk.script("def run(context): return 1")
        text = desk.text('{a: "${input.a}"}')
        run = await desk.run(text, Labelled({"a": 1, "b": 2}, parts={"/a": UNTRUSTED, "/b": SECRET}))
        assert run.label == UNTRUSTED


class TestHowItFails:
    async def test_an_exception_is_named_with_the_script_s_own_line(self, desk: Desk) -> None:
        desk.script(
            """
            import json

            def run(context):
                return json.loads("{")
            """
        )
        error = await error_of(desk)
        assert error["kind"] == "code"
        assert error["type"] == "JSONDecodeError"
        assert error["script"] == "scripts/it.py"
        assert error["line"] == 5
        assert error["message"].endswith("(scripts/it.py:5)")

    async def test_so_is_one_of_async_code(self, desk: Desk) -> None:
        desk.script("async def run(context):\n    raise ValueError")
        assert (await error_of(desk))["message"] == "ValueError (scripts/it.py:2)"

    @pytest.mark.parametrize("head", ["def", "async def"])
    async def test_a_script_that_exits_fails_its_step_only(self, desk: Desk, head: str) -> None:
        desk.script(f"import sys\n{head} run(context): sys.exit(3)")
        assert (await error_of(desk))["message"] == "SystemExit: 3 (scripts/it.py:2)"

    async def test_an_iterator_that_ends_is_an_error_like_any_other(self, desk: Desk) -> None:
        desk.script("def run(context): return next(iter([]))")
        assert (await error_of(desk))["type"] == "StopIteration"

    async def test_so_is_code_that_cancels_itself(self, desk: Desk) -> None:
        desk.script("import asyncio\nasync def run(context): raise asyncio.CancelledError")
        assert (await error_of(desk))["type"] == "CancelledError"

    async def test_a_syntax_error_is_named_by_its_line(self, desk: Desk) -> None:
        desk.script("x = 1\ndef run(context) return 1")
        error = await error_of(desk)
        assert (error["type"], error["line"]) == ("SyntaxError", 2)

    async def test_what_fails_while_it_is_loaded_is_an_error_each_time(self, desk: Desk) -> None:
        desk.script("1 / 0\ndef run(context): return 1")
        for _ in range(2):
            assert (await error_of(desk))[
                "message"
            ] == "ZeroDivisionError: division by zero (scripts/it.py:1)"

    async def test_an_exception_without_a_line_of_the_script_names_the_script(self, desk: Desk) -> None:
        desk.script("def run(): return 1")
        assert (await error_of(desk))["message"].endswith("(scripts/it.py)")

    async def test_inputs_that_are_no_mapping_are_refused(self, desk: Desk) -> None:
        desk.script("def run(context): return 1")
        error = await error_of(desk, text=desk.text('"${[1]}"'))
        assert error["kind"] == "arguments"
