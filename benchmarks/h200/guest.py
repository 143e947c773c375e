"""What runs in a pod of the embedded engine: takes all memory that it gets, holds it, gives it back, and works then.

`python -m benchmarks.h200.guest HOLD_UNTIL WORK_FROM SECONDS`: moments of the monotonic clock, which pods share with
the machine. The last line of its log is JSON.
"""

import json
import os
import sys
import time
from ctypes import byref, c_size_t, c_uint64

from .driver import Driver
from .driver_loads import Fma
from .loads import Order, Runner

BLOCK_MIB = 64
MOST_MIB = 24 << 10
MIB = 1 << 20


def fill(driver: Driver) -> list[c_uint64]:
    blocks: list[c_uint64] = []
    while len(blocks) * BLOCK_MIB < MOST_MIB:
        block = c_uint64()
        if driver.try_call("cuMemAlloc_v2", byref(block), c_size_t(BLOCK_MIB * MIB)):
            break
        blocks.append(block)
    return blocks


def main() -> None:
    hold_until, work_from, seconds = (float(word) for word in sys.argv[1:])
    driver = Driver()
    blocks = fill(driver)
    filled_at = time.monotonic()
    time.sleep(max(0.0, hold_until - filled_at))
    for block in blocks:
        driver.call("cuMemFree_v2", block)
    phase = Runner(driver, Fma(driver)).obey(Order(seconds=seconds, starts_at=work_from))
    seen = {name: value for name, value in os.environ.items() if "VISIBLE" in name or name == "LD_PRELOAD"}
    print(json.dumps({"taken_mib": len(blocks) * BLOCK_MIB, "filled_at": filled_at, "environment": seen, **phase}))


if __name__ == "__main__":
    main()
