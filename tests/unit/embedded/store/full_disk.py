"""Fill the disk that a directory is on through the store, make room, and go on. Run as a program of its own."""

import asyncio
import sys
from pathlib import Path

import structlog

from tessera.embedded.store import Key, Store
from tessera.errors import StoreFailed


async def fill(directory: Path) -> None:
    ballast = directory / "ballast"
    ballast.write_bytes(bytes(128 * 1024))
    store = Store.open(directory / "state.db")
    acknowledged = 0
    try:
        while True:
            store.put(Key("things", "", f"thing-{acknowledged}"), {"data": "x" * 4_000}, expected=None)
            await store.settled()
            acknowledged += 1
    except StoreFailed as error:
        print(error)
    if len(store.list("things")) == acknowledged > 0:
        print("what was acknowledged is there")
    ballast.unlink()
    store.put(Key("things", "", "afterwards"), {}, expected=None)
    await store.settled()
    store.close()
    if len(Store.open(directory / "state.db").list("things")) == acknowledged + 1:
        print("there is room again")


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    asyncio.run(fill(Path(sys.argv[1])))
