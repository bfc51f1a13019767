"""LangGraph: nodes that are functions, in a row and side by side, without a checkpointer and with SQLite's.

usage: langgraph_steps.py STEPS WIDTH
"""

import asyncio
import operator
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any, TypedDict

from kinds import expect, serve
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

STEPS, WIDTH = map(int, sys.argv[1:])


class Count(TypedDict):
    x: int


class Found(TypedDict):
    found: Annotated[list[int], operator.add]


async def step(state: Count) -> Count:
    return {"x": state["x"] + 1}


def in_thread(state: Count) -> Count:
    return {"x": state["x"] + 1}


async def leaf(state: Any) -> Found:
    return {"found": [state["item"] + 1]}


def loop(node: Any, saver: Any) -> Any:
    graph = StateGraph(Count)
    graph.add_node("step", node)
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", lambda state: "step" if state["x"] < STEPS else END)
    return graph.compile(checkpointer=saver)


def row() -> Any:
    graph = StateGraph(Count)
    for number in range(STEPS):
        graph.add_node(f"step{number}", step)
        graph.add_edge(f"step{number - 1}" if number else START, f"step{number}")
    graph.add_edge(f"step{STEPS - 1}", END)
    return graph.compile()


def fan(saver: Any) -> Any:
    graph = StateGraph(Found)
    graph.add_node("leaf", leaf)
    graph.add_conditional_edges(START, lambda _: [Send("leaf", {"item": item}) for item in range(WIDTH)])
    graph.add_edge("leaf", END)
    return graph.compile(checkpointer=saver)


async def main() -> None:
    number = 0

    def config() -> Any:
        nonlocal number
        number += 1
        return {"recursion_limit": STEPS + 10, "configurable": {"thread_id": str(number)}}

    def in_a_row(graph: Any) -> Any:
        async def work() -> int:
            end = await graph.ainvoke({"x": 0}, config())
            expect(end["x"], STEPS)
            return STEPS

        return work

    def side_by_side(graph: Any) -> Any:
        async def work() -> int:
            end = await graph.ainvoke({"found": []}, config())
            expect(sum(end["found"]), WIDTH * (WIDTH + 1) // 2)
            return WIDTH

        return work

    with tempfile.TemporaryDirectory() as root:
        async with AsyncSqliteSaver.from_conn_string(str(Path(root) / "checkpoints.db")) as saver:
            await serve(
                {
                    "loop": in_a_row(loop(step, None)),
                    "row": in_a_row(row()),
                    "code": in_a_row(loop(in_thread, None)),
                    "fan": side_by_side(fan(None)),
                    "loop-durable": in_a_row(loop(step, saver)),
                    "fan-durable": side_by_side(fan(saver)),
                }
            )


asyncio.run(main())
