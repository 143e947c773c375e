"""What a claim says of itself, in every case that a claim can be in."""

import msgspec
import pytest

from tessera.operators.claims import judge_claim, with_times
from tessera.operators.objects import ClaimStatus, Phase
from tests.unit.operators.making import a_bound_pod, a_claim, a_lease, a_pod

EARLIER, LATER, LAST = (f"2026-01-01T00:00:0{second}Z" for second in (1, 2, 3))


def conditions_of(status: ClaimStatus) -> dict[str, tuple[str, str]]:
    return {one.type: (one.status, one.reason) for one in status.conditions or ()}


def test_a_claim_that_nobody_names_waits_and_says_how_it_is_named():
    status = judge_claim(a_claim(), [], [])
    assert status.phase is Phase.PENDING
    assert status.message == "no pod names this claim (annotation gpu.scheduling/claim)"
    assert conditions_of(status) == {"Accepted": ("True", "Usable"), "Allocated": ("False", "NoPod")}


def test_a_claim_whose_pod_waits_says_what_the_scheduler_says_of_the_pod():
    status = judge_claim(a_claim(), [a_pod(says="0/4 nodes are available: 4 TooFewCards")], [])
    assert (status.phase, status.message) == (Phase.PENDING, "0/4 nodes are available: 4 TooFewCards")
    assert (status.pod_name, status.pod_uid, status.allocated) == ("web", "uid-web", None)


def test_a_pod_of_which_the_scheduler_has_said_nothing_is_not_scheduled_yet():
    assert judge_claim(a_claim(), [a_pod()], []).message == "pod web has not been scheduled yet"


def test_a_claim_whose_cards_are_leased_to_a_pod_that_is_on_no_node_is_reserved():
    leases = [a_lease("3", "uid-web"), a_lease("2", "uid-web"), a_lease("0", "uid-other")]
    status = judge_claim(a_claim(count=2), [a_pod(says="old news")], leases)
    assert (status.phase, status.node_name, status.gpu_ids) == (Phase.RESERVED, "node-a", (2, 3))
    assert status.allocated == "node-a:2,3"
    assert conditions_of(status)["Allocated"] == ("False", "Reserved")


def test_a_claim_whose_pod_is_bound_with_its_cards_is_bound():
    status = judge_claim(a_claim(), [a_bound_pod(allocated="node-a:0,1")], [])
    assert (status.phase, status.node_name, status.gpu_ids) == (Phase.BOUND, "node-a", (0, 1))
    assert (status.allocated, status.message) == ("node-a:0,1", "Successfully allocated")
    assert conditions_of(status)["Allocated"] == ("True", "Bound")


def test_a_pin_is_a_wish_and_binds_nothing():
    status = judge_claim(a_claim(), [a_pod(pin="node-a:1", says="node-a:1 is taken")], [])
    assert (status.phase, status.allocated, status.message) == (Phase.PENDING, None, "node-a:1 is taken")


def test_a_pod_that_somebody_else_put_on_a_node_waits_for_its_cards_there():
    status = judge_claim(a_claim(), [a_pod(node="node-b")], [])
    assert status.phase is Phase.PENDING
    assert status.message == "pod web is on node node-b and has not been given its GPUs yet"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_claim_whose_pod_has_ended_waits_for_the_next_and_says_how_it_ended(phase: str):
    ended = a_pod(node="node-a", allocated="node-a:0", phase=phase)
    status = judge_claim(a_claim(), [ended], [a_lease("0", "uid-web")])
    assert (status.phase, status.allocated, status.pod_uid) == (Phase.PENDING, None, None)
    assert (status.message or "").startswith(f"pod web has ended ({phase}); the next pod")


def test_of_several_pods_that_have_ended_the_last_is_told():
    pods = [
        a_pod("second", phase="Failed", created=LATER),
        a_pod("first", phase="Succeeded", created=EARLIER),
    ]
    assert "pod second has ended (Failed)" in (judge_claim(a_claim(), pods, []).message or "")


def test_after_a_pod_that_has_ended_the_next_one_counts():
    pods = [a_pod("first", phase="Succeeded", created=EARLIER), a_bound_pod("second", "node-b:4", created=LATER)]
    status = judge_claim(a_claim(), pods, [])
    assert (status.phase, status.pod_name, status.allocated) == (Phase.BOUND, "second", "node-b:4")


def test_of_two_pods_that_name_one_claim_the_one_that_holds_it_counts_and_who_waits_is_named():
    pods = [a_pod("early", says="ClaimInUse", created=EARLIER), a_bound_pod("late", "node-a:0", created=LATER)]
    status = judge_claim(a_claim(), pods, [])
    assert (status.pod_name, status.allocated) == ("late", "node-a:0")
    assert status.message == "Successfully allocated; early waits for this claim too"


def test_who_waits_is_named_briefly_however_many_they_are():
    pods = [a_pod(f"pod-{number}", says="full") for number in range(6)]
    assert judge_claim(a_claim(), pods, []).message == ("full; pod-1, pod-2, pod-3 and 2 more wait for this claim too")


def test_the_oldest_of_those_that_wait_speaks_whatever_their_order():
    old, young = a_pod("b", says="old", created=EARLIER), a_pod("a", says="young", created=LATER)
    assert judge_claim(a_claim(), [old, young], []) == judge_claim(a_claim(), [young, old], [])
    assert judge_claim(a_claim(), [young, old], []).pod_name == "b"


def test_pods_that_share_a_claim_are_counted():
    pods = [a_bound_pod("one", "node-a:0", created=EARLIER), a_bound_pod("two", "node-a:0", created=LATER)]
    status = judge_claim(a_claim(exclusivity="Shared"), pods, [a_lease("0", "uid-one", "uid-two")])
    assert (status.message, status.pod_name) == ("Successfully allocated to 2 pods", "one")


def test_a_card_that_is_shared_is_reserved_for_whom_its_lease_lists():
    leases = [a_lease("0", "uid-other", "uid-web")]
    assert judge_claim(a_claim(exclusivity="Shared"), [a_pod()], leases).allocated == "node-a:0"


def test_a_lease_whose_holder_was_written_by_hand_is_not_held_by_those_it_lists():
    forged = a_lease("0", "uid-web") | {"spec": a_lease("0", "uid-thief")["spec"]}
    assert judge_claim(a_claim(), [a_pod()], [forged]).phase is Phase.PENDING


def test_the_id_ends_the_name_of_a_lease_also_where_the_nodes_name_is_cut():
    node = ".".join(["node-with-a-long-name"] * 12)
    lease = a_lease("17", "uid-web", node=node)
    assert node not in lease["metadata"]["name"]
    assert judge_claim(a_claim(), [a_pod()], [lease]).allocated == f"{node}:17"


def test_a_claim_to_parts_of_cards_has_failed_and_says_what_would_do():
    status = judge_claim(a_claim(exclusivity="MIG"), [a_pod(says="waits")], [])
    assert status.phase is Phase.FAILED
    assert status.message == (
        "claim ml/training: spec.devices.exclusivity is MIG, which is not supported yet, expected Exclusive or Shared"
    )
    assert conditions_of(status) == {"Accepted": ("False", "Unusable"), "Allocated": ("False", "Unusable")}


def test_a_claim_that_cannot_be_read_has_failed():
    status = judge_claim(a_claim(count="two"), [], [])
    assert status.phase is Phase.FAILED
    assert 'spec: devices.count is "two", expected a whole number' in (status.message or "")


def test_a_claim_that_was_mended_waits_again():
    failed = judge_claim(a_claim(exclusivity="MIG"), [], [])
    assert judge_claim(a_claim(failed), [], []).phase is Phase.PENDING


def test_a_pod_that_is_gone_while_its_cards_are_leased_keeps_the_claim_bound():
    before = judge_claim(a_claim(), [a_bound_pod(allocated="node-a:0")], [])
    status = judge_claim(a_claim(before), [a_pod("next", says="ClaimInUse")], [a_lease("0", "uid-web")])
    assert (status.phase, status.allocated, status.pod_name) == (Phase.BOUND, "node-a:0", "web")
    assert status.message == (
        "pod web is gone, its GPUs are freed when its processes have ended; next waits for this claim too"
    )


def test_a_pod_that_is_still_there_is_not_called_gone():
    leases = [a_lease("0", "uid-web")]
    reserved = judge_claim(a_claim(), [a_pod()], leases)
    assert judge_claim(a_claim(reserved), [a_pod()], leases) == reserved
    bound = judge_claim(a_claim(), [a_bound_pod(allocated="node-a:0")], leases)
    ended = judge_claim(a_claim(bound), [a_pod(node="node-a", allocated="node-a:0", phase="Failed")], leases)
    assert ended.phase is Phase.PENDING


def test_a_pod_that_is_gone_with_its_leases_leaves_the_claim_to_the_next():
    before = judge_claim(a_claim(), [a_bound_pod()], [])
    status = judge_claim(a_claim(before), [], [a_lease("0", "uid-other")])
    assert (status.phase, status.pod_uid) == (Phase.PENDING, None)


def test_an_allocation_that_cannot_be_read_is_bound_without_ids_and_says_why():
    status = judge_claim(a_claim(), [a_pod(node="node-a", allocated="scribble")], [])
    assert (status.phase, status.node_name, status.gpu_ids, status.allocated) == (Phase.BOUND, "node-a", None, None)
    assert 'gpu.scheduling/allocated is "scribble"' in (status.message or "")


@pytest.mark.parametrize("pods", [[], [a_pod(says="full")], [a_bound_pod()], [a_pod(phase="Failed")]], ids=len)
def test_what_was_judged_once_is_judged_the_same_again(pods: list):
    once = with_times(judge_claim(a_claim(), pods, []), ClaimStatus(), EARLIER)
    assert with_times(judge_claim(a_claim(once), pods, []), once, LATER) == once


def test_a_condition_keeps_its_time_while_it_is_the_same_and_gets_a_new_one_when_it_changes():
    waiting = with_times(judge_claim(a_claim(), [], []), ClaimStatus(), EARLIER)
    still = with_times(judge_claim(a_claim(), [a_pod(says="full")], []), waiting, LATER)
    bound = with_times(judge_claim(a_claim(), [a_bound_pod()], []), still, LAST)
    assert [one.last_transition_time for one in still.conditions or ()] == [EARLIER, EARLIER]
    assert [one.last_transition_time for one in bound.conditions or ()] == [EARLIER, LAST]


def test_conditions_tell_which_spec_they_are_about():
    assert [one.observed_generation for one in judge_claim(a_claim(), [], []).conditions or ()] == [3, 3]


def test_what_no_longer_holds_is_written_as_null_so_that_a_merge_removes_it():
    written = msgspec.to_builtins(judge_claim(a_claim(), [], []))
    assert {field for field, value in written.items() if value is None} == {
        "nodeName", "gpuIds", "allocated", "podName", "podUid",
    }  # fmt: skip
