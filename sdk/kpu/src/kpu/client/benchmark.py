"""How fast tensors travel to a server and back, as a table that can be printed."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kpu.client.tensor_client import TensorClient
from kpu.client.transfers import TransferStats

MIB = 1 << 20


class Row(NamedTuple):
    """One size in one direction; `median_s` over the rounds, in each of which `moved_bytes` went there and back."""

    direction: str
    size_bytes: int
    moved_bytes: int
    path: str
    median_s: float

    @property
    def gigabytes_per_second(self) -> float:
        return self.moved_bytes / self.median_s / 1e9


@dataclass(frozen=True)
class Benchmark:
    rounds: int
    rows: Sequence[Row]

    def __repr__(self) -> str:
        lines = [f"{'direction':<10} {'size':>10} {'path':<14} {'median':>10} {'GB/s':>8}"]
        lines += [
            f"{row.direction:<10} {_size(row.size_bytes):>10} {row.path:<14} {row.median_s * 1e3:>7.2f} ms "
            f"{row.gigabytes_per_second:>8.3f}"
            for row in self.rows
        ]
        note = f"median of {self.rounds} rounds, in which the directions take turns; down includes making the tensor"
        return "\n".join([*lines, note])


async def measure(server: TensorClient, sizes: Sequence[int], rounds: int) -> Benchmark:
    """Up is `send_tensors`, down is `receive_tensors`, there and back is `stream_tensors`."""
    rows = [row for size in sizes for row in await _measure_size(server, max(size // 4, 1), rounds)]
    return Benchmark(rounds, rows)


async def _measure_size(server: TensorClient, elements: int, rounds: int) -> Sequence[Row]:
    tensor = np.arange(elements, dtype=np.float32)
    calls = {
        "up": lambda: server.send_tensors(tensor),
        "down": lambda: server.receive_tensors(1, {"shape": str(elements)}),
        "both ways": lambda: server.stream_tensors(tensor),
    }
    seconds: dict[str, list[float]] = {direction: [] for direction in calls}
    told: dict[str, TransferStats] = {}
    for _ in range(max(rounds, 1)):
        for direction, call in calls.items():
            begun = time.perf_counter()
            await call()
            seconds[direction].append(time.perf_counter() - begun)
            if server.transfer.stats:
                told[direction] = server.transfer.stats
    return [
        Row(direction, elements * 4, stats.bytes, stats.path, statistics.median(seconds[direction]))
        for direction, stats in told.items()
    ]


def _size(size_bytes: int) -> str:
    return f"{size_bytes / MIB:g} MiB" if size_bytes >= MIB else f"{size_bytes / 1024:g} KiB"
