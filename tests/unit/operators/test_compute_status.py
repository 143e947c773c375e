"""What a Compute says of itself, from what is there."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tessera.operators.compute_children import ComputeSettings
from tessera.operators.compute_objects import Address
from tessera.operators.compute_pods import Trouble
from tessera.operators.compute_status import Observed, judge_compute, judge_deletion, state_of
from tessera.operators.objects import Condition
from tests.unit.operators.compute_making import (
    NOW,
    OLD,
    a_compute,
    a_pod,
    a_set,
    ended,
    running_for,
    saying,
    serving,
    told,
    unplaced,
    waiting,
)

SETTINGS = ComputeSettings()
SERVICE = {"spec": {"clusterIP": "10.0.0.9"}}


def judge(compute=None, **observed):
    """The conditions by type, as (status, reason, message)."""
    status = judge_compute(compute or a_compute(), Observed(**observed), SETTINGS, NOW)
    conditions = status.conditions or ()
    assert {one.observed_generation for one in conditions} == {4}
    return {one.type: (one.status, one.reason, one.message) for one in conditions}


def judge_pod(*pods, **observed):
    return judge(stateful_set=a_set(), pods=pods, **observed)


def test_a_compute_is_ready_when_its_present_pod_is():
    said = judge(stateful_set=a_set(ready=1))
    assert said["Ready"] == ("True", "StatefulSetReady", "All 1 replicas are ready")
    assert said["Suspended"][:2] == ("False", "Resumed")
    assert said["Stalled"][:2] == ("False", "NotStalled")


@pytest.mark.parametrize(
    "stateful_set",
    [a_set(ready=1, updated=0), a_set(ready=1, seen=2), a_set(ready=0)],
    ids=["an older pod is ready", "the controller has not looked yet", "nothing is ready"],
)
def test_what_was_ready_before_the_last_change_does_not_count(stateful_set):
    said = judge(stateful_set=stateful_set, pods=(a_pod(revision=OLD),))
    assert said["Ready"][:2] == ("False", "StatefulSetNotReady")
    assert "0/1" in said["Ready"][2]


READY: dict[str, Any] = {"conditions": [{"type": "Ready", "status": "True"}]}
SURPLUS = (a_pod("demo-1", deleted=True, **READY), a_pod("demo-2", deleted=True))


@pytest.mark.parametrize("updated", [1, 3], ids=["not counted while they end", "counted while they end"])
def test_pods_that_somebody_scaled_up_to_and_that_are_ending_do_not_hold_up_the_one_that_serves(updated: int):
    said = judge(stateful_set=a_set(made=3, ready=2, updated=updated), pods=(a_pod(**READY), *SURPLUS))
    assert said["Ready"][:2] == ("True", "StatefulSetReady")


@pytest.mark.parametrize(
    "pods",
    [
        (a_pod(), *SURPLUS),
        (a_pod(deleted=True, **READY), *SURPLUS),
        (a_pod(revision=OLD, **READY), *SURPLUS),
        (a_pod("demo-1", **READY), *SURPLUS),
    ],
    ids=["not ready", "ending too", "of an earlier template", "another is ready"],
)
def test_a_pod_beside_those_that_are_ending_must_be_the_one_that_is_wanted(pods):
    assert judge(stateful_set=a_set(made=3, ready=2, updated=3), pods=pods)["Ready"][0] == "False"


def test_a_suspended_compute_is_not_ready_and_not_stalled_whatever_its_pod_says():
    said = judge(a_compute(suspend=True), stateful_set=a_set(replicas=0), pods=(waiting("InvalidImageName"),))
    assert said["Ready"][:2] == ("False", "Suspended")
    assert said["Suspended"] == ("True", "Suspended", "Compute is suspended")
    assert said["Stalled"][0] == "False"


def test_a_compute_is_not_called_suspended_while_it_still_has_a_replica():
    said = judge(a_compute(suspend=True), stateful_set=a_set(ready=1))
    assert said["Suspended"][:2] == ("False", "Suspending")
    assert said["Ready"][:2] == ("False", "Suspending")
    refused = Trouble("Forbidden", "no")
    said = judge(a_compute(suspend=True), stateful_set=a_set(ready=1), hindrance=refused)
    assert said["Ready"][:2] == ("False", "Forbidden")


def test_a_suspended_compute_needs_nothing_of_what_is_hindered():
    taken = Trouble("NameTaken", "Service demo belongs to somebody else", is_final=True)
    said = judge(a_compute(suspend=True), stateful_set=a_set(replicas=0), hindrance=taken, token_trouble=taken)
    assert said["Suspended"][0] == "True"
    assert (said["Ready"][1], said["Stalled"][0]) == ("Suspended", "False")


LOST = Trouble("TokenMissing", "Secret demo-token has no token", is_final=True)


def test_a_server_whose_token_nobody_can_read_serves_on_and_is_stalled():
    said = judge(stateful_set=a_set(ready=1), token_trouble=LOST)
    assert said["Ready"][0] == "True"
    assert said["Stalled"] == ("True", *LOST[:2])


def test_a_server_that_cannot_start_without_its_token_says_so():
    refused = waiting("CreateContainerConfigError", "couldn't find key token in Secret ml/demo-token")
    said = judge_pod(refused, token_trouble=LOST)
    assert said["Ready"] == ("False", *LOST[:2])
    assert said["Stalled"][0] == "True"


def test_what_others_say_on_a_compute_stays_and_what_we_said_goes_with_its_cause():
    theirs = Condition(type="Audited", status="True", reason="Seen", message="m", last_transition_time="t")
    ours = Condition(type="Routed", status="True", reason="RouteAccepted", message="m")
    status = judge_compute(saying(a_compute(), theirs, ours), Observed(), SETTINGS, NOW)
    assert theirs in (status.conditions or ())
    assert [one.type for one in status.conditions or ()] == ["Ready", "Suspended", "Stalled", "Audited"]


def test_a_compute_that_is_held_while_it_is_deleted_is_not_ready():
    theirs = Condition(type="Audited", status="True", reason="Seen", message="m")
    ready = Condition(type="Ready", status="True", reason="StatefulSetReady", message="m", observed_generation=3)
    address = Address(type="IPAddress", value="10.0.0.9", port=50051)
    status = judge_deletion(saying(a_compute(), ready, theirs, addresses=(address,)))
    said = {one.type: (one.status, one.reason, one.observed_generation) for one in status.conditions or ()}
    assert said == {"Ready": ("False", "Deleting", 4), "Audited": ("True", "Seen", None)}
    assert (status.observed_generation, status.addresses) == (4, (address,))


def test_a_volume_that_cannot_be_mounted_is_told_in_the_kubelets_words():
    trouble = Trouble("VolumeFailed", 'MountVolume.SetUp failed for volume "shared" : no')
    said = judge_pod(waiting("ContainerCreating"), volume_trouble=trouble)
    assert said["Ready"] == ("False", *trouble[:2])
    assert said["Stalled"][0] == "False"


def test_what_hinders_the_making_is_told_first():
    taken = Trouble("NameTaken", "Service demo belongs to somebody else", is_final=True)
    said = judge(hindrance=taken, stateful_set=a_set(ready=1))
    assert said["Ready"] == ("False", *taken[:2])
    assert said["Stalled"] == ("True", *taken[:2])


@pytest.mark.parametrize("reason", ["InvalidImageName", "ErrImageNeverPull"])
def test_an_image_that_is_not_even_asked_for_is_final_at_once(reason: str):
    said = judge_pod(waiting(reason, "that is no image"))
    assert said["Ready"] == ("False", reason, "that is no image")
    assert said["Stalled"] == ("True", reason, "that is no image")


WORDS = 'failed to pull and unpack image "a/b:1": not found'


@pytest.mark.parametrize(
    ("reason", "message"),
    [("ErrImagePull", WORDS), ("ImagePullBackOff", f'Back-off pulling image "a/b:1": ErrImagePull: {WORDS}')],
)
def test_a_failed_pull_reads_the_same_while_it_is_tried_and_while_it_is_waited_out(reason: str, message: str):
    assert judge_pod(waiting(reason, message))["Ready"] == ("False", "ImagePullFailed", WORDS)


@pytest.mark.parametrize(("seconds", "is_final"), [(29, "False"), (30, "True")])
def test_an_image_is_given_up_after_a_while(seconds: int, is_final: str):
    said = judge_pod(waiting("ErrImagePull", WORDS), pulls_failed_since=NOW - timedelta(seconds=seconds))
    assert said["Stalled"][0] == is_final


def test_a_crash_is_told_with_its_exit_code_and_last_words():
    pod = waiting("CrashLoopBackOff", "back-off 10s", restarts=1, last=ended(7, message="no such weights\n"))
    said = judge_pod(pod)
    expected = "container server ended with exit code 7 (Error), it has been started anew once: no such weights"
    assert said["Ready"] == ("False", "CrashLooping", expected)
    assert said["Stalled"][0] == "False"


def test_what_crashes_is_called_so_also_while_it_runs_again():
    states = (
        serving(restarts=3, last=ended(), running=running_for(0.1)),
        serving(restarts=3, **ended()),
        waiting("CrashLoopBackOff", restarts=3, last=ended()),
    )
    assert len({msgspec.json.encode(judge_pod(state)) for state in states}) == 1
    assert judge_pod(states[0])["Stalled"][:2] == ("True", "CrashLooping")


def test_a_server_that_has_run_for_long_is_not_blamed_for_crashes_of_old():
    said = judge_pod(serving(restarts=9, last=ended(), running=running_for(11)))
    assert said["Ready"][1] == "StatefulSetNotReady"


@pytest.mark.parametrize(
    "pod",
    [
        waiting("CrashLoopBackOff", restarts=9, last=ended(after_minutes=600)),
        serving(restarts=9, **ended(after_minutes=10)),
        serving(restarts=9, last=ended(137, "OOMKilled", after_minutes=600), running=running_for(0.1)),
    ],
    ids=["waits to be started anew", "has just ended", "ran out of memory"],
)
def test_a_server_that_ends_after_a_long_run_is_not_given_up(pod):
    said = judge_pod(pod)
    assert said["Ready"][1] in ("CrashLooping", "OOMKilled")
    assert said["Stalled"][0] == "False"


@pytest.mark.parametrize(("restarts", "is_final"), [(7, "False"), (8, "True")])
def test_restarts_before_a_long_run_do_not_count(restarts: int, is_final: str):
    pod = waiting("CrashLoopBackOff", restarts=restarts, last=ended())
    assert judge_pod(pod, calm_restarts=5)["Stalled"][0] == is_final


def test_a_server_out_of_memory_is_told_so():
    said = judge_pod(waiting("CrashLoopBackOff", restarts=1, last=ended(137, "OOMKilled")))
    assert said["Ready"][1] == "OOMKilled"
    assert "give it more memory" in said["Ready"][2]


def test_a_secret_that_is_not_there_may_still_come():
    said = judge_pod(waiting("CreateContainerConfigError", 'secret "weights" not found'))
    assert said["Ready"][1] == "ContainerConfigFailed"
    assert 'secret "weights" not found' in said["Ready"][2]
    assert said["Stalled"][0] == "False"


@pytest.mark.parametrize(("is_unplaceable", "stalled"), [(False, "False"), (True, "True")])
def test_a_pod_without_a_node_has_the_schedulers_words(is_unplaceable: bool, stalled: str):
    said = judge_pod(unplaced("0/1 nodes are available: no room."), is_unplaceable=is_unplaceable)
    assert said["Ready"] == ("False", "Unschedulable", "0/1 nodes are available: no room.")
    assert said["Stalled"][0] == stalled


def test_a_gate_is_no_lack_of_room():
    said = judge_pod(unplaced("Scheduling is blocked", "SchedulingGated"), is_unplaceable=True)
    assert (said["Ready"][1], said["Stalled"][0]) == ("SchedulingGated", "False")


def test_trouble_of_a_pod_that_is_being_replaced_is_no_longer_told():
    old = a_pod(
        revision=OLD, containerStatuses=[{"name": "server", "state": {"waiting": {"reason": "InvalidImageName"}}}]
    )
    said = judge_pod(old)
    assert (said["Ready"][1], said["Stalled"][0]) == ("StatefulSetNotReady", "False")


def test_while_it_starts_it_says_how_far_it_is():
    assert "has not been started by its node yet" in judge_pod(a_pod())["Ready"][2]
    assert "being started (ContainerCreating)" in judge_pod(waiting("ContainerCreating"))["Ready"][2]
    assert "has not passed its readiness probe yet" in judge_pod(serving(running=running_for(0.1)))["Ready"][2]
    assert "is ending" in judge_pod(a_pod(deleted=True))["Ready"][2]
    assert "no pod has been made yet" in judge_pod()["Ready"][2]


@pytest.mark.parametrize("verb", ["create", "Create"])
def test_without_a_pod_it_says_why_none_was_made(verb: str):
    refused = told("FailedCreate", f"{verb} Pod demo-0 in StatefulSet demo failed error: exceeded quota: q")
    assert judge_pod(events=(refused,))["Ready"] == ("False", "QuotaExceeded", "exceeded quota: q")


def test_a_route_is_told_of_only_where_one_is_wanted():
    routed = a_compute(route={"parentRefs": [{"name": "gate"}]})
    assert "Routed" not in judge(stateful_set=a_set())
    assert judge(routed, stateful_set=a_set())["Routed"][0] == "True"
    missing = Trouble("NoGatewayAPI", "install it")
    assert judge(routed, unroutable=missing)["Routed"] == ("False", "NoGatewayAPI", "install it")


def test_the_services_address_comes_first_then_its_name_then_the_gateways():
    gateway = Address(type="IPAddress", value="1.2.3.4", port=80)
    observed = Observed(service=SERVICE, gateway_addresses=(gateway,))
    own = Address(type="IPAddress", value="10.0.0.9", port=50051)
    name = Address(type="Hostname", value="demo.ml.svc.cluster.local", port=50051)
    assert judge_compute(a_compute(), observed, SETTINGS, NOW).addresses == (own, name, gateway)
    without_dns = judge_compute(a_compute(), Observed(service=SERVICE), ComputeSettings(cluster_domain=""), NOW)
    assert without_dns.addresses == (own,)
    assert judge_compute(a_compute(), Observed(), SETTINGS, NOW).addresses is None


def test_a_state_is_one_word():
    compute = a_compute()
    assert state_of(compute) == "Starting"
    status = judge_compute(compute, Observed(stateful_set=a_set(ready=1)), SETTINGS, NOW)
    assert state_of(msgspec.structs.replace(compute, status=status)) == "Ready"
