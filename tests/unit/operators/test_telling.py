"""Which changes of a claim people are told of."""

from tessera.operators.claims import judge_claim
from tessera.operators.objects import ClaimStatus
from tessera.operators.telling import tell_claim
from tests.unit.operators.making import a_bound_pod, a_claim, a_pod

NEW = ClaimStatus()
WAITING = judge_claim(a_claim(), [a_pod(says="full")], [])
BOUND = judge_claim(a_claim(), [a_bound_pod(allocated="node-a:0")], [])
FAILED = judge_claim(a_claim(exclusivity="MIG"), [], [])


def told(before: ClaimStatus, after: ClaimStatus) -> list[tuple[str, str]]:
    return [(one.reason, one.message) for one in tell_claim(before, after)]


def test_a_claim_that_waits_is_told_on_its_pod_and_not_here():
    assert told(NEW, WAITING) == []


def test_a_claim_that_gets_its_cards_is_told_and_that_it_gives_them_back():
    assert told(WAITING, BOUND) == [("Bound", "pod web holds node-a:0")]
    assert told(BOUND, WAITING) == [("Released", "pod web no longer holds node-a:0")]


def test_cards_that_go_from_one_pod_to_the_next_are_told_in_order():
    other = judge_claim(a_claim(), [a_bound_pod("next", "node-b:1")], [])
    assert [reason for reason, _ in told(BOUND, other)] == ["Released", "Bound"]


def test_a_claim_that_cannot_be_met_is_told_once_as_a_warning():
    assert [(one.level, one.reason) for one in tell_claim(NEW, FAILED)] == [("Warning", "Failed")]
    assert told(FAILED, FAILED) == []


def test_nothing_is_told_while_the_same_pod_keeps_its_cards():
    more = judge_claim(a_claim(), [a_bound_pod(allocated="node-a:0"), a_pod("late")], [])
    assert told(BOUND, more) == []
