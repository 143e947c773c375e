"""The embedded engine's store: writing, listing, following and keeping pods of 3 KB.

Writing stands beside SQLite given the same bytes in as many commits, memory beside the bytes of the bodies alone.
"""

import asyncio
import sqlite3
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import uvloop

from tessera.embedded.store import Key, Store

PODS = 10_000
TICKS = 200
FOLLOWERS = 100
RATE = 50
SECONDS = 4
PADDING = "x" * 2_600


def pod(number: int) -> tuple[Key, dict[str, object]]:
    name = f"pod-{number:05}"
    metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}, "uid": f"{number:036}"}
    spec = {"nodeName": f"node-{number % 1000}", "containers": [{"name": "main", "image": "web", "args": [PADDING]}]}
    return Key("pods", "default", name), {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        store = Store.open(Path(directory) / "state.db")
        await _write_in_bulk(store, Path(directory))
        await _write_alone(store)
        _list(store)
        await _follow(store)
        store.close()
        _open_again(Path(directory) / "state.db")
    await _remember()


async def _write_in_bulk(store: Store, directory: Path) -> None:
    pods = [pod(number) for number in range(PODS)]
    per_tick = PODS // TICKS
    began = perf_counter()
    for tick in range(TICKS):
        for key, document in pods[tick * per_tick : (tick + 1) * per_tick]:
            store.put(key, document, expected=None)
        await store.settled()
    _print(f"puts, {per_tick} a tick", PODS / (perf_counter() - began), "/s")
    plain = sqlite3.connect(directory / "plain.db", isolation_level=None)
    plain.executescript(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE log (version INTEGER PRIMARY KEY, body BLOB)"
    )
    rows = [(record.version, record.body) for record in store.list("pods")]
    began = perf_counter()
    for tick in range(TICKS):
        plain.execute("BEGIN")
        plain.executemany("INSERT INTO log VALUES (?, ?)", rows[tick * per_tick : (tick + 1) * per_tick])
        plain.execute("COMMIT")
    _print("  the same bytes into SQLite (floor)", PODS / (perf_counter() - began), "/s")
    plain.close()


async def _write_alone(store: Store) -> None:
    key, document = pod(0)
    began = perf_counter()
    for _ in range(TICKS):
        current = store.get(key)
        assert current is not None
        store.put(key, document, expected=current.version)
        await store.settled()
    _print("put, one a tick", (perf_counter() - began) / TICKS * 1e3, "ms")


def _list(store: Store) -> None:
    _print(f"list of {PODS}", _best_ms(lambda: store.list("pods")), "ms")
    _print(f"list of {PODS}, joined", _best_ms(lambda: b",".join([record.body for record in store.list("pods")])), "ms")
    past = store.version - TICKS
    _print(f"list of {PODS} as it was {TICKS} changes ago", _best_ms(lambda: store.list_at("pods", "", past)), "ms")


async def _follow(store: Store) -> None:
    """How much of a core it takes, and how long the last follower waits."""
    delays: list[float] = []
    written_at: dict[int, float] = {}

    async def follow() -> None:
        following = store.follow("pods", since=store.version)
        for _ in range(RATE * SECONDS):
            change = await anext(following)
            delays.append(perf_counter() - written_at[change.version])

    tasks = [asyncio.create_task(follow()) for _ in range(FOLLOWERS)]
    await asyncio.sleep(0)
    began, began_s = process_time(), perf_counter()
    for number in range(RATE * SECONDS):
        key, document = pod(PODS + number)
        written_at[store.version + 1] = perf_counter()
        store.put(key, document, expected=None)
        await asyncio.sleep(max(0.0, began_s + (number + 1) / RATE - perf_counter()))
    await asyncio.gather(*tasks)
    busy = (process_time() - began) / (perf_counter() - began_s)
    _print(f"{FOLLOWERS} followers at {RATE} puts a second", busy * 100, "% of a core")
    _print("  seen by the slowest 1% after", sorted(delays)[-len(delays) // 100] * 1e3, "ms")


def _open_again(path: Path) -> None:
    began = perf_counter()
    store = Store.open(path)
    _print(f"opening {len(store.list('pods'))} pods again", (perf_counter() - began) * 1e3, "ms")
    store.close()


async def _remember() -> None:
    """Bytes of Python objects beside the bytes of the bodies alone."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "state.db"
        await _fill(path)
        tracemalloc.start()
        store = Store.open(path)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        bodies = sum(len(record.body) for record in store.list("pods"))
        store.close()
    _print(f"memory of {PODS} pods", held / 1e6, "MB")
    _print("  their bodies alone (floor)", bodies / 1e6, "MB")


async def _fill(path: Path) -> None:
    store = Store.open(path)
    for number in range(PODS):
        key, document = pod(number)
        store.put(key, document, expected=None)
    await store.settled()
    store.close()


def _best_ms(call: Callable[[], object]) -> float:
    times: list[float] = []
    for _ in range(5):
        began = perf_counter()
        call()
        times.append(perf_counter() - began)
    return min(times) * 1e3


def _print(what: str, value: float, unit: str) -> None:
    print(f"  {what:<46} {value:10.1f} {unit}")


if __name__ == "__main__":
    uvloop.run(main())
