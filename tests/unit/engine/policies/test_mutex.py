"""Mutex: only cards that nobody else uses."""

from tessera.model.refusals import Reason
from tessera.model.requests import PolicyChoice
from tests.builders import a_card, a_node, a_pod, a_want
from tests.unit.engine.world import World

MUTEX = PolicyChoice(cards=("mutex",))


def test_an_idle_card_is_taken_from_the_left():
    world = World(a_node("n", *(a_card(letter) for letter in "ABC")))
    world.hold("n", "A")
    assert world.cards(a_pod(a_want(), policy=MUTEX)) == [["B"]]
    assert world.cards(a_pod(a_want(2), policy=MUTEX)) == [["B", "C"]]


def test_a_card_that_is_used_for_nothing_is_still_used():
    world = World(a_node("n", a_card("A")))
    uid = world.hold("n", "A", memory_mib=0, cores_percent=0)
    assert world.refusal(a_pod(a_want(), policy=MUTEX)).reason is Reason.CARD_EXCLUSIVE
    world.ledger.release(uid)
    assert world.cards(a_pod(a_want(), policy=MUTEX)) == [["A"]]


def test_two_containers_of_a_pod_do_not_share_a_card():
    assert World(a_node("n", a_card("A"), a_card("B"))).cards(a_pod(a_want(), a_want(), policy=MUTEX)) == [["A"], ["B"]]


def test_anywhere_in_a_list_mutex_asks_for_idle_cards():
    world = World(a_node("n", a_card("A"), a_card("B")))
    world.hold("n", "A", memory_mib=100)
    for order in (("binpack", "mutex"), ("mutex", "binpack")):
        assert world.cards(a_pod(a_want(), policy=PolicyChoice(cards=order))) == [["B"]]
