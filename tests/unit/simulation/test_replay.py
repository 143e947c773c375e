from pathlib import Path
from random import Random

import pytest

from tessera.engine.policies import NODE_POLICIES
from tessera.simulation.made_up import make_up_cluster
from tessera.simulation.replay import Replay, run
from tessera.simulation.trace import make_arrival, read_trace


@pytest.mark.parametrize("policy", NODE_POLICIES)
def test_a_replay_fills_the_cluster_and_never_beyond_it(policy: str) -> None:
    outcome = run(make_up_cluster("12x8"), policy=policy, seed=42)

    at_100, at_130 = outcome.allocated_percent_at_100, outcome.allocated_percent_at_130
    assert at_100 is not None
    assert at_130 is not None
    assert 50 < at_100 <= at_130 <= 100
    assert outcome.rejected_percent == pytest.approx(100 * (130 - at_130) / 130, abs=1.5)
    assert list(outcome.curve) == sorted(outcome.curve)
    assert len(outcome.curve) == 131


def test_the_same_seed_gives_the_same_outcome_and_another_seed_another() -> None:
    scenario = make_up_cluster("10x8")
    first, again, other = (run(scenario, policy="defrag", seed=seed) for seed in (42, 42, 43))

    assert first.curve == again.curve
    assert first.curve != other.curve


def test_churn_holds_the_load_and_counts_the_second_half_only() -> None:
    scenario = make_up_cluster("10x8")
    outcome = run(scenario, policy="binpack", seed=42, churn_percent=80)

    assert outcome.allocated_percent_at_130 is not None
    assert outcome.allocated_percent_at_130 <= 80
    assert outcome.pods == 4 * run(scenario, policy="binpack", seed=42).pods


def test_with_room_for_everyone_nobody_is_rejected() -> None:
    outcome = run(make_up_cluster("10x8"), policy="defrag", seed=42, demand_percent=40)

    assert outcome.rejected_percent == 0
    assert outcome.curve[-1] == pytest.approx(40, abs=3)


@pytest.mark.parametrize("churn", [None, 90.0])
@pytest.mark.parametrize(
    ("demand", "reaches_100", "reaches_130"),
    [(50, False, False), (98, False, False), (100, True, False), (130, True, True)],
)
def test_a_figure_exists_only_where_its_demand_arrived(
    demand: float, reaches_100: bool, reaches_130: bool, churn: float | None
) -> None:
    outcome = run(make_up_cluster("40x8"), policy="binpack", seed=42, demand_percent=demand, churn_percent=churn)

    assert (outcome.allocated_percent_at_100 is not None) == reaches_100
    assert (outcome.allocated_percent_at_130 is not None) == reaches_130


def test_a_demand_that_ends_a_hair_below_130_percent_has_reached_it() -> None:
    outcome = run(make_up_cluster("40x8"), policy="binpack", seed=42, demand_percent=129.55)

    assert len(outcome.curve) == 130
    assert outcome.allocated_percent_at_130 is not None
    assert outcome.allocated_percent_at_130 >= outcome.curve[129]


def test_nodes_and_cards_may_be_chosen_by_different_policies() -> None:
    scenario = make_up_cluster("3x8")
    pair, packed, spread = (run(scenario, policy=policy, seed=42) for policy in ("binpack/spread", "binpack", "spread"))

    assert pair.curve not in (packed.curve, spread.curve)


def test_pods_that_leave_free_their_cards(trace: tuple[Path, Path]) -> None:
    replay = Replay(read_trace(*trace), "defrag", seed=1)
    whole = make_arrival("whole", cpu_milli=1000, memory_mib=1024, cards=4, milli=1000)

    assert replay.arrive(whole)
    assert not replay.arrive(whole)
    replay.make_room(0, Random(1))
    assert replay.allocated_milli == 0
    assert replay.arrive(whole)


def test_a_restricted_pod_waits_for_its_model(trace: tuple[Path, Path]) -> None:
    replay = Replay(read_trace(*trace), "defrag", seed=1)
    picky = make_arrival("picky", cpu_milli=1000, memory_mib=1024, cards=1, milli=1000, models=("B",))

    assert [replay.arrive(picky) for _ in range(5)] == [True] * 4 + [False]
