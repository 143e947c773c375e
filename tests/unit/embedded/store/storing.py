"""What the tests of the store write into it, and how they read it back."""

import asyncio
import resource
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from structlog.testing import capture_logs

from tessera.embedded.store import Change, Following, Key, Record, Store

THINGS = "things.example.com"


def key(name: str, namespace: str = "default", resource: str = THINGS) -> Key:
    return Key(resource, namespace, name)


def thing(value: object) -> dict[str, object]:
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"value": value}}


def put(store: Store, key: Key, value: object) -> Record:
    """Whatever is there."""
    current = store.get(key)
    return store.put(key, thing(value), expected=current.version if current else None)


def values(records: Sequence[Record]) -> dict[str, object]:
    return {record.key.name: record.document()["spec"]["value"] for record in records}


async def take(following: Following, count: int) -> list[Change]:
    async with asyncio.timeout(10):
        return [await anext(following) for _ in range(count)]


@contextmanager
def no_room_on_the_disk() -> Generator[None]:
    """No file of this process can be written, that of its log included."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        with capture_logs():
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
