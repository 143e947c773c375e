"""What the in-container library adds to an allocation, with 4,000 live blocks, on the simulated driver.

The same program runs with and without the library in turns, so that both see the same machine; the best turn of each
counts. The simulated driver is slower than a real one (it locks a file and maps memory), so look at what is added.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.simulated_container import BUILT, simulated_container

TURNS = 30
LIMIT_MIB = 14_000
BLOCK_MIB = 1
NATIVE_PAIR_NS = 1_994
"""Of an H200, the least that was measured there with as many live blocks."""


def main() -> None:
    taker, library = BUILT / "probe/taker", BUILT / "libtessera.so"
    if not taker.exists() or not library.exists():
        sys.exit("benchmarks.native_memory: the C libraries are not built; `make native` does it")
    with TemporaryDirectory() as scratch:
        without, under = simulated_container(Path(scratch), memory_mib=LIMIT_MIB)
        pairs = [(_lap(taker, without), _lap(taker, under)) for _ in range(TURNS)]
    bare, limited = (min(column) for column in zip(*pairs, strict=True))
    print(f"  alloc and free, driver alone      {bare:8.0f} ns")
    print(f"  alloc and free, under a limit     {limited:8.0f} ns")
    print(f"  added                             {limited - bare:8.0f} ns, {limited / bare:.2f} times the driver alone")
    print(f"  the same added to an H200's pair  {1 + (limited - bare) / NATIVE_PAIR_NS:8.2f} times")


def _lap(taker: Path, environment: dict[str, str]) -> float:
    command = [str(taker), "dlsym", "lap", str(BLOCK_MIB)]
    return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
