"""Several card policies in order: the first decides, the next between what it finds equal."""

import pytest

from tessera.model.requests import PolicyChoice
from tests.builders import a_card, a_node, a_pod, a_want
from tests.unit.engine.world import World


def a_world() -> World:
    """Numa node 1 is the smaller; on it B is fuller than C. On numa node 0 D is the fullest of all."""
    numas = {"A": 0, "B": 1, "C": 1, "D": 0, "E": 0}
    world = World(a_node("n", *(a_card(letter, numa=numa) for letter, numa in numas.items())))
    world.hold("n", "B", memory_mib=10)
    world.hold("n", "D", memory_mib=100)
    return world


@pytest.mark.parametrize(
    ("order", "card"),
    [
        (("numa", "binpack"), "B"),
        (("numa", "spread"), "C"),
        (("binpack", "numa"), "D"),
        (("spread", "numa"), "C"),
        (("mutex", "numa"), "C"),
        (("mutex", "spread"), "A"),
        (("numa", "mutex", "binpack"), "C"),
    ],
)
def test_the_order_decides(order, card):
    assert a_world().cards(a_pod(a_want(), policy=PolicyChoice(cards=order))) == [[card]]


def test_a_second_policy_never_brings_in_a_card_that_will_not_do():
    world = World(a_node("n", a_card("A", healthy=False), a_card("B"), a_card("C")))
    world.hold("n", "B", memory_mib=16_384)
    pod = a_pod(a_want(memory_mib=1), policy=PolicyChoice(cards=("spread", "defrag", "binpack")))
    assert world.cards(pod) == [["C"]]


def test_nobody_gets_more_cards_than_asked_for():
    assert a_world().cards(a_pod(a_want(2), policy=PolicyChoice(cards=("numa", "spread")))) == [["B", "C"]]
