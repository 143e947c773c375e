"""What is read from a pod besides its trouble."""

import msgspec
import pytest

from tessera.operators.compute_pods import ComputePod, is_long_unschedulable, waits_for_volumes
from tests.unit.operators.compute_making import NOW, a_pod, unplaced


@pytest.mark.parametrize(("seconds", "is_long"), [(29, False), (30, True)])
def test_a_pod_without_a_node_is_waited_for_a_while(seconds: int, is_long: bool):
    assert is_long_unschedulable(unplaced("no room", for_s=seconds), 30, NOW) is is_long


def test_a_gate_or_silence_is_no_lack_of_room():
    assert not is_long_unschedulable(unplaced("gated", "SchedulingGated", for_s=99), 30, NOW)
    assert not is_long_unschedulable(a_pod(), 30, NOW)


def on_a_node(*, volumes=True, sandboxed="False", state="waiting"):
    conditions = [
        {"type": "PodScheduled", "status": "True"},
        {"type": "PodReadyToStartContainers", "status": sandboxed},
    ]
    container = {"name": "server", "state": {state: {}}}
    spec = {"volumes": [{"name": "tls"}] if volumes else []}
    return a_pod(spec=spec, conditions=conditions, containerStatuses=[container])


def test_only_a_pod_that_its_node_has_not_started_can_wait_for_volumes():
    assert waits_for_volumes(on_a_node())
    assert not waits_for_volumes(on_a_node(volumes=False))
    assert not waits_for_volumes(on_a_node(sandboxed="True"))
    assert not waits_for_volumes(on_a_node(state="running"))
    assert not waits_for_volumes(unplaced("no room", spec={"volumes": [{"name": "tls"}]}))


def test_a_pod_is_of_who_manages_it():
    owners = [{"kind": "A", "name": "a", "uid": "u-a"}, {"kind": "B", "name": "b", "uid": "u-b", "controller": True}]
    pod = msgspec.convert({"metadata": {"name": "p", "ownerReferences": owners}}, ComputePod)
    assert pod.owner_uid == "u-b"
    assert a_pod().owner_uid == ""
