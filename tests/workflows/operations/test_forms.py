"""Tools that ask for something first, in runs where people can be asked in place: through the real gate."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from luthier import Runtime
from luthier.govern import Answer, Request
from luthier.taint import Integrity
from luthier.testing import MemoryServer
from luthier.wire import Result
from tests.workflows.house import LONG

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.workflows import Run

ENSEMBLE = {
    "ensemble": "e",
    "agents": [{"name": "a", "operation": "tools", "config": {"mcp": "desk", "tool": "book"}, "inputs": {}}],
}
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def form(message: str = "Who are you?", schema: Any = NAME, **rest: Any) -> dict[str, Any]:
    params = {"message": message, "requestedSchema": schema, **rest}
    return {"method": "elicitation/create", "params": params}


class Desk(MemoryServer):
    """A server whose tool asks for these, one after the other, and then says what it was given."""

    def __init__(self, *rounds: dict[str, Any], state: str | None = "s\u00e9al") -> None:
        super().__init__("desk", {"book": self.book})
        self.rounds = list(rounds)
        self.state = state
        self.given: list[Any] = []

    def book(self, _: dict[str, Any]) -> Any:
        params = self.received[-1]["params"]
        self.given.append((params.get("inputResponses"), params.get("requestState")))
        if not self.rounds:
            return {"given": params.get("inputResponses")}
        state = {} if self.state is None else {"requestState": self.state}
        return Result({"resultType": "input_required", "inputRequests": self.rounds.pop(0), **state})

    @property
    def told(self) -> dict[str, Any]:
        """What the caller said that it can do."""
        calls = [one["params"] for one in self.received if one["method"] == "tools/call"]
        told: dict[str, Any] = calls[0]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        return told


async def run(server: Desk, root: Path, approve: Any = None, **settings: Any) -> Run:
    project = {"mcpServers": {"desk": {"command": "python", "args": ["none.py"]}}, **settings}
    async with (
        asyncio.timeout(LONG),
        Runtime.open(project, root=root, transports={"desk": server.transport}, approve=approve) as rt,
    ):
        return await rt.run(ENSEMBLE)


async def test_a_person_fills_in_the_form_and_the_state_goes_back_as_it_came(tmp_path: Path) -> None:
    seen: list[Request] = []

    def person(request: Request) -> Any:
        seen.append(request)
        return {"name": "Ada"}

    server = Desk({"who": form("Who\x1b[2J are you?")})
    done = await run(server, tmp_path, person)
    assert done.output == {"given": {"who": {"action": "accept", "content": {"name": "Ada"}}}}
    assert server.given == [
        (None, None),
        ({"who": {"action": "accept", "content": {"name": "Ada"}}}, "s\u00e9al"),
    ]
    (request,) = seen
    assert (request.what, request.uri, request.schema) == ("input", "mcp://desk/book", NAME)
    assert request.prompt == "Who\\x1b[2J are you?", "what a server says cannot steer a terminal"
    assert request.said is not None
    assert request.said.integrity == "untrusted"
    assert done.label.integrity is Integrity.untrusted
    assert server.told["elicitation"] == {}


async def test_several_forms_are_filled_in_together(tmp_path: Path) -> None:
    server = Desk({"who": form(), "when": form("When?", {"type": "object"})}, state=None)
    both = {"who": {"name": "Ada"}, "when": {}}
    prompts: list[str] = []

    def person(request: Request) -> Any:
        prompts.append(request.prompt)
        return both

    done = await run(server, tmp_path, person)
    assert prompts == ["who: Who are you?\nwhen: When?"]
    accepted = {key: {"action": "accept", "content": content} for key, content in both.items()}
    assert done.output == {"given": accepted}
    assert server.given[1] == (accepted, None), "no state came, so none goes back"


async def test_one_round_may_follow_another(tmp_path: Path) -> None:
    server = Desk({"a": form()}, {"b": form()})
    done = await run(server, tmp_path, lambda _: {"name": "Ada"})
    assert list(done.output["given"]) == ["b"]
    assert len(server.given) == 3


@pytest.mark.parametrize("said", [Answer(approved=False), {"name": 5}, "Ada"])
async def test_a_no_and_what_does_not_fit_decline(said: Any, tmp_path: Path) -> None:
    server = Desk({"who": form()})
    done = await run(server, tmp_path, lambda _: said)
    assert done.output == {"given": {"who": {"action": "decline"}}}


async def test_a_form_that_asks_for_a_password_comes_with_a_warning(tmp_path: Path) -> None:
    prompts: list[str] = []

    def person(request: Request) -> Any:
        prompts.append(request.prompt)
        return {}

    schema = {"type": "object", "properties": {"Password": {"type": "string"}}}
    await run(Desk({"who": form(schema=schema)}), tmp_path, person)
    assert "Do not give passwords" in prompts[0]


@pytest.mark.parametrize(
    "asked",
    [
        {"a": {"method": "sampling/createMessage", "params": {}}},
        {"a": form(), "b": {"method": "roots/list"}},
        {"a": form(mode="url", url="https://example.com")},
        {"a": form(schema=[])},
        {"a": "a word"},
        {},
    ],
)
async def test_what_is_no_form_is_asked_of_nobody(asked: Any, tmp_path: Path) -> None:
    server = Desk(asked, state=None)
    done = await run(server, tmp_path, lambda _: {"name": "Ada"})
    assert done.error is not None
    assert done.error["kind"] == "protocol"
    assert len(server.given) == 1


async def test_where_nobody_can_be_asked_the_server_is_not_told_that_it_may(tmp_path: Path) -> None:
    server = Desk({"who": form()})
    done = await run(server, tmp_path)
    assert "elicitation" not in server.told
    assert done.error is not None
    assert done.error["input_required"]["requestState"] == "s\u00e9al"


async def test_what_nobody_fills_in_in_time_fails_the_step(tmp_path: Path) -> None:
    server = Desk({"who": form()})
    done = await run(server, tmp_path, approval_timeout=1)
    assert server.told["elicitation"] == {}
    assert done.error is not None
    assert done.error["kind"] == "protocol"


async def test_a_server_that_asks_for_ever_is_left_after_ten_rounds(tmp_path: Path) -> None:
    server = Desk(*({str(number): form()} for number in range(20)))
    done = await run(server, tmp_path, lambda _: {"name": "Ada"})
    assert done.error is not None
    assert done.error["kind"] == "protocol"
    assert len(server.given) == 11
