"""Deleting one object or many, with preconditions, and what holds a deletion up."""

import pytest

from tests.contract.api import MERGE_PATCH
from tests.contract.objects import config_map, pod
from tests.contract.refusals import refused
from tests.contract.waiting import eventually

pytestmark = pytest.mark.contract(area="Deleting", needed_by="kube, operators")

HOLD = "contract.example/hold"


@pytest.mark.contract(promise="Deleting answers with a Status of Success that names what went", needed_by="everything")
def test_a_deleted_object_is_gone_at_once(config_maps):
    created = config_maps.create(config_map("settings"))
    answer = config_maps.delete("settings")
    assert answer["status"] == "Success"
    assert answer["details"] == {"name": "settings", "kind": "configmaps", "uid": created["metadata"]["uid"]}
    assert not config_maps.exists("settings")


@pytest.mark.contract(promise="A uid or resourceVersion precondition that does not hold is 409, and nothing is deleted")
@pytest.mark.parametrize("precondition", [{"uid": "another"}, {"resourceVersion": "1"}], ids=["uid", "version"])
def test_a_deletion_meant_for_another_object_is_refused(config_maps, precondition):
    config_maps.create(config_map("settings"))
    with refused(409, "Conflict") as refusal:
        config_maps.delete("settings", {"preconditions": precondition})
    assert "in the precondition" in refusal.value.message
    assert config_maps.exists("settings")


@pytest.mark.contract(promise="Preconditions that hold let the deletion through")
def test_a_deletion_meant_for_this_object_goes_through(config_maps):
    metadata = config_maps.create(config_map("settings"))["metadata"]
    config_maps.delete("settings", {"preconditions": {key: metadata[key] for key in ("uid", "resourceVersion")}})
    assert not config_maps.exists("settings")


@pytest.mark.contract(
    promise="A finalizer holds a deletion up: deletionTimestamp is set, the object stays until it is taken off"
)
def test_a_finalizer_holds_a_deletion_up(config_maps):
    config_maps.create(config_map("settings", finalizers=[HOLD]))
    answer = config_maps.delete("settings")
    assert answer["kind"] == "ConfigMap"
    assert answer["metadata"]["deletionTimestamp"]
    config_maps.patch("settings", MERGE_PATCH, {"metadata": {"finalizers": None}})
    assert not config_maps.exists("settings")


@pytest.mark.contract(promise="An object that is going takes no new finalizer")
def test_nothing_can_be_held_up_once_it_is_going(config_maps):
    config_maps.create(config_map("settings", finalizers=[HOLD]))
    config_maps.delete("settings")
    with refused(422, "Invalid") as refusal:
        config_maps.patch("settings", MERGE_PATCH, {"metadata": {"finalizers": [HOLD, "contract.example/late"]}})
    assert "no new finalizers can be added if the object is being deleted" in refusal.value.message
    config_maps.patch("settings", MERGE_PATCH, {"metadata": {"finalizers": []}})


@pytest.mark.contract(
    promise="A pod that was never bound goes at once, whatever its grace period", needed_by="scheduler"
)
def test_an_unbound_pod_goes_at_once(pods):
    pods.create(pod("worker"))
    assert pods.delete("worker")["metadata"]["deletionGracePeriodSeconds"] == 0
    assert not pods.exists("worker")


@pytest.mark.contract(
    promise="A bound pod stays, with deletionTimestamp, until its node confirms or the grace period is 0",
    needed_by="scheduler, node, Compute",
)
def test_a_bound_pod_stays_until_its_node_lets_it_go(pods):
    pods.create(pod("worker", spec={"nodeName": "no-such-node", "terminationGracePeriodSeconds": 45}))
    going = pods.delete("worker")
    assert going["metadata"]["deletionGracePeriodSeconds"] == 45
    assert going["metadata"]["deletionTimestamp"]
    sooner = pods.delete("worker", {"gracePeriodSeconds": 7})
    assert sooner["metadata"]["deletionGracePeriodSeconds"] == 7
    pods.delete("worker", {"gracePeriodSeconds": 0})
    assert not pods.exists("worker")


@pytest.mark.contract(promise="A whole collection can be deleted, or what selectors match in it")
def test_a_selector_spares_what_it_does_not_match(config_maps):
    for name, colour in (("a", "red"), ("b", "red"), ("c", "blue")):
        config_maps.create(config_map(name, labels={"colour": colour}))
    config_maps.delete_all(labelSelector="colour=red")
    ours = {"fieldSelector": "metadata.name!=kube-root-ca.crt"}
    assert config_maps.names(**ours) == ["c"]
    config_maps.delete_all(**ours)
    assert config_maps.names(**ours) == []


@pytest.mark.contract(
    promise="Deleting a namespace deletes everything in it, and then the namespace", needed_by="operators, kubectl"
)
def test_a_namespace_takes_its_contents_with_it(api, namespace, config_maps):
    config_maps.create(config_map("settings"))
    namespaces = api.collection("namespaces")
    going = namespaces.delete(namespace)
    assert going["status"]["phase"] == "Terminating"
    eventually(lambda: not namespaces.exists(namespace))
    assert not config_maps.exists("settings")
