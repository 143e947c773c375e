"""What the library costs a program that nothing limits.

One process with it and one without take turns, and the best turn of each counts.
"""

from contextlib import ExitStack
from functools import partial

from .bench import Bench
from .tables import Row, percent
from .workers import Worker, together

TURNS, TURN_S = 6, 1.5
KEPT = 0.995
LOADS = ("matmul", "graph", "fma")
HAMI_CORE = {"matmul": "608.0 of 609.0 a second", "graph": "4852 of 4854 a second"}


def run(bench: Bench) -> list[Row]:
    rows: list[Row] = []
    with ExitStack() as stack:
        casts = {load: make_cast(bench, stack, load) for load in LOADS if bench.is_asked(load)}
        for load, workers in casts.items():
            rows += bench.attempt(load, partial(measure, bench, load, workers))
            for worker in workers:
                worker.kill()
    return rows


def make_cast(bench: Bench, stack: ExitStack, load: str) -> list[Worker]:
    """One without the library and one with it; all are started at once, because PyTorch takes seconds to load."""
    tenant = bench.tenant(load)
    tenant.limit()
    return [stack.enter_context(bench.work(load, whose)) for whose in (None, tenant)]


def measure(bench: Bench, load: str, workers: list[Worker]) -> list[Row]:
    for worker in workers:
        worker.begin()
    turns = max(2, bench.times(TURNS))
    rates = [[together([worker], bench.seconds(TURN_S))[0]["rate"] for worker in workers] for _ in range(turns)]
    native, ours = (max(column) for column in zip(*rates, strict=True))
    bench.note(load, {"native": native, "ours": ours, "turns": rates})
    return [
        Row(
            f"{load}, uncapped",
            native=f"{native:.1f} a second",
            hami_core=HAMI_CORE.get(load, "–"),
            ours=f"{ours:.1f} a second, {percent(ours / native)}",
            wanted="≥ 99.5 %",
            holds=ours / native >= KEPT,
        )
    ]
