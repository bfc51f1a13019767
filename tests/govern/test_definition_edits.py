"""A server is trusted, then edits its definitions: every kind of edit stops its tool, whenever it comes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from luthier import Refused, Runtime
from luthier.errors import NotFoundError
from tests.govern.flipping import EDITS, RESPELLED

if TYPE_CHECKING:
    from collections.abc import Callable

SERVER = str(Path(__file__).with_name("flipping.py"))


def opened(root: Path, *, ttl: int = 0, **env: str) -> Runtime:
    entry = {"command": "python", "args": [SERVER], "env": env, "cache_ttl_ms": ttl}
    return Runtime.open({"mcpServers": {"flipping": entry}}, root=root)


async def listed(runtime: Runtime) -> set[str]:
    return {tool.name for tool in (await runtime.tools.load("flipping")).tools}


async def stopped(runtime: Runtime, name: str) -> bool:
    """Whether the operator's call is refused, as changed; a tool of another name is not there any more."""
    try:
        await runtime.call(f"mcp://flipping/{name}")
    except Refused as refused:
        return refused.refusal_kind == "approval"
    except NotFoundError:
        return name == "name"
    return False


async def after_lists(root: Path) -> Runtime:
    """The fourth list is another one."""
    runtime = opened(root, FLIP="4")
    for _ in range(3):
        assert await listed(runtime) == {"flip", "count", *EDITS}
    return runtime


async def between_list_and_call(root: Path) -> Runtime:
    """Nothing is said of it."""
    runtime = opened(root)
    assert await listed(runtime) == {"flip", "count", *EDITS}
    await runtime.call("mcp://flipping/flip")
    return runtime


async def announced(root: Path) -> Runtime:
    """The list would be good for minutes."""
    runtime = opened(root, ttl=300_000)
    assert await listed(runtime) == {"flip", "count", *EDITS}
    for name in EDITS:
        assert not await stopped(runtime, name)
    await runtime.call("mcp://flipping/flip", announce=True)
    return runtime


@pytest.mark.parametrize(
    "flip", [after_lists, between_list_and_call, announced], ids=lambda flip: flip.__name__
)
async def test_no_edit_is_missed_and_nothing_is_called_after_it(
    flip: Any, tmp_path: Path, figure: Callable[[str], None]
) -> None:
    runtime = await flip(tmp_path)
    async with runtime:
        missed = [name for name in EDITS if not await stopped(runtime, name)]
        assert await listed(runtime) == {"flip", "count"}
        with pytest.raises(Refused, match="is new"):
            await runtime.call("mcp://flipping/name_2")
        calls = (await runtime.call("mcp://flipping/count")).content
        review = await runtime.review_tools("flipping")
    figure(
        f"G6: {flip.__name__.replace('_', ' ')}: {len(EDITS)} edits of 10 kinds, "
        f"{len(missed)} missed, {calls} calls after it"
    )
    assert (missed, calls) == ([], "0")
    assert {tool.name for tool in review.pending} == {*EDITS, "name_2"}


async def test_no_other_spelling_is_taken_for_an_edit(tmp_path: Path, figure: Callable[[str], None]) -> None:
    async with opened(tmp_path, RESPELL="1") as runtime:
        before = await listed(runtime)
        await runtime.call("mcp://flipping/flip")
        alarms = [name for name in RESPELLED if await stopped(runtime, name)]
        assert await listed(runtime) == before == {"flip", "count", *RESPELLED}
        review = await runtime.review_tools("flipping")
    figure(f"G6: {len(RESPELLED)} spellings and another order of the tools, {len(alarms)} false alarms")
    assert (alarms, review.pending) == ([], ())
    assert all(one.tool and one.pin and one.tool.digest != one.pin.raw for one in review.tools[:-2])
