"""Defrag holds more than the others: the claim of docs/benchmarks.md, on clusters made up here."""

from random import Random

import pytest

from tessera.simulation.replay import run
from tessera.simulation.scenario import Scenario
from tessera.simulation.trace import make_arrival, make_node


def awkward_mix() -> Scenario:
    """Fractions that leave gaps, beside whole cards and whole nodes."""
    nodes = tuple(
        make_node(f"node-{number:03d}", cpu_milli=96_000, memory_mib=393_216, cards=8, model="G")
        for number in range(40)
    )
    sizes = [(1, 810), (1, 470), (1, 320), (1, 650), (1, 160), (1, 1000), (1, 1000), (2, 1000), (8, 1000)]
    weights = [30, 20, 12, 10, 10, 30, 20, 2, 1]
    random = Random(5)
    pods = tuple(
        make_arrival(f"pod-{number:04d}", cpu_milli=4_000, memory_mib=8_192, cards=cards, milli=milli)
        for number, (cards, milli) in enumerate(random.choices(sizes, weights, k=800))
    )
    return Scenario("an awkward mix", nodes, pods)


@pytest.mark.parametrize("other", ["fgd", "best-fit", "binpack", "spread", "random"])
def test_defrag_fills_more_than(other: str) -> None:
    scenario = awkward_mix()
    ours, theirs = (
        [run(scenario, policy=policy, seed=seed).curve[130] for seed in (42, 43)] for policy in ("defrag", other)
    )

    assert sum(ours) > sum(theirs)


@pytest.mark.parametrize("other", ["best-fit", "spread", "random"])
def test_defrag_turns_away_less_under_churn_than(other: str) -> None:
    scenario = awkward_mix()
    ours, theirs = (run(scenario, policy=policy, seed=42, churn_percent=92) for policy in ("defrag", other))

    assert ours.rejected_percent < theirs.rejected_percent
