"""Ways to ask for 12 GiB under a cap of 8 GiB: is each held, and do the blocks work that are granted?

Each way has a process of its own, so that one that breaks does not take the others with it.
"""

import re
from typing import Any

from .bench import Bench
from .memory import CAP_MIB, settled_mib
from .raw_ways import BLOCK_MIB, WANTED_BLOCKS, WAYS
from .tables import Row
from .tenants import Tenant, native_environment
from .workers import Worker

MANAGED = "cuMemAllocManaged"
HELD = "7424 MiB"
HAMI_CORE = {
    "cuMemAlloc": HELD, "cudaMalloc": HELD, "cuMemAllocPitch": HELD, "cuMemAllocManaged": HELD, "cuMemCreate": HELD,
    "cuMemAllocAsync": HELD, "cuMemAllocFromPoolAsync": "12288 MiB: bypassed, and no block can be freed",
    "cuArrayCreate": "12288 MiB: bypassed", "graph memory nodes": "0: the capture breaks",
}  # fmt: skip
MOST_LEFT_MIB = 2 * BLOCK_MIB
"""Less than a block is left over, and what a process needs beside its context is less than another."""


def run(bench: Bench) -> list[Row]:
    rows: list[Row] = []
    for way in WAYS:
        rows += bench.attempt(way, lambda way=way: measure(bench, way))
    return rows


def measure(bench: Bench, way: str) -> list[Row]:
    """Managed memory is never asked for without a cap: more of it than a card has can hang the card."""
    native = take(bench, way, None) if way != MANAGED else None
    tenant = bench.tenant(re.sub(r"\W+", "-", way))
    tenant.limit(memory_mib=CAP_MIB)
    ours = take(bench, way, tenant)
    bench.note(way, {"native": native, "ours": ours})
    shown = "not asked" if native is None else f"{native['taken_mib']} MiB"
    text = (
        f"{ours['taken_mib']} MiB, true use {ours['true_use_mib']:.0f}, "
        f"{'intact' if ours['is_intact'] else 'NOT intact'}, again {ours['again_mib']} MiB"
    )
    return [Row(way, shown, HAMI_CORE.get(way, "–"), text, "≤ 8192 MiB in all, intact, the same again", is_right(ours))]


def take(bench: Bench, way: str, tenant: Tenant | None) -> dict[str, Any]:
    before = settled_mib(bench)
    with Worker("raw_takers", [way], tenant.environment() if tenant else native_environment()) as taker:
        taker.begin()
        context = bench.card.used_mib() - before
        taken = taker.ask()
        true_use = bench.card.used_mib() - before
        again = taker.ask()
    return {**taken, **again, "context_mib": context, "true_use_mib": true_use}


def is_right(found: dict[str, Any]) -> bool:
    usable = min(WANTED_BLOCKS * BLOCK_MIB, CAP_MIB - found["context_mib"])
    is_held = found["true_use_mib"] <= CAP_MIB
    is_used = found["taken_mib"] >= usable - MOST_LEFT_MIB
    return is_held and is_used and found["is_intact"] and found["again_mib"] == found["taken_mib"]
