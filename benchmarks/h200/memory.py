"""A cap on memory: is it ever passed, and how much of it can be used?

The true use is what the card's own figure grew by, read in this process, which nothing stands before. What contexts
take of the cap is measured in the same way, after they were made and before anything else was.
"""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from .bench import Bench
from .tables import Row, percent
from .workers import Worker

CAP_MIB = 8192
USABLE = 0.95
SETTLED_S = 0.5
"""A driver frees what the last process had a moment after that has ended."""
LONGEST_SETTLING_S = 10.0
ALLOCATORS = {
    "default": {},
    "expandable": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    "async": {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
    "uncached": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
}
HAMI_CORE_OVER = {
    "default": "+86",
    "expandable": "+78",
    "async": "+168",
    "uncached": "+92",
    "2 racers": "+179",
    "4 racers": "+386",
}
COARSE_TO_FINE = [256, 32, 2]


@dataclass(frozen=True)
class Part:
    """Processes of one container that fill it together. Their PyTorch is loaded, the card is not touched yet."""

    name: str
    hami_core_over: str
    steps_mib: list[int]
    takers: list[Worker]


def run(bench: Bench) -> list[Row]:
    rows: list[Row] = []
    with ExitStack() as stack:
        parts = [make_part(bench, stack, allocator, [allocator], COARSE_TO_FINE) for allocator in ALLOCATORS] + [
            make_part(bench, stack, f"{racers} racers", ["uncached"] * racers, [32]) for racers in (2, 4)
        ]
        for part in parts:
            rows += bench.attempt(part.name, partial(measure, bench, part))
            for taker in part.takers:
                taker.kill()
    return rows


def make_part(bench: Bench, stack: ExitStack, name: str, modes: list[str], steps_mib: list[int]) -> Part:
    tenant = bench.tenant(name.replace(" ", "-"))
    tenant.limit(memory_mib=CAP_MIB)
    environments = [tenant.environment() | ALLOCATORS[mode] for mode in modes if bench.is_asked(name)]
    takers = [stack.enter_context(Worker("takers", [], environment)) for environment in environments]
    return Part(name, HAMI_CORE_OVER[name], steps_mib, takers)


def measure(bench: Bench, part: Part) -> list[Row]:
    before = settled_mib(bench)
    for taker in part.takers:
        taker.begin()
    contexts = bench.card.used_mib() - before
    for taker in part.takers:
        taker.tell(steps_mib=part.steps_mib)
    answers = [taker.hear() for taker in part.takers]
    true_use = bench.card.used_mib() - before
    again = part.takers[0].ask(give_back=True)
    taken = sum(answer["taken_mib"] for answer in answers)
    found = {
        "taken_mib": taken,
        "true_use_mib": true_use,
        "over_mib": true_use - CAP_MIB,
        "contexts_mib": contexts,
        "usable": taken / (CAP_MIB - contexts),
        "refusals": [answer.get("refusal") for answer in answers],
        "is_usable_again": again["is_usable_again"],
        "answers": [*answers, again],
    }
    bench.note(part.name, found)
    return [row_of(part, found)]


def settled_mib(bench: Bench) -> float:
    """What the card has used when nobody of ours is on it any more."""
    deadline = time.monotonic() + LONGEST_SETTLING_S
    seen = bench.card.used_mib()
    while time.monotonic() < deadline:
        time.sleep(SETTLED_S)
        last, seen = seen, bench.card.used_mib()
        if seen >= last:
            break
    return seen


def row_of(part: Part, found: dict[str, Any]) -> Row:
    ours = (
        f"{found['over_mib']:+.0f} MiB, {percent(found['usable'])} usable, {found['refusals'][0]}, "
        f"{'goes on' if found['is_usable_again'] else 'cannot go on'} after freeing"
    )
    what = part.name if len(part.takers) > 1 else f"torch, {part.name} allocator"
    holds = found["over_mib"] <= 0 and found["usable"] >= USABLE and found["is_usable_again"]
    return Row(what, "–", f"{part.hami_core_over} MiB", ours, "≤ 0 MiB, ≥ 95 % of the cap without contexts", holds)
