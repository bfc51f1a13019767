"""A structured result of one megabyte by HTTP, ours governed: CPU a call against the official client's."""

from __future__ import annotations

import statistics

from contest import HERE, OFFICIAL, OWN, Contender, echo_servers, machine, require_peers, rounds

ROUNDS = 7
KILOBYTES = "1000"


def main() -> None:
    require_peers()
    folder = HERE / "contenders"
    with echo_servers() as [url]:
        contenders = [
            Contender("official", OFFICIAL, folder / "official.py", url, KILOBYTES=KILOBYTES),
            Contender("governed", OWN, folder / "governed.py", url, KILOBYTES=KILOBYTES),
        ]
        print(machine())
        taken = rounds(contenders, "seq 20", ROUNDS)
        for one in contenders:
            one.quit()
    cpu = {
        name: statistics.median(t["cpu"] / t["calls"] * 1000 for t in each) for name, each in taken.items()
    }
    for name, spent in cpu.items():
        print(f"{name:10} {spent:7.2f} ms CPU a call")
    print(f"ratio      {cpu['governed'] / cpu['official']:.2f}x")


main()
