"""Events are frozen and closed, and a listener that fails harms nobody."""

from __future__ import annotations

import logging
from typing import get_args

import msgspec
import pytest

from luthier import events
from luthier.events import CallEnded, Event, Observers, ServerNoise, ServerReady
from luthier.secrets import Secret
from luthier.uri import ToolUri

NOISE = ServerNoise(at=1.0, server="git", message="odd")


class Listener:
    def __init__(self) -> None:
        self.heard: list[Event] = []

    def notify(self, event: Event) -> None:
        self.heard.append(event)


class Broken:
    def notify(self, event: Event) -> None:
        raise RuntimeError(f"deaf to {event.at}")


def test_everybody_hears_every_event_in_order() -> None:
    one, other = Listener(), Listener()
    observers = Observers([one, other])
    second = ServerReady(at=2.0, server="git", protocol="2026-07-28", seconds=0.1)
    observers.notify(NOISE)
    observers.notify(second)
    assert one.heard == other.heard == [NOISE, second]


def test_a_listener_that_fails_is_logged_and_the_others_still_hear(caplog: pytest.LogCaptureFixture) -> None:
    listener = Listener()
    with caplog.at_level(logging.ERROR, logger="luthier.events"):
        Observers([Broken(), listener]).notify(NOISE)
    assert listener.heard == [NOISE]
    assert "ServerNoise" in caplog.text
    assert "deaf" in caplog.text


def test_nobody_needs_to_listen() -> None:
    Observers().notify(NOISE)


def test_observers_are_an_observer_themselves() -> None:
    listener = Listener()
    Observers([Observers([listener])]).notify(NOISE)
    assert listener.heard == [NOISE]


def test_the_union_names_every_event_there_is() -> None:
    defined = {
        value
        for name, value in vars(events).items()
        if getattr(value, "__module__", "") == events.__name__
        and isinstance(value, type)
        and issubclass(value, msgspec.Struct)
        and not name.startswith("_")
    }
    assert set(get_args(Event)) == defined


@pytest.mark.parametrize("kind", get_args(Event), ids=lambda kind: kind.__name__)
def test_each_event_is_frozen_and_knows_its_time(kind: type[msgspec.Struct]) -> None:
    assert kind.__struct_config__.frozen
    assert "at" in kind.__struct_fields__


def test_an_event_cannot_be_changed() -> None:
    ended = CallEnded(at=1.0, call_id="c", uri=ToolUri.custom("add"), outcome="ok", duration=3.0)
    with pytest.raises(AttributeError):
        ended.outcome = "error"  # type: ignore[misc]


def test_what_others_said_is_redacted_for_every_listener() -> None:
    Secret("canary-in-an-event")
    listener = Listener()
    observers = Observers([listener])
    said = "it is canary-in-an-event"
    for event in (
        ServerNoise(at=1.0, server="git", message=said),
        events.ServerFailed(at=1.0, server="git", message=said),
        events.ServerStopped(at=1.0, server="git", reason=said),
        events.CallProgressed(at=1.0, call_id="c", uri=ToolUri.mcp("a", "b"), progress=1, message=said),
        events.StepDone(at=1.0, run="r", step="s", status="failed", duration=1, reason=said),
        events.RunDone(at=1.0, run="r", ensemble="e", success=False, duration=1, reason=said),
    ):
        observers.notify(event)
    assert len(listener.heard) == 6
    assert "canary" not in repr(listener.heard)
    assert repr(listener.heard).count("it is [redacted]") == 6
