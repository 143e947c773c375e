"""What one tenant of a simulated card gets of its time under a share, by the way in which it launches.

Kernels are counted by the program that launches them, so nobody's bookkeeping is believed. Without a cap is the ceiling
of the same run: several processes do less than one there, because the card takes its time to switch between them.
"""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.simulated_container import BUILT, simulated_container

SECONDS = "2.5"
SHARES = (25, 50, 75)


class Load(NamedTuple):
    name: str
    program: str
    words: tuple[int | str, ...]
    processes: int = 1


LOADS = (
    Load("kernels of 500 us on one stream", "worker", (500_000, 8)),
    Load("kernels of 20 us on one stream", "worker", (20_000, 64)),
    Load("on 8 streams", "worker", (20_000, 64, "streams8")),
    Load("on 64 streams", "worker", (20_000, 256, "streams64")),
    Load("by 8 threads, each waits for each", "crowd", (20_000, 8, 1)),
    Load("by 64 threads, each waits for four", "crowd", (20_000, 64, 4)),
    Load("200 us, 4 threads that think 600 us", "crowd", (200_000, 4, 1, 600_000)),
    Load("3 ms, 2 threads that think 5 ms", "crowd", (3_000_000, 2, 1, 5_000_000)),
    Load("50 us, 4 threads that think 900 us", "crowd", (50_000, 4, 1, 900_000)),
    Load("200 us by two processes", "worker", (200_000, 64), 2),
    Load("20 us by two processes", "worker", (20_000, 64), 2),
)


def main() -> None:
    if not (BUILT / "probe/crowd").exists() or not (BUILT / "libtessera.so").exists():
        sys.exit("benchmarks.native_share: the C libraries are not built; `make native` does it")
    print(f"  {'per cent of the card':<38} {'no cap':>7}" + "".join(f"{share:>5} %" for share in SHARES))
    for load in LOADS:
        free, *held = (_percent(load, share) for share in (0, *SHARES))
        print(f"  {load.name:<38} {free:>7.1f}" + "".join(f"{percent:>7.1f}" for percent in held), flush=True)


def _percent(load: Load, share: int) -> float:
    command = [str(BUILT / "probe" / load.program), SECONDS, *map(str, load.words)]
    with TemporaryDirectory() as scratch:
        environment = simulated_container(Path(scratch), cores_percent=share).limited
        running = [
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(load.processes)
        ]
        reports = [json.loads(program.communicate()[0]) for program in running]
    return sum(100 * report["gpu_ns"] / report["wall_ns"] for report in reports)


if __name__ == "__main__":
    main()
