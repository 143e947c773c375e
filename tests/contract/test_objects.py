"""One object at a time: created, read, replaced; what the server adds, and what it never changes."""

import datetime
import re

import pytest

from tests.contract.api import MERGE_PATCH
from tests.contract.objects import config_map, deployment, pod

pytestmark = pytest.mark.contract(area="Objects", needed_by="everything")


@pytest.mark.contract(
    promise="An object is created with 201, and with a uid, a creationTimestamp and a resourceVersion"
)
def test_a_created_object_gets_an_identity_and_comes_back_with_201(api, config_maps):
    answer = api.send("POST", config_maps.path, config_map("settings"))
    metadata = answer.body["metadata"]
    assert answer.status == 201
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", metadata["uid"])
    assert datetime.datetime.strptime(metadata["creationTimestamp"], "%Y-%m-%dT%H:%M:%SZ")
    assert int(metadata["resourceVersion"]) > 0
    assert config_maps.get("settings") == answer.body


@pytest.mark.contract(promise="`generateName` is completed with five characters that make the name unique")
def test_two_objects_of_one_generated_name_get_different_names(config_maps):
    created = [config_maps.create({"metadata": {"generateName": "run-"}})["metadata"]["name"] for _ in range(2)]
    assert len(set(created)) == 2
    assert all(re.fullmatch("run-[a-z0-9]{5}", name) for name in created)


@pytest.mark.contract(
    promise="Every write gives a new, larger resourceVersion; a write that changes nothing gives none"
)
def test_a_write_that_changes_nothing_leaves_the_version_alone(config_maps):
    created = config_maps.create(config_map("settings"))
    unchanged = config_maps.replace("settings", created)
    changed = config_maps.replace("settings", created | {"data": {"colour": "blue"}})
    assert unchanged["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]
    assert int(changed["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])


@pytest.mark.contract(promise="generation counts changes of the spec, and not those of metadata")
def test_the_generation_counts_changes_of_the_spec_alone(deployments):
    created = deployments.create(deployment("web", replicas=0))
    labelled = deployments.patch("web", MERGE_PATCH, {"metadata": {"labels": {"tier": "front"}}})
    paused = deployments.patch("web", MERGE_PATCH, {"spec": {"paused": True}})
    assert [answer["metadata"]["generation"] for answer in (created, labelled, paused)] == [1, 1, 2]


@pytest.mark.contract(promise="uid, creationTimestamp and name survive a replacement that does not mention them")
def test_a_replacement_without_identity_keeps_the_identity(config_maps):
    created = config_maps.create(config_map("settings"))
    replaced = config_maps.replace("settings", config_map("settings", {"colour": "blue"}))
    for field in ("uid", "creationTimestamp", "name", "namespace"):
        assert replaced["metadata"][field] == created["metadata"][field]
    assert replaced["data"] == {"colour": "blue"}


@pytest.mark.contract(promise="What a pod leaves out is filled in: QoS class, restart policy, phase, tolerations")
def test_a_pod_is_completed_with_defaults(pods):
    created = pods.create(pod("worker"))
    assert created["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert created["spec"]["restartPolicy"] == "Always"
    assert created["spec"]["terminationGracePeriodSeconds"] == 30
    assert created["spec"]["containers"][0]["imagePullPolicy"] == "Always"
    tolerated = {toleration["key"] for toleration in created["spec"]["tolerations"]}
    assert tolerated == {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}


@pytest.mark.contract(
    promise="An extended resource asked for in limits alone becomes the request too",
    needed_by="scheduler, HAMi clients",
)
def test_limits_of_an_extended_resource_become_requests(pods):
    asked = {"nvidia.com/gpu": "2", "nvidia.com/gpumem": "8192"}
    created = pods.create(pod("worker", container={"resources": {"limits": asked}}))
    assert created["spec"]["containers"][0]["resources"] == {"limits": asked, "requests": asked}


@pytest.mark.contract(
    promise="A quantity is kept in the largest unit that says the same: 8000 becomes 8k",
    needed_by="scheduler, HAMi clients",
)
def test_a_quantity_is_kept_in_its_canonical_form(pods):
    asked = {"cpu": "1500m", "memory": "1024Mi", "nvidia.com/gpumem": "8000"}
    created = pods.create(pod("worker", container={"resources": {"limits": asked}}))
    kept = created["spec"]["containers"][0]["resources"]["limits"]
    assert kept == {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpumem": "8k"}


@pytest.mark.contract(promise="A dry run answers as if it had been done, uid and all, and does nothing")
def test_a_dry_run_creates_and_changes_nothing(config_maps):
    imagined = config_maps.create(config_map("settings"), dryRun="All")
    assert imagined["metadata"]["uid"]
    assert not config_maps.exists("settings")
    config_maps.create(config_map("settings"))
    changed = config_maps.patch("settings", MERGE_PATCH, {"data": {"colour": "blue"}}, dryRun="All")
    assert changed["data"]["colour"] == "blue"
    config_maps.delete("settings", dryRun="All")
    assert config_maps.get("settings")["data"]["colour"] == "red"


@pytest.mark.contract(promise="A Secret's stringData is merged into its data, in base64", needed_by="operators, helm")
def test_the_strings_of_a_secret_become_data(api, namespace):
    secrets = api.collection("secrets", namespace)
    created = secrets.create({"metadata": {"name": "key"}, "stringData": {"token": "abc"}})
    assert created["data"] == {"token": "YWJj"}
    assert created["type"] == "Opaque"
    assert "stringData" not in created
