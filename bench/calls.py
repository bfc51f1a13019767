"""A governed call over pipes against the official client's bare one: CPU a call, calls a second at 64."""

from __future__ import annotations

import statistics

from contest import HERE, OFFICIAL, OWN, Contender, machine, require_peers, rounds

ROUNDS = 9


def main() -> None:
    require_peers()
    server = HERE / "servers" / "echo.py"
    contenders = [
        Contender("official", OFFICIAL, HERE / "contenders" / "official.py", server),
        Contender("governed", OWN, HERE / "contenders" / "governed.py", server),
    ]
    print(machine())
    alone = rounds(contenders, "seq 1000", ROUNDS)
    crowd = rounds(contenders, "many 64 3200", ROUNDS)
    for one in contenders:
        one.quit()
    cpu = {
        name: statistics.median(t["cpu"] / t["calls"] * 1e6 for t in taken) for name, taken in alone.items()
    }
    rate = {name: statistics.median(t["calls"] / t["wall"] for t in taken) for name, taken in crowd.items()}
    for name, spent in cpu.items():
        print(f"{name:10} {spent:7.0f} us CPU a call   {rate[name]:8.0f} calls/s at 64")
    cheaper, faster = cpu["governed"] / cpu["official"], rate["governed"] / rate["official"]
    print(f"ratio      CPU {cheaper:.2f}x   calls/s {faster:.2f}x")


main()
