"""Rows about files and expressions, as far as a server can show what arrives: configuration and arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from luthier import Runtime
from luthier.errors import ConnectError, SpecError
from tests.faults.rows.table import own

if TYPE_CHECKING:
    from tests.faults.bench import Bench


def asking(*inputs: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An ensemble of one call of `echo` for each input, which puts out what the server got."""
    steps = [
        {"name": f"s{n}", "operation": "tools", "config": {"mcp": "faulty", "tool": "echo"}, "input": given}
        for n, given in enumerate(inputs)
    ]
    outputs = {f"s{n}": f"${{s{n}.output}}" for n in range(len(steps))}
    return {"name": "asking", "agents": steps, "outputs": outputs, **more}


@own("98", "environment")
async def references_are_expanded_alike_in_every_field(bench: Bench) -> None:
    fields = bench.fields("${env.WORD}", "${WORD:-unused}", "${env:WORD}", "${UNSET:-default}", "$${WORD}")
    fields["env"] |= {"TOKEN": "Bearer ${env.WORD}"}
    environ = {"PATH": "/usr/bin:/bin", "WORD": "${env.PATH} word"}
    async with bench.runtime({"faulty": fields}, environ=environ) as rt:
        seen = (await rt.call("mcp://faulty/act")).content
        word = environ["WORD"]
        assert seen["args"] == [word, word, word, "default", "${WORD}"]
        assert seen["env"]["TOKEN"] == f"Bearer {word}"


@own("101", "plain")
async def a_mistyped_key_is_refused_with_a_suggestion_and_nothing_is_started(bench: Bench) -> None:
    project = {"mcpServers": {"faulty": bench.fields(inherit_envs=["HOME"])}}
    with pytest.raises(SpecError, match="inherit_env"):
        async with Runtime.open(project, root=bench.root) as rt:
            await rt.call("mcp://faulty/echo")
    assert bench.journal.starts() == []


@own("102", "plain")
async def what_is_said_in_python_needs_no_file(bench: Bench) -> None:
    async with bench.runtime() as rt:
        run = await rt.run(asking({"a": 1}))
        assert run.success, run.error
        assert run.output == {"s0": {"a": 1}}
    assert not list(bench.root.glob("*.yaml"))


@own("103", "environment")
async def a_reference_that_cannot_be_resolved_is_an_error_and_not_an_empty_value(bench: Bench) -> None:
    servers = {"faulty": bench.fields(env={"KEY": "${secret:api-key}"})}
    async with bench.runtime(servers) as rt:
        with pytest.raises(ConnectError) as raised:
            await rt.call("mcp://faulty/act")
        assert "secret" in str(raised.value)
    assert bench.journal.starts() == []


@own("105", "plain")
async def text_that_looks_like_yaml_stays_text(bench: Bench) -> None:
    texts = ["[1, 2]", "label: x", "007", "no", "1e3", "null", "{a: 1}", "~", "2026-01-01"]
    given = {f"t{n}": text for n, text in enumerate(texts)}
    mixed = {"mixed": "1${input.x}", "lone": "${input.x}", "list": "${input.list}"}
    inputs = {"x": 2, "list": [1, "2"]}
    async with bench.runtime() as rt:
        run = await rt.run(asking(given, mixed, inputs={"x": "integer", "list": "array"}), inputs)
        assert run.success, run.error
        assert run.output == {"s0": given, "s1": {"mixed": "12", "lone": 2, "list": [1, "2"]}}


@own("106", "plain")
async def a_type_comes_from_the_value_and_not_from_its_looks(bench: Bench) -> None:
    inputs = {"branch": "string", "gone": "string"}
    given = {"branch": "${input.branch}", "gone": "${input.gone}", "text": "x${input.gone}y"}
    async with bench.runtime() as rt:
        run = await rt.run(asking(given, inputs=inputs), {"branch": "42"})
        assert run.success, run.error
        assert run.output == {"s0": {"branch": "42", "gone": None, "text": "xy"}}


@own("107", "plain")
async def an_escaped_expression_is_sent_as_it_is_meant(bench: Bench) -> None:
    async with bench.runtime() as rt:
        run = await rt.run(asking({"a": "\\${input.x}", "b": "costs $5"}))
        assert run.success, run.error
        assert run.output == {"s0": {"a": "${input.x}", "b": "costs $5"}}


@own("109", "plain")
async def data_that_holds_an_expression_is_not_evaluated(bench: Bench) -> None:
    async with bench.runtime() as rt:
        run = await rt.run(asking({"a": "${input.x}"}, inputs={"x": "string"}), {"x": "${input.y}"})
        assert run.success, run.error
        assert run.output == {"s0": {"a": "${input.y}"}}


@own("110", "plain")
async def numbers_are_written_in_the_canonical_way(bench: Bench) -> None:
    given = {"text": "n=${input.a} ${input.b} ${input.c}", "lone": "${4 / 2}"}
    inputs = {"a": "number", "b": "number", "c": "number"}
    async with bench.runtime() as rt:
        run = await rt.run(asking(given, inputs=inputs), {"a": 42, "b": 42.0, "c": 1.5})
        assert run.success, run.error
        assert run.output == {"s0": {"text": "n=42 42 1.5", "lone": 2}}


@own("113", "tool_errors")
async def members_of_one_step_list_share_a_server_and_keep_to_themselves(bench: Bench) -> None:
    ensemble = asking(*({"n": n} for n in range(5)))
    ensemble["agents"].append(
        {"name": "bad", "operation": "tools", "config": {"mcp": "faulty", "tool": "protocol"}}
    )
    ensemble["outputs"]["kind"] = "${bad.failed ? bad.error.kind : 'none'}"
    async with bench.runtime() as rt:
        run = await rt.run(ensemble)
        assert run.success, run.error
        assert run.output == {**{f"s{n}": {"n": n} for n in range(5)}, "kind": "protocol"}
    assert len(bench.journal.starts()) == 1
