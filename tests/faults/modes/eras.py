"""Which revision a server speaks, and how badly it takes to be asked."""

from __future__ import annotations

import os
import threading

from tests.faults.modes.framing import FLOOD
from tests.faults.modes.mode import mode, silent
from tests.faults.peer import PREFIX, RpcError, complete

TYPE_CHECKING = False  # `typing` is a slow import, see peer.py
if TYPE_CHECKING:
    from tests.faults.peer import Json, Peer


@mode
def legacy_only(peer: Peer) -> None:
    """A polite server of the handshake era; its arguments are the revisions it knows, if not all."""
    peer.eras = {"legacy"}
    peer.versions = peer.arguments or peer.versions


@mode
def modern_only(peer: Peer) -> None:
    """A server that has left the handshake behind."""
    peer.eras = {"modern"}


@mode
def discover_hang(peer: Peer) -> None:
    """An old server that passes over requests it does not know."""
    peer.eras = {"legacy"}
    peer.methods["server/discover"] = silent
    peer.rule = silent


@mode
def discover_crash(peer: Peer) -> None:
    """An old server that dies of a request it does not know."""
    peer.eras = {"legacy"}
    peer.methods["server/discover"] = lambda _: os._exit(1)
    peer.rule = silent


@mode
def discover_floods_stderr(peer: Peer) -> None:
    """An old server that logs pages of errors for the probe, then refuses it with a code of its own."""
    peer.eras = {"legacy"}

    def discover(_: Json) -> None:
        os.write(2, FLOOD)
        raise RpcError(0, "Invalid request parameters")

    peer.methods["server/discover"] = discover
    peer.rule = silent


@mode
def discover_late(peer: Peer) -> None:
    """A modern server in a cold container: it answers the probe only when its host is impatient."""
    peer.eras = {"modern"}

    def discover(message: Json) -> None:
        result = complete(peer.discover(message))
        threading.Timer(2.4, peer.result, (message["id"], result)).start()

    peer.methods["server/discover"] = discover
    peer.methods["initialize"] = silent


@mode
def discover_names_old(peer: Peer) -> None:
    """A server whose discover result names only revisions with a handshake."""
    peer.eras = {"legacy"}
    peer.rule = silent
    peer.methods["server/discover"] = lambda _: {
        "supportedVersions": ["2025-06-18", "2025-11-25"],
        "capabilities": {},
    }


@mode
def unknown_version(peer: Peer) -> None:
    """A server that insists on a revision nobody has heard of."""
    peer.eras = {"legacy"}
    peer.versions = ["2031-01-01"]


@mode
def first_frame_decides(peer: Peer) -> None:
    """A server that settles its era by the first frame; one without the envelope means an old host."""
    seen: list[Json] = []

    def rule(message: Json) -> None:
        seen.append(message)
        if PREFIX + "protocolVersion" not in seen[0].get("params", {}).get("_meta", {}):
            peer.eras = {"legacy"}
        peer.check_era(message)

    peer.rule = rule
