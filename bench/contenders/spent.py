"""What a piece of work costs this process: CPU and wall seconds, and KiB of resident memory added."""

import gc
import time
from pathlib import Path


def resident() -> float:
    """KiB of this process in memory now."""
    status = Path("/proc/self/status").read_text()
    return float(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


class Spent:
    def __init__(self) -> None:
        gc.collect()
        self._cpu, self._memory = time.process_time(), resident()
        self._wall = time.perf_counter()

    def taken(self) -> dict[str, float]:
        cpu = time.process_time() - self._cpu
        wall = time.perf_counter() - self._wall
        return {"cpu": cpu, "wall": wall, "memory": resident() - self._memory}
