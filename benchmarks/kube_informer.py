"""What it costs to know ten thousand pods: time to fill a cache, delay of a change, memory of a pod.

Floors, in the same run: `json.loads` of the same bytes for the time, and a bare read of them from the same server by
the same HTTP library, so that it shows what is ours. The server is a process of its own, over TLS on the loopback.
"""

import asyncio
import gc
import json
import subprocess
import sys
import time
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from statistics import quantiles
from typing import Any

import structlog
import uvloop

from benchmarks.kube_canned import SENT_AT, TICKS
from benchmarks.kube_pods import initial_events, list_pages
from benchmarks.memory import resident_bytes
from tessera.kube.access import Access
from tessera.kube.caching import Change
from tessera.kube.client import Client
from tessera.kube.credentials import Credential, ReadCredentials
from tessera.kube.informer import Informer
from tessera.kube.kinds import PODS
from tessera.kube.pods import CACHED_PODS, Pod
from tessera.kube.requests import collection_request
from tessera.kube.tls import Trust

COUNT = 10_000
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


def main() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    print(f"informer, {COUNT} pods, times are CPU of the client")
    with canned_server() as served:
        _print_memory(_access(served, "list"))
        floor_s = _measure_loads()
        for name in LOOPS:
            _print_cpu(f"read and drop the list, {name}", _cpu_of(name, _read_pages(_access(served, "list"))), floor_s)
            for mode in ("list", "gzip", "stream"):
                seconds = _cpu_of(name, _fill(_access(served, mode)))
                _print_cpu(f"fill the cache by {mode}, {name}", seconds, floor_s)
        for name in LOOPS:
            _print_delay(name, _access(served, "ticks"))


@contextmanager
def canned_server() -> Generator[dict[str, str]]:
    command = [sys.executable, "-m", "benchmarks.kube_canned", str(COUNT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


def _access(served: dict[str, str], mode: str) -> Access:
    return Access(
        server=f"{served['server']}/{mode}",
        credentials=ReadCredentials(Credential),
        trust=Trust(authorities=served["authorities"].encode()),
    )


def _measure_loads() -> float:
    pages, lines = list(list_pages(COUNT)), list(initial_events(COUNT))
    size = sum(map(len, pages))
    print(f"  {size / COUNT:.0f} bytes of JSON for each pod")
    floors = []
    for what, texts in (("pages", pages), ("events", lines)):
        floors.append(min(_cpu_of_loads(texts) for _ in range(3)))
        print(f"  floor: json.loads of the {what:<22} {floors[-1]:8.3f} s")
    return min(floors)


def _cpu_of_loads(texts: list[bytes]) -> float:
    began = time.process_time()
    for text in texts:
        json.loads(text)
    return time.process_time() - began


def _print_cpu(what: str, seconds: float, floor_s: float) -> None:
    print(f"  {what:<40} {seconds:8.3f} s   {seconds / floor_s:5.2f} x json.loads")


def _cpu_of(loop: str, work: Coroutine[Any, Any, None]) -> float:
    gc.collect()
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        began = time.process_time()
        runner.run(work)
        return time.process_time() - began


async def _read_pages(access: Access) -> None:
    async with Client(access) as client:
        for begin in range(0, COUNT, 500):
            await client.send(collection_request("list", PODS, "", params={"continue": str(begin)}))


async def _fill(access: Access) -> None:
    async with Client(access) as client:
        informer = Informer(client, CACHED_PODS)
        await _until_synced(informer)
        assert len(informer) == COUNT


async def _until_synced(informer: Informer[Pod]) -> None:
    running = asyncio.create_task(informer.run())
    await informer.synced()
    running.cancel()


def _print_memory(access: Access) -> None:
    """Everything is read and dropped before, so that only what is kept makes the process grow."""

    async def fill() -> float:
        await _read_pages(access)
        async with Client(access) as client:
            informer = Informer(client, CACHED_PODS)
            before = resident_bytes()
            await _until_synced(informer)
            return (resident_bytes() - before) / len(informer)

    print(f"  memory of a cached pod                   {asyncio.run(fill()):8.0f} bytes")


def _print_delay(loop: str, access: Access) -> None:
    delays_ms: list[float] = []
    done = asyncio.Event()

    def note(change: Change[Pod]) -> None:
        now_ns = time.monotonic_ns()
        assert change.after is not None
        sent_ns = int((change.after.metadata.annotations or {})[SENT_AT])
        delays_ms.append((now_ns - sent_ns) / 1e6)
        if len(delays_ms) == TICKS:
            done.set()

    async def listen() -> None:
        async with Client(access) as client:
            informer = Informer(client, CACHED_PODS)
            informer.subscribe(note)
            running = asyncio.create_task(informer.run())
            await done.wait()
            running.cancel()

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(listen())
    cuts = quantiles(delays_ms, n=100)
    print(f"  sent to handler called, {loop:<16} p50 {cuts[49]:6.3f} ms   p99 {cuts[98]:6.3f} ms")


if __name__ == "__main__":
    main()
