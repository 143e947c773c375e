"""What a gang says of itself."""

from tessera.operators.gangs import judge_gang
from tessera.operators.objects import Phase
from tests.unit.operators.making import a_bound_pod, a_gang, a_pod


def test_a_gang_without_members_waits_for_them():
    status = judge_gang(a_gang(2), [])
    assert (status.phase, status.members, status.bound) == (Phase.PENDING, 0, 0)
    assert status.message == "0 of 2 members are there, the others are waited for"


def test_a_gang_that_is_complete_says_why_it_is_not_bound():
    status = judge_gang(a_gang(2), [a_pod("a", says="TooFewCards"), a_pod("b")])
    assert (status.phase, status.members, status.bound) == (Phase.PENDING, 2, 0)
    assert status.message == "0 of 2 members are on nodes; a waits: TooFewCards"


def test_a_gang_is_bound_when_as_many_as_it_needs_are_on_nodes():
    pods = [a_bound_pod("a", "node-a:0"), a_bound_pod("b", "node-a:1"), a_pod("spare")]
    status = judge_gang(a_gang(2), pods)
    assert (status.phase, status.members, status.bound) == (Phase.BOUND, 3, 2)


def test_a_member_that_has_done_its_work_counts():
    pods = [a_pod("a", node="n", phase="Succeeded"), a_bound_pod("b")]
    status = judge_gang(a_gang(2), pods)
    assert (status.phase, status.members, status.bound) == (Phase.BOUND, 2, 2)


def test_pods_that_failed_or_are_being_deleted_are_members_no_more():
    pods = [a_pod("a", node="n", phase="Failed"), a_bound_pod("b", deleted="2026-01-01T00:00:09Z"), a_bound_pod("c")]
    status = judge_gang(a_gang(2), pods)
    assert (status.phase, status.members, status.bound) == (Phase.PENDING, 1, 1)
    assert status.message == "1 of 2 members are there, the others are waited for"
