"""How full the cards get, and how much is turned away under churn, beside FGD from the same run and as published.

Needs the openb trace: TESSERA_TRACES names its folder, by default ../shared/openb. TESSERA_SEEDS sets how many orders
of arrival, by default 10 to fill up and 3 under churn, which takes four times as long. Without the trace it fails,
unless TESSERA_SKIP_DENSITY is 1, as it is when all benchmarks run.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter

from tessera.cli.simulation_report import mean_of
from tessera.simulation.campaign import Campaign, Progress, run_campaign
from tessera.simulation.replay import Outcome
from tessera.simulation.trace import read_trace

TRACES = Path(os.environ.get("TESSERA_TRACES", Path(__file__).parents[2] / "shared" / "openb"))
NODES = "openb_node_list_gpu_node.csv"
PUBLISHED_FGD = {"default": 95.23, "gpushare40": 93.96, "gpushare100": 86.64, "gpuspec10": 94.66, "multigpu20": 95.53}
HELD_LOADS = {"default": (90, 94), "gpushare40": (90, 92), "gpuspec10": (90, 94), "multigpu20": (90, 94)}
POLICIES = ("defrag", "fgd")


def main() -> None:
    if not (TRACES / NODES).is_file():
        do_without("density")
        return
    print(f"{'list':<12} {'allocated at 100 % demand':>27} {'FGD here':>9} {'FGD published':>14} {'seconds':>8}")
    for name, published in PUBLISHED_FGD.items():
        outcomes, seconds = _run(name, POLICIES, _seeds(10), None)
        ours, fgd = (_mean(outcomes[policy], "allocated_percent_at_100") for policy in POLICIES)
        print(f"{name:<12} {ours:>25.2f} % {fgd:>9.2f} {published:>14.2f} {seconds:>8.1f}", flush=True)
    print(f"\n{'list':<12} {'load held':>9} {'rejected':>10} {'FGD here':>9} {'seconds':>8}")
    for name, loads in HELD_LOADS.items():
        for load in loads:
            outcomes, seconds = _run(name, POLICIES, _seeds(3), float(load))
            ours, fgd = (_mean(outcomes[policy], "rejected_percent") for policy in POLICIES)
            print(f"{name:<12} {load:>7} % {ours:>8.2f} % {fgd:>9.2f} {seconds:>8.1f}", flush=True)


def do_without(benchmark: str) -> None:
    sentence = f"{benchmark}: no {NODES} in {TRACES}, set TESSERA_TRACES to the folder of the openb lists"
    if os.environ.get("TESSERA_SKIP_DENSITY") != "1":
        sys.exit(sentence)
    print(f"{sentence}; NOT MEASURED")


def _mean(outcomes: Sequence[Outcome], figure: str) -> float:
    mean = mean_of(outcomes, figure)
    assert mean is not None  # 130 % of all cards arrive
    return mean


def _seeds(usual: int) -> tuple[int, ...]:
    return tuple(range(42, 42 + int(os.environ.get("TESSERA_SEEDS", usual))))


def _run(
    name: str, policies: tuple[str, ...], seeds: tuple[int, ...], churn: float | None
) -> tuple[Mapping[str, Sequence[Outcome]], float]:
    scenario = read_trace(TRACES / NODES, TRACES / f"openb_pod_list_{name}.csv")
    began = perf_counter()
    campaign = Campaign(policies=policies, seeds=seeds, churn_percent=churn)
    outcomes = run_campaign(scenario, campaign, on_progress=_show)
    _show(None)
    return outcomes, perf_counter() - began


def _show(progress: Progress | None) -> None:
    """Progress on a terminal; None wipes it away."""
    if os.isatty(1):
        text = f"  {progress.part:.0%} of {progress.replays} replays" if progress else ""
        print(f"\r{text:<30}", end="" if text else "\r", flush=True)


if __name__ == "__main__":
    main()
