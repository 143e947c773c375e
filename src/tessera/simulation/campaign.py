"""Many replays side by side: every policy with every seed, on as many processes as there are cores.

Replays share nothing, so each runs in a process of its own; a small shared array tells how far each has come.
"""

import multiprocessing
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.sharedctypes import SynchronizedArray

import msgspec

from tessera.errors import SimulationFailed
from tessera.simulation.replay import Outcome, run
from tessera.simulation.scenario import Scenario

THREADS_OF_NUMPY = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
PROGRESS_SCALE = 1000


class Campaign(msgspec.Struct, frozen=True, kw_only=True):
    policies: tuple[str, ...]
    seeds: tuple[int, ...]
    demand_percent: float = 130.0
    churn_percent: float | None = None


class Progress(msgspec.Struct, frozen=True):
    """How many replays have ended, of how many, and which part of all work is done."""

    ended: int
    replays: int
    part: float


def run_campaign(
    scenario: Scenario,
    campaign: Campaign,
    *,
    workers: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Mapping[str, Sequence[Outcome]]:
    """The outcomes of each policy, in the order of the seeds."""
    tasks = [(policy, seed) for policy in campaign.policies for seed in campaign.seeds]
    spawn = multiprocessing.get_context("spawn")
    counters = spawn.Array("l", len(tasks))
    for variable in THREADS_OF_NUMPY:
        os.environ.setdefault(variable, "1")
    width = min(workers or os.cpu_count() or 1, len(tasks))
    pool = ProcessPoolExecutor(width, spawn, _remember, (scenario, campaign, counters))
    try:
        futures = [pool.submit(_replay, position, *task) for position, task in enumerate(tasks)]
        _watch(futures, counters, on_progress)
    except (BrokenProcessPool, MemoryError) as error:
        raise SimulationFailed("a worker process died, probably out of memory; try fewer --workers") from error
    finally:
        pool.shutdown(cancel_futures=True)
    outcomes = dict(zip(tasks, (future.result() for future in futures), strict=True))
    return {policy: [outcomes[policy, seed] for seed in campaign.seeds] for policy in campaign.policies}


def _watch(
    futures: Sequence["Future[Outcome]"],
    counters: "SynchronizedArray[int]",
    on_progress: Callable[[Progress], None] | None,
) -> None:
    """Wait for all, or raise what the first that fails has raised."""
    pending = set(futures)
    while pending:
        ended, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in ended:
            future.result()
        if on_progress is not None:
            part = sum(counters[:]) / (PROGRESS_SCALE * len(futures))
            on_progress(Progress(len(futures) - len(pending), len(futures), part))


_task: tuple[Scenario, Campaign, "SynchronizedArray[int]"] | None = None


def _remember(scenario: Scenario, campaign: Campaign, counters: "SynchronizedArray[int]") -> None:
    """Runs once in each worker: the scenario travels to it once, not with every replay."""
    global _task
    _task = scenario, campaign, counters


def _replay(position: int, policy: str, seed: int) -> Outcome:
    assert _task is not None  # set by the initializer of this process
    scenario, campaign, counters = _task

    def progress(done: int, total: int) -> None:
        counters[position] = PROGRESS_SCALE * done // total

    outcome = run(
        scenario,
        policy=policy,
        seed=seed,
        demand_percent=campaign.demand_percent,
        churn_percent=campaign.churn_percent,
        progress=progress,
    )
    counters[position] = PROGRESS_SCALE
    return outcome
