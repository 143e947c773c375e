"""A request measured against kinds of cards: what does not depend on what is free."""

import pytest

from tessera.engine.demand import LARGEST, Demand, Demands, accepts_type
from tessera.engine.fleet import Fleet, Kind
from tessera.model.requests import CardSelector
from tests.builders import a_card, a_node, a_want
from tests.unit.engine.claims import a_claim_pod

NO_CARD = Kind()
A100 = Kind("NVIDIA", "NVIDIA A100", "hami-core", 10, 40_960, 100)
T4 = Kind("NVIDIA", "Tesla T4", "mps", 4, 16_384, 100)
DCU = Kind("DCU", "K100", "hami-core", 4, 65_536, 100)
STRETCHED = Kind("NVIDIA", "NVIDIA A100", "hami-core", 10, 40_960, 200)


@pytest.mark.parametrize(
    ("use", "avoid", "accepted"),
    [
        ((), (), True),
        (("A100",), (), True),
        (("a100",), (), True),
        (("NVIDIA a",), (), True),
        (("T4", "A100"), (), True),
        (("T4",), (), False),
        ((), ("a1",), False),
        ((), ("T4",), True),
        (("A100",), ("80GB",), True),
        (("NVIDIA",), ("A100",), False),
    ],
)
def test_types_match_as_parts_in_any_case_and_both_lists_apply(use, avoid, accepted):
    assert accepts_type(CardSelector(use_types=use, avoid_types=avoid), "NVIDIA A100") is accepted


def test_a_kind_is_usable_when_vendor_type_and_mode_are_right():
    demand = Demand(a_want(selector=CardSelector(use_types=("t4",), mode="mps")), [NO_CARD, A100, T4, DCU])
    assert demand.of_vendor.tolist() == [False, True, True, False]
    assert demand.type_matches.tolist() == [False, False, True, False]
    assert demand.mode_matches.tolist()[1:] == [False, True, False]
    assert demand.usable.tolist() == [False, False, True, False]


def test_no_mode_accepts_every_mode():
    assert Demand(a_want(), [NO_CARD, A100, T4]).usable.tolist() == [False, True, True]


def test_a_percentage_of_memory_is_taken_of_each_kind_and_rounded_down():
    odd = Kind("NVIDIA", "odd", "hami-core", 1, 999, 100)
    assert Demand(a_want(memory_percent=33), [NO_CARD, A100, T4, odd]).memory.tolist() == [0, 13_516, 5_406, 329]


def test_mebibytes_are_the_same_on_every_kind_and_never_overflow():
    assert Demand(a_want(memory_mib=5), [NO_CARD, A100]).memory.tolist() == [5, 5]
    assert Demand(a_want(memory_mib=10**15), [NO_CARD, A100]).memory.tolist() == [LARGEST, LARGEST]


def test_who_wants_all_cores_of_a_kind_wants_it_alone():
    assert Demand(a_want(cores_percent=100), [NO_CARD, A100, STRETCHED]).exclusive.tolist()[1:] == [True, False]
    assert Demand(a_want(cores_percent=99), [NO_CARD, A100]).exclusive.tolist()[1:] == [False]


def a_fleet(*models: str) -> Fleet:
    fleet = Fleet()
    fleet.put(a_node("n", *(a_card(model, model=model) for model in models)))
    return fleet


def test_the_same_request_is_measured_once():
    demands = Demands(a_fleet("A100"))
    assert demands.of(a_want(2)) is demands.of(a_want(2))


def test_a_new_kind_of_card_is_measured_too():
    fleet = a_fleet("A100")
    demands = Demands(fleet)
    assert len(demands.of(a_want()).memory) == 2
    fleet.put(a_node("m", a_card("x", model="H100")))
    assert len(demands.of(a_want()).memory) == 3


def test_what_is_remembered_stays_bounded():
    demands = Demands(a_fleet("A100"), limit=8)
    first = demands.of(a_want(1))
    for count in range(2, 10):
        demands.of(a_want(count))
    assert demands.of(a_want(1)) is not first
    assert demands.of(a_want(1)).request == first.request


def test_a_claim_to_whole_cards_takes_what_each_kind_has_and_a_shared_one_what_it_asks_for():
    fleet = Fleet()
    fleet.put(a_node("n", a_card("a", memory_mib=1000, cores_percent=80), a_card("b", memory_mib=3000)))
    demands = Demands(fleet)
    whole, shared = a_claim_pod(2).claim, a_claim_pod(2, shared={"memory_percent": 10, "cores_percent": 7}).claim
    assert whole is not None
    assert shared is not None
    assert demands.of_claim(whole).memory.tolist() == [0, 1000, 3000]
    assert demands.of_claim(whole).cores.tolist() == [0, 80, 100]
    assert demands.of_claim(whole) is demands.of_claim(whole)
    assert demands.of_claim(shared).memory.tolist() == [0, 100, 300]
    assert demands.of_claim(shared).cores.tolist() == [7, 7, 7]
