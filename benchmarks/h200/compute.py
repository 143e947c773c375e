"""A Compute on the embedded engine with the real card: tensors of one process's card memory reach the other's.

Needs `tessera`, `kpu` and what they depend on in this Python. Between two processes a tensor must leave the card and
come back to it, so what it takes stands beside the two copies alone, by the driver, from and to pinned memory.
"""

import asyncio
import os
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from time import perf_counter
from typing import Any

from .bench import Bench
from .compute_hooks import ELEMENTS
from .tables import Row
from .workers import ROOT

BYTES = 4 * ELEMENTS
ROUNDS, WARM_UP = 9, 3
HOOKS = f"{__package__}.compute_hooks:OnCard"


def run(bench: Bench) -> list[Row]:
    return bench.attempt("compute", lambda: measure(bench))


def measure(bench: Bench) -> list[Row]:
    state = bench.scratch / "compute-state"
    command = [sys.executable, "-m", "tessera.apps.cli"]
    subprocess.run([*command, "up", "--detach", "--state-dir", str(state)], check=True, cwd=ROOT)
    os.environ["KUBECONFIG"] = str(state / "kubeconfig")
    try:
        found = asyncio.run(talk(bench.times(ROUNDS)))
    finally:
        subprocess.run([*command, "down", "--state-dir", str(state)], check=False, cwd=ROOT)
    bench.note("compute", found)
    return rows_of(found)


async def talk(rounds: int) -> dict[str, Any]:
    from kpu.client import Compute

    torch = import_module("torch")
    environment = {"KPU_HOOKS": HOOKS, "KPU_STORE_BYTES": "1Gi"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    ours = torch.arange(ELEMENTS, dtype=torch.int32, device="cuda")
    async with Compute("bench", resources={"nvidia.com/gpu": 1}, env=environment) as compute:
        await compute.ready(timeout=120)
        ways: dict[str, Callable[[], Awaitable[Any]]] = {
            "card to card, up": lambda: compute.send_tensors(ours),
            "card to card, down": compute.receive_tensors,
        }
        found: dict[str, Any] = {"copies": copies(torch, ours)}
        for name, way in ways.items():
            found[name] = {"seconds": await timed(way, rounds), "stats": vars_of(compute.transfer.stats)}
        received = (await compute.receive_tensors())[0]
        (doubled,) = await compute.stream_tensors(ours)
        is_right = bool((received == ours).all()) and bool((doubled == 2 * ours).all())
        return found | {"is_right": is_right, "devices": [str(received.device), str(doubled.device)]}


def copies(torch: Any, tensor: Any) -> dict[str, float]:
    """Seconds of a copy to pinned memory, and of one back; the best of several."""
    pinned = torch.empty(ELEMENTS, dtype=torch.int32, pin_memory=True)
    seconds: dict[str, list[float]] = {"from the card": [], "to the card": []}
    for _ in range(ROUNDS):
        for name, target, source in (("from the card", pinned, tensor), ("to the card", tensor, pinned)):
            began = perf_counter()
            target.copy_(source, non_blocking=True)
            torch.cuda.synchronize()
            seconds[name].append(perf_counter() - began)
    return {name: min(each) for name, each in seconds.items()}


async def timed(way: Callable[[], Awaitable[Any]], rounds: int) -> list[float]:
    seconds: list[float] = []
    for turn in range(WARM_UP + rounds):
        began = perf_counter()
        result = await way()
        if turn >= WARM_UP:
            seconds.append(perf_counter() - began)
        del result
    return seconds


def vars_of(stats: Any) -> dict[str, Any]:
    return {name: getattr(stats, name) for name in ("path", "bytes", "bytes_copied", "seconds")}


def rows_of(found: dict[str, Any]) -> list[Row]:
    out, back = found["copies"]["from the card"], found["copies"]["to the card"]
    floors = {"card to card, up": out + back, "card to card, down": out + back}
    rows: list[Row] = []
    for name, floor in floors.items():
        median = statistics.median(found[name]["seconds"])
        ours = f"{gigabytes(median)}, {floor / median:.0%} of the copies alone, by {found[name]['stats']['path']}"
        rows.append(Row(f"Compute, 256 MiB, {name}", native=gigabytes(floor), ours=ours, wanted="as the copies alone"))
    whole = f"{'all' if found['is_right'] else 'NOT all'} values right, on {' and '.join(found['devices'])}"
    return [*rows, Row("received and streamed", ours=whole, wanted="all", holds=found["is_right"])]


def gigabytes(seconds: float) -> str:
    return f"{BYTES / seconds / 1e9:.1f} GB/s"
