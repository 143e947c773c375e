"""Writes batch after batch into a store and says which are acknowledged, until it is killed.

What a batch holds depends on its number alone, so whoever reads the numbers knows what must be there.
"""

import asyncio
import sys
from itertools import count
from pathlib import Path
from random import Random
from typing import NamedTuple

from tessera.embedded.store import Key, Store

NAMES = 40
FORGET_EVERY = 10
KEPT_VERSIONS = 60


class Write(NamedTuple):
    """Without a value, a deletion of what is there."""

    key: Key
    value: str | None


def batch(number: int) -> list[Write]:
    chance = Random(number)
    names = chance.sample(range(NAMES), chance.randint(1, 12))
    return [
        Write(
            Key("things", "default", f"thing-{name}"),
            f"{number}" * chance.randint(1, 1_500) if chance.random() < 0.8 else None,
        )
        for name in names
    ]


async def write(path: Path, number: int) -> None:
    print("starting", flush=True)
    store = Store.open(path)
    for now in count(number + 1):
        for key, value in batch(now):
            current = store.get(key)
            if value is not None:
                store.put(key, {"spec": {"value": value}}, expected=current.version if current else None)
            elif current:
                store.delete(key, expected=current.version)
        await store.settled()
        print(now, flush=True)
        if now % FORGET_EVERY == 0:
            store.forget(store.version - KEPT_VERSIONS)


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), int(sys.argv[2])))
