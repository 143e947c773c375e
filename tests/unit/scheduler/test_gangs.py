"""Gangs start together or not at all, and hold nothing while they cannot."""

import pytest

from tessera.engine.ledger import figures
from tests.unit.scheduler.claimants import Claimants, a_claimant
from tests.unit.scheduler.cluster import a_pod

FOUR = "4xA100-SXM4-80GB"


@pytest.fixture
def claimants() -> Claimants:
    return Claimants(a=FOUR, b=FOUR)


def members(claimants: Claimants, gang: str, count: int, cards: int = 1, first: int = 0) -> list[dict[str, object]]:
    for number in range(first, count):
        claimants.claim(f"{gang}-{number}", cards, gang=gang)
    return [claimants.see(a_claimant(f"{gang}-{number}", f"{gang}-{number}")) for number in range(first, count)]


def test_a_gang_whose_size_nobody_tells_waits(claimants: Claimants):
    (pod,) = members(claimants, "g", 1)
    assert "tells the size of the gang default/g" in claimants.filter(pod)


def test_members_wait_until_all_are_there_and_then_each_has_its_place(claimants: Claimants):
    claimants.gang("g", 3)
    first, second = members(claimants, "g", 2, cards=2)
    assert claimants.filter(first) == "the gang default/g has 2 of 3 members"
    (third,) = members(claimants, "g", 3, cards=2, first=2)
    places = [claimants.filter(pod) for pod in (third, first, second)]
    assert sorted(places) == ["a", "a", "b"]


def test_what_a_gang_was_planned_is_taken_for_everybody_else(claimants: Claimants):
    claimants.gang("g", 2)
    first, _ = members(claimants, "g", 2, cards=4)
    claimants.filter(first)
    assert claimants.filter(claimants.see(a_pod("other", memory=1))).startswith("no card has 1 MiB free")


def test_gangs_that_arrive_by_halves_hold_nothing(claimants: Claimants):
    untouched = figures(claimants.world.ledger)
    for gang in ("one", "two"):
        claimants.gang(gang, 3)
        for pod in members(claimants, gang, 2, cards=3):
            claimants.filter(pod)
    assert figures(claimants.world.ledger) == untouched
    assert claimants.filter(claimants.see(a_pod("other", memory=1, count=4))) == "a,b"


def test_a_gang_that_does_not_fit_as_a_whole_takes_nothing(claimants: Claimants):
    untouched = figures(claimants.world.ledger)
    claimants.gang("g", 3)
    for pod in members(claimants, "g", 3, cards=3):
        assert "the gang default/g does not fit as a whole: 2 of 3 members" in claimants.filter(pod)
    assert figures(claimants.world.ledger) == untouched


def test_places_that_are_not_taken_in_time_are_free(claimants: Claimants):
    claimants.gang("g", 2)
    first, _ = members(claimants, "g", 2, cards=4)
    claimants.filter(first, 0.0)
    claimants.phases.offers.expire(31.0)
    assert claimants.filter(claimants.see(a_pod("other", memory=1)), 31.0) == "a,b"


def test_a_member_that_cannot_be_bound_releases_the_others(claimants: Claimants):
    untouched = figures(claimants.world.ledger)
    claimants.gang("g", 2)
    first, _ = members(claimants, "g", 2, cards=4)
    claimants.filter(first)
    claimants.phases.gangs.release_plan("uid-g-1")
    assert figures(claimants.world.ledger) == untouched


def test_a_member_that_is_deleted_releases_the_others(claimants: Claimants):
    claimants.gang("g", 2)
    first, second = members(claimants, "g", 2, cards=4)
    claimants.filter(first)
    claimants.lose(second)
    assert claimants.filter(first) == "the gang default/g has 1 of 2 members"
    assert claimants.filter(claimants.see(a_pod("other", memory=1))) == "a,b"


def test_a_member_that_is_made_anew_does_not_wait_for_those_that_run(claimants: Claimants):
    claimants.gang("g", 2)
    first, second = members(claimants, "g", 2)
    claimants.hold(first)
    claimants.hold(second)
    claimants.lose(second)
    assert claimants.filter(claimants.see(a_claimant("g-1", "g-1", uid="another"))) != ""


def test_a_node_that_others_do_not_let_the_member_have_is_planned_around(claimants: Claimants):
    claimants.gang("g", 1)
    (pod,) = members(claimants, "g", 1)
    assert claimants.phases.filter(pod, ["b"], 0.0).passed == ["b"]


def test_pods_say_the_size_of_their_gang_themselves(claimants: Claimants):
    pod = a_pod("part", memory=1000)
    pod["metadata"]["annotations"] = {"gpu.scheduling/gang": "g", "gpu.scheduling/gang-size": "2"}
    claimants.see(pod)
    assert claimants.filter(pod) == "the gang default/g has 1 of 2 members"
    claimants.claim("g-1", 4, gang="g")
    claimants.see(a_claimant("g-1", "g-1"))
    assert claimants.filter(pod) in ("a", "b")


def test_more_members_than_needed_do_not_stand_in_the_way(claimants: Claimants):
    claimants.gang("g", 2)
    pods = members(claimants, "g", 3, cards=4)
    places = [claimants.filter(pod) for pod in pods]
    assert sorted(places)[:2] == ["a", "b"]
    assert "does not fit as a whole" in sorted(places)[2]
