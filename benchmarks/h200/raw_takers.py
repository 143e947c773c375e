"""One process that takes memory in one of the ways that the driver knows: `python -m benchmarks.h200.raw_takers WAY`.

It takes blocks until it is refused, writes to all of them and reads them back, says what it has, gives everything back,
and takes it once more.
"""

import json
import sys
from typing import Any

from .raw_ways import BLOCK_MIB, WAYS, Way


def main() -> None:
    """Between taking and giving back it waits for a line, so that somebody else can look at the card."""
    chosen = WAYS[sys.argv[1]]
    print(json.dumps({"ready": "raw"}), flush=True)
    sys.stdin.readline()
    driver = chosen.opened()
    print(json.dumps({"context": True}), flush=True)
    sys.stdin.readline()
    way = chosen(driver)
    blocks = way.take_all()
    print(json.dumps({"taken_mib": len(blocks) * BLOCK_MIB, "is_intact": way.is_intact(blocks)}), flush=True)
    sys.stdin.readline()
    give_back_all(way, blocks)
    again = way.take_all()
    print(json.dumps({"again_mib": len(again) * BLOCK_MIB}), flush=True)
    give_back_all(way, again)


def give_back_all(way: Way, blocks: list[Any]) -> None:
    for block in blocks:
        way.give_back(block)
    way.finish()


if __name__ == "__main__":
    main()
