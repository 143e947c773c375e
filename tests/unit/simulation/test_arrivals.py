from random import Random

from tessera.model.requests import PodRequest
from tessera.simulation.arrivals import arrivals_for
from tessera.simulation.scenario import Arrival

PODS = [Arrival(f"p-{number:02d}", PodRequest(), 500) for number in range(20)]


def test_the_list_is_shuffled_and_then_drawn_from_until_the_demand_is_met() -> None:
    queue = arrivals_for(PODS, wanted_milli=13_000, random=Random(42))

    assert sorted(pod.name for pod in queue[:20]) == [pod.name for pod in PODS]
    assert queue[:20] != PODS
    assert sum(pod.milli for pod in queue) == 13_000


def test_a_list_that_is_too_long_loses_pods_at_random() -> None:
    queue = arrivals_for(PODS, wanted_milli=6_000, random=Random(42))

    assert sum(pod.milli for pod in queue) == 6_000
    assert len({pod.name for pod in queue}) == 12


def test_the_seed_alone_decides_the_order() -> None:
    first = arrivals_for(PODS, wanted_milli=13_000, random=Random(7))

    assert first == arrivals_for(PODS, wanted_milli=13_000, random=Random(7))
    assert first != arrivals_for(PODS, wanted_milli=13_000, random=Random(8))
