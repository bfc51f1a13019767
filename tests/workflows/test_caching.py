"""Results that are kept, and what takes the place of a step that took too long."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from luthier.connect.state import MemoryState
from luthier.context import CallContext
from luthier.errors import SpecError, StoreError
from luthier.taint import SECRET, TRUSTED, UNTRUSTED, Labelled, merge
from luthier.tools import Reply
from luthier.workflows.caching import KIND, Cache, key_of
from tests.workflows.house import Gate, House, entry, read

if TYPE_CHECKING:
    from pathlib import Path


def step(more: str = "cache: {ttl: 60}", given: str = "{q: '${input.q}'}", flow: str = "") -> str:
    return f"""
ensemble: t
inputs: {{q: 1, other: 0}}
agents:
  - name: a
    operation: tools
    config: {{mcp: s, tool: one}}
    input: {given}
    {more}
{flow}
outputs: {{v: '${{a.output}}', cached: '${{a.cached}}'}}
"""


def counting() -> Any:
    seen: list[Any] = []

    def answer(arguments: dict[str, Any]) -> dict[str, Any]:
        seen.append(arguments)
        return {"n": len(seen), "of": arguments}

    return answer


class TestSteps:
    async def test_what_was_given_before_is_not_asked_again(self) -> None:
        house = House(Gate({"s/one": counting()}))
        first = await house.run(step(), {"q": 1})
        again = await house.run(step(), {"q": 1})
        other = await house.run(step(), {"q": 2})
        assert first.output == {"v": {"n": 1, "of": {"q": 1}}, "cached": False}
        assert again.output == {"v": {"n": 1, "of": {"q": 1}}, "cached": True}
        assert other.output["v"]["n"] == 2
        assert again.steps["a"].output.fields()["server"] == "s", "it is an envelope as before"
        assert not [one for one in again.record if one.kind == "CallIntended"]

    async def test_the_order_of_keys_does_not_matter(self) -> None:
        house = House(Gate({"s/one": counting()}))
        await house.run(step(given="{a: 1, b: 2}"))
        assert (await house.run(step(given="{b: 2, a: 1}"))).output["cached"]

    async def test_it_is_too_old_after_its_time(self) -> None:
        house = House(Gate({"s/one": counting()}))
        await house.run(step())
        await house.clock.advance(59.0)
        assert (await house.run(step())).output["cached"]
        await house.clock.advance(1.0)
        assert not (await house.run(step())).output["cached"]

    async def test_a_key_of_its_own_says_what_is_the_same(self) -> None:
        house = House(Gate({"s/one": counting()}))
        text = step("cache: {ttl: 60, key: '${input.other}'}")
        await house.run(text, {"q": 1, "other": 5})
        assert (await house.run(text, {"q": 2, "other": 5})).output["v"]["of"] == {"q": 1}
        assert not (await house.run(text, {"q": 1, "other": 6})).output["cached"]

    async def test_a_script_or_an_inner_ensemble_that_was_changed_is_run_again(self, tmp_path: Path) -> None:
        script = tmp_path / "scripts" / "one.py"
        script.parent.mkdir()
        script.write_text("def run(context):\n    return 1\n")
        inner = "ensemble: inner\nagents: [{name: b, operation: transform, config: {value: %s}}]"
        house = House(root=tmp_path, ensembles=[inner % 1])
        text = """
ensemble: t
agents:
  - {name: a, operation: code, config: {script: scripts/one}, cache: {ttl: 60}}
  - {name: i, operation: ensemble, config: {ensemble: inner}, cache: {ttl: 60}}
outputs: {values: ["${a.output}", "${i.output}"], kept: ["${a.cached}", "${i.cached}"]}
"""
        assert (await house.run(text)).output == {"values": [1, 1], "kept": [False, False]}
        assert (await house.run(text)).output == {"values": [1, 1], "kept": [True, True]}
        script.write_text("def run(context):\n    return 22\n")
        assert (await house.run(text)).output == {"values": [22, 1], "kept": [False, True]}
        house.library["inner"] = read(inner % 33)
        assert (await house.run(text)).output == {"values": [22, 33], "kept": [True, False]}
        whole = text.replace("agents:", "cache: {ttl: 60}\nagents:")
        assert [(await house.run(whole)).cached for _ in range(2)] == [False, True]
        script.write_text("def run(context):\n    return 444\n")
        changed = await house.run(whole)
        assert (changed.cached, changed.output["values"]) == (False, [444, 33])
        script.unlink()
        assert not (await house.run(whole)).success

    async def test_another_caller_has_nothing_of_it(self) -> None:
        house = House(Gate({"s/one": counting()}))
        await house.run(step())
        other = CallContext(principals=("client:x",))
        assert not (await house.run(step(), context=other)).output["cached"]

    async def test_what_is_written_differently_is_another_step(self) -> None:
        house = House(Gate({"s/one": counting(), "s/two": 2}))
        await house.run(step())
        assert (await house.run(step().replace("tool: one", "tool: two"))).output["v"] == 2

    async def test_a_failure_is_not_kept(self) -> None:
        house = House(Gate({"s/one": RuntimeError("no")}))
        assert not (await house.run(step())).success
        house.gate.tools["s/one"] = 1
        assert (await house.run(step())).output == {"v": 1, "cached": False}

    async def test_a_tool_s_own_error_is_not_kept(self) -> None:
        house = House(Gate({"s/one": Reply(structured={"x": 1}, is_error=True)}))
        await house.run(step())
        assert not (await house.run(step())).output["cached"]

    async def test_labels_are_kept_and_joined(self) -> None:
        house = House(Gate({"s/one": counting()}, label=UNTRUSTED))
        await house.run(step())
        again = await house.run(step())
        assert again.output["cached"]
        assert again.labelled.at("/v") == UNTRUSTED
        house = House(Gate({"s/one": counting()}, label=TRUSTED))
        await house.run(step())
        worse = await house.run(step(), merge({"q": Labelled(1, UNTRUSTED)}))
        assert worse.output["cached"]
        assert worse.labelled.at("/v") == UNTRUSTED

    @pytest.mark.parametrize("where", ["output", "input"])
    async def test_secrets_are_not_kept(self, where: str) -> None:
        house = House(Gate({"s/one": counting()}, label=SECRET if where == "output" else TRUSTED))
        given = Labelled("hush", SECRET if where == "input" else TRUSTED)
        await house.run(step(), merge({"q": given}))
        assert house.services.state.list(KIND) == {}

    async def test_each_item_of_a_loop_is_kept_by_itself(self) -> None:
        house = House(Gate({"s/one": counting()}))
        each = "{agent: a, input: {n: '${item}'}}"
        flow = f"flow: [{{foreach: {{items: [1, 1, 2], maxConcurrency: 1, step: {each}}}}}]"
        run = await house.run(step(flow=flow))
        assert [run.steps[f"foreach_0[{n}].a"].cached for n in range(3)] == [False, True, False]

    async def test_bypass_turns_it_off(self) -> None:
        house = House(Gate({"s/one": counting()}))
        text = step("cache: {ttl: 60, bypass: true}")
        await house.run(text)
        assert not (await house.run(text)).output["cached"]


class Broken(MemoryState):
    def get(self, kind: str, key: str) -> Any:
        raise StoreError(f"no disk for {kind} {key}")

    def put(self, kind: str, key: str, value: Any) -> None:
        raise StoreError(f"no disk for {kind} {key} {value}")


class TestTheStore:
    async def test_one_that_fails_costs_the_cache_only(self) -> None:
        house = House()
        cache = Cache(Broken(), house.clock)
        await cache.put("k", Labelled(1), 60.0)
        assert await cache.get("k") is None

    async def test_what_would_not_come_back_as_it_is_is_not_kept(self) -> None:
        house = House()
        cache = Cache(MemoryState(), house.clock)
        await cache.put("k", Labelled({"a": "\ud800"}), 60.0)
        await cache.put("k", Labelled((1, 2)), 60.0)
        assert await cache.get("k") is None

    async def test_what_is_too_old_is_swept_away(self) -> None:
        house, state = House(), MemoryState()
        cache = Cache(state, house.clock)
        await cache.put("old", Labelled(1), 1.0)
        await house.clock.advance(2.0)
        for number in range(64):
            await cache.put(f"k{number}", Labelled(number), 60.0)
        assert "old" not in state.list(KIND)

    def test_what_has_no_text_has_no_key(self) -> None:
        assert key_of("\ud800", label=TRUSTED) == ""
        assert key_of(object(), label=TRUSTED) == ""
        assert key_of(1, label=SECRET) == ""


class TestOnTimeout:
    @staticmethod
    async def played(more: str, inputs: Any = None) -> Any:
        house = House(Gate({"s/one": lambda _: asyncio.Event().wait()}), servers=[entry()])
        async with house.running(step(f"timeout: 1000\n    onTimeout: {more}"), inputs) as task:
            while not task.done():
                await house.clock.advance(house.clock.next_due() or 0.0)
            return await task

    async def test_a_fallback_is_the_output(self) -> None:
        run = await self.played("{fallback: {q: '${input.q}', late: true}}")
        assert run.output["v"] == {"q": 1, "late": True}
        assert run.steps["a"].success

    async def test_a_fallback_carries_the_label_of_what_was_late_and_its_own(self) -> None:
        run = await self.played("{fallback: '${input.q}'}", merge({"q": Labelled(1, UNTRUSTED)}))
        assert run.steps["a"].label == UNTRUSTED

    async def test_no_error_is_a_fallback_of_null(self) -> None:
        assert (await self.played("{error: false}")).output["v"] is None

    async def test_an_error_says_it_in_other_words(self) -> None:
        run = await self.played("{error: The search is slow today.}")
        assert run.error["message"] == "The search is slow today."
        assert run.error["kind"] == "timeout"

    async def test_true_is_as_without(self) -> None:
        assert (await self.played("{error: true}")).error["message"].startswith("timed out")

    async def test_a_fallback_that_cannot_be_made_fails_the_step(self) -> None:
        run = await self.played("{fallback: '${input.q.x.trim()}'}", {"q": {"x": [1]}})
        assert not run.success
        assert run.error["kind"] != "timeout"

    async def test_it_is_not_for_other_failures(self) -> None:
        house = House(Gate({"s/one": RuntimeError("no")}))
        run = await house.run(step("onTimeout: {fallback: 1}"))
        assert not run.success


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("cache: {}", "`ttl` is missing"),
        ("cache: {ttl: 0}", "must be more than 0"),
        ("cache: {ttl: 1, keys: x}", "unknown key `keys`"),
        ("onTimeout: {}", "one of `fallback` and `error` is missing"),
        ("onTimeout: {fallback: 1, error: x}", "only one of"),
        ("onTimeout: {error: 5}", "must be text, true or false"),
    ],
)
def test_what_is_written_wrong_is_told(more: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read(step(more))


def test_what_a_transform_makes_is_not_cached() -> None:
    with pytest.raises(SpecError, match="is not cached"):
        read("ensemble: t\nagents: [{name: a, operation: transform, config: {value: 1}, cache: {ttl: 1}}]")


class TestEnsembles:
    TEXT = """
ensemble: t
cache: {ttl: 60}
inputs: {q: 1, other: 0}
agents:
  - {name: a, operation: tools, config: {mcp: s, tool: one}, input: {q: '${input.q}'}}
  - {name: b, operation: tools, config: {mcp: s, tool: two}, input: {}}
outputs: {v: '${a.output}', hit: '${__cache_hit}', skipped: '${b.skipped}'}
"""

    def house(self, **rest: Any) -> House:
        return House(Gate({"s/one": counting(), "s/two": 2}, **rest))

    async def test_a_run_that_was_given_the_same_delivers_the_same_and_runs_nothing(self) -> None:
        house = self.house()
        first = await house.run(self.TEXT)
        again = await house.run(self.TEXT)
        assert first.output == {"v": {"n": 1, "of": {"q": 1}}, "hit": False, "skipped": False}
        assert again.output == {"v": {"n": 1, "of": {"q": 1}}, "hit": True, "skipped": False}
        assert (first.cached, again.cached) == (False, True)
        assert [one.kind for one in again.record] == ["RunStarted", "RunEnded"]
        assert len(house.gate.calls) == 2

    async def test_given_something_else_it_runs(self) -> None:
        house = self.house()
        await house.run(self.TEXT)
        assert not (await house.run(self.TEXT, {"q": 2})).cached
        await house.clock.advance(60.0)
        assert not (await house.run(self.TEXT)).cached

    async def test_a_file_that_was_changed_runs(self) -> None:
        house = self.house()
        await house.run(self.TEXT)
        assert not (await house.run(self.TEXT.replace("input: {}", "input: {x: 1}"))).cached

    async def test_a_key_of_its_own(self) -> None:
        house, text = self.house(), self.TEXT.replace("ttl: 60", "ttl: 60, key: '${input.other}'")
        await house.run(text, {"q": 1})
        assert (await house.run(text, {"q": 2})).cached
        assert not (await house.run(text, {"other": 2})).cached

    async def test_a_key_that_cannot_be_read_keeps_nothing(self) -> None:
        house, text = self.house(), self.TEXT.replace("ttl: 60", "ttl: 60, key: '${input.q.trim()}'")
        await house.run(text, {"q": [1]})
        assert not (await house.run(text, {"q": [1]})).cached

    async def test_without_outputs_it_is_the_last_step(self) -> None:
        house, text = self.house(), self.TEXT[: self.TEXT.index("outputs")]
        assert (await house.run(text)).output == 2
        again = await house.run(text)
        assert (again.output, again.cached) == (2, True)

    async def test_labels_are_kept_and_joined(self) -> None:
        house = self.house(label=TRUSTED)
        await house.run(self.TEXT)
        again = await house.run(self.TEXT, merge({"q": Labelled(1, UNTRUSTED)}))
        assert again.cached
        assert again.labelled.at("/v") == UNTRUSTED

    async def test_secrets_are_not_kept(self) -> None:
        house = self.house(label=SECRET)
        await house.run(self.TEXT)
        assert not (await house.run(self.TEXT)).cached

    async def test_a_run_in_which_something_failed_is_not_kept(self) -> None:
        house, text = self.house(), self.TEXT.replace("'${b.skipped}'", "'${b.failed}'")
        house.gate.tools["s/two"] = RuntimeError("no")
        assert (await house.run(text)).success
        assert not (await house.run(text)).cached

    def test_its_key_names_no_step(self) -> None:
        with pytest.raises(SpecError, match="before any step runs"):
            read(self.TEXT.replace("ttl: 60", "ttl: 60, key: '${a.output}'"))
