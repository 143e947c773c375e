"""Tensors handed over on one host, beside a plain copy into shared memory that was used before.

A server runs in a process of its own. It keeps the newest tensor only, so that regions come back and are used again.
A server that keeps all needs fresh memory for each tensor; that stands beside a copy into fresh memory.
"""

import asyncio
import contextlib
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from time import perf_counter

import numpy as np

from kpu.client import TensorClient, empty
from kpu.sharing.regions import make_region
from kpu.torch.hooks import TensorHooks

SIZE = 256 << 20
ROUNDS = 9
HANDOFFS = 101
MIB = 1 << 20
ELEMENTS = SIZE // 4


class ResidentTensors(TensorHooks):
    """The server's side: tensors it has anyway, in ordinary memory and in shared memory."""

    def __init__(self) -> None:
        self.ordinary = np.random.default_rng(1).standard_normal(ELEMENTS, dtype=np.float32)
        self.shared = np.asarray(empty((ELEMENTS,), np.float32))
        self.shared[:] = self.ordinary

    def produce(self, index, parameters):
        del index
        return self.ordinary if parameters["memory"] == "ordinary" else self.shared


def main() -> None:
    asyncio.run(_speed())
    print("  peak growth of memory during one transfer of a tensor of 256 MiB, as a share of it (at most 1.20)")
    for direction in ("up", "down"):
        asyncio.run(_growth(direction))


async def _speed() -> None:
    tensor = np.random.default_rng(0).standard_normal(ELEMENTS, dtype=np.float32)
    with _server() as (port, _):
        async with TensorClient("127.0.0.1", port) as client:
            floor = _warm_copy(tensor)
            ways: dict[str, Callable[[], Awaitable[object]]] = {
                "up, ordinary tensor": lambda: client.send_tensors(tensor),
                "down, ordinary tensor": lambda: client.receive_tensors(1, {"memory": "ordinary"}),
            }
            for _ in range(4):
                for way in ways.values():
                    await way()
            seconds = {name: list[float]() for name in ("floor", *ways)}
            for _ in range(ROUNDS):
                seconds["floor"].append(_timed(floor))
                for name, way in ways.items():
                    seconds[name].append(await _timed_call(way))
                    _must_be_shared(client)
            _print_speeds("copy into shared memory used before (floor)", seconds, "(at least 80 %)")
            await _print_handoffs(client)
    await _speed_of_keeping(tensor)


async def _speed_of_keeping(tensor: np.ndarray) -> None:
    seconds = {"floor": list[float](), "up, to a server that keeps all": list[float]()}
    with _server(store_bytes="8Gi") as (port, _):
        async with TensorClient("127.0.0.1", port) as client:
            for _ in range(ROUNDS):
                seconds["floor"].append(_timed(lambda: _cold_copy(tensor)))
                seconds["up, to a server that keeps all"].append(await _timed_call(lambda: client.send_tensors(tensor)))
                _must_be_shared(client)
    _print_speeds("copy into fresh shared memory (floor)", seconds)


def _print_speeds(floor_name: str, seconds: dict[str, list[float]], bar: str = "") -> None:
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    floor = medians.pop("floor")
    print(f"  {floor_name:<48} {SIZE / floor / 1e9:6.2f} GB/s")
    for name, median in medians.items():
        print(f"  {name:<48} {SIZE / median / 1e9:6.2f} GB/s   {floor / median:4.0%} of the floor {bar}")


async def _print_handoffs(client: TensorClient) -> None:
    tensor = np.asarray(empty((ELEMENTS,), np.float32))
    tensor[:] = 1
    small = np.ones(10, np.float32)
    ways: dict[str, Callable[[], Awaitable[object]]] = {
        "small tensor up, over gRPC (for comparison)": lambda: client.send_tensors(small),
        "hand-off of a resident tensor, up": lambda: client.send_tensors(tensor),
        "hand-off of a resident tensor, down": lambda: client.receive_tensors(1, {"memory": "shared"}),
    }
    seconds = {name: list[float]() for name in ways}
    for _ in range(HANDOFFS):
        for name, way in ways.items():
            seconds[name].append(await _timed_call(way))
    for name, times in seconds.items():
        bar = "(at most 2 ms)" if "hand-off" in name else ""
        p90 = sorted(times)[len(times) * 9 // 10]
        print(f"  {name:<48} {statistics.median(times) * 1e3:6.2f} ms p50 {p90 * 1e3:6.2f} ms p90 {bar}")


async def _growth(direction: str) -> None:
    """In processes that have moved nothing large before: what one transfer adds at its peak."""
    tensor = np.ones(ELEMENTS, np.float32)
    with _server() as (port, server):
        async with TensorClient("127.0.0.1", port) as client:
            await client.send_tensors(np.ones(MIB, np.float32))
            marks = {"client": _Mark(os.getpid()), "server": _Mark(server)}
            shared_before = _shared_memory()
            if direction == "up":
                await client.send_tensors(tensor)
            else:
                (received,) = await client.receive_tensors(1, {"memory": "ordinary"})
                np.asarray(received)[::1024].sum()
            _must_be_shared(client)
            grown = {name: mark.grown() for name, mark in marks.items()}
            grown["shared memory of the machine"] = _shared_memory() - shared_before
    told = ", ".join(f"{name} {bytes_ / SIZE:.2f}" for name, bytes_ in grown.items())
    print(f"  {direction:<10} {told}")


class _Mark:
    """The peak of a process's resident memory, shared pages included, from here on."""

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        Path(f"/proc/{pid}/clear_refs").write_text("5")
        self._before = self._kib("VmRSS")

    def grown(self) -> int:
        return (self._kib("VmHWM") - self._before) * 1024

    def _kib(self, field: str) -> int:
        found = re.search(rf"{field}:\s+(\d+)", self._status.read_text())
        assert found
        return int(found[1])


def _shared_memory() -> int:
    found = re.search(r"Shmem:\s+(\d+)", Path("/proc/meminfo").read_text())
    assert found
    return int(found[1]) * 1024


def _warm_copy(tensor: np.ndarray) -> Callable[[], None]:
    region = make_region(SIZE)
    source = tensor.view(np.uint8)
    np.copyto(region.memory, source)
    return lambda: np.copyto(region.memory, source)


def _cold_copy(tensor: np.ndarray) -> None:
    np.copyto(make_region(SIZE).memory, tensor.view(np.uint8))


def _timed(work: Callable[[], object]) -> float:
    began = perf_counter()
    work()
    return perf_counter() - began


async def _timed_call(way: Callable[[], Awaitable[object]]) -> float:
    began = perf_counter()
    await way()
    return perf_counter() - began


def _must_be_shared(client: TensorClient) -> None:
    stats = client.transfer.stats
    assert stats
    assert stats.path == "shared-memory", f"the tensor went by {stats.path}"


@contextlib.contextmanager
def _server(store_bytes: str = "256Mi") -> Iterator[tuple[int, int]]:
    """A server that keeps so much of what it is sent; its port and its process."""
    settings = {"KPU_PORT": "0", "KPU_HOST": "127.0.0.1", "KPU_STORE_BYTES": store_bytes}
    hooks = {"KPU_HOOKS": "benchmarks.tensors_shared:ResidentTensors"}
    process = subprocess.Popen(
        [sys.executable, "-m", "kpu.torch.server"],
        env={**os.environ, **settings, **hooks},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr
    try:
        port = next(int(found[1]) for line in process.stderr if (found := re.search(r"port=(\d+)", line)))
        yield port, process.pid
    finally:
        process.terminate()
        process.communicate()


if __name__ == "__main__":
    main()
