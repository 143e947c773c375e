"""StatefulSets with pods that run."""

import pytest

from tests.contract.api import MERGE_PATCH, STRATEGIC_PATCH
from tests.contract.waiting import eventually
from tests.embedded.controllers.workloads import workload


@pytest.fixture
def sets(of):
    return of("apps/v1/statefulsets")


def ready(sets, count):
    status = sets.get("db").get("status", {})
    return status.get("readyReplicas", 0) == status.get("replicas", 0) == count


def test_pods_come_in_order_and_have_a_name_in_the_network(sets, pods):
    sets.create(workload("StatefulSet", "db", replicas=3, serviceName="db"))
    eventually(lambda: ready(sets, 3))
    made = pods.listing()["items"]
    assert [one["metadata"]["name"] for one in made] == ["db-0", "db-1", "db-2"]
    assert [(one["spec"]["hostname"], one["spec"]["subdomain"]) for one in made][2] == ("db-2", "db")
    owner = made[0]["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("StatefulSet", "db", True)


def test_the_last_pod_goes_first(sets, pods):
    sets.create(workload("StatefulSet", "db", replicas=3, serviceName="db"))
    eventually(lambda: ready(sets, 3))
    with pods.watch(resourceVersion=pods.listing()["metadata"]["resourceVersion"]) as watch:
        sets.patch("db/scale", MERGE_PATCH, {"spec": {"replicas": 1}})
        gone = [watch.until(lambda event: event.type == "DELETED").name for _ in range(2)]
    assert gone == ["db-2", "db-1"]


def test_with_parallel_nobody_waits(sets, pods):
    sets.create(workload("StatefulSet", "db", replicas=3, runs=False, serviceName="db", podManagementPolicy="Parallel"))
    eventually(lambda: pods.names() == ["db-0", "db-1", "db-2"])


def test_a_pod_that_ends_is_made_again_under_its_name(sets, pods):
    sets.create(workload("StatefulSet", "db", replicas=1, runs=False, serviceName="db"))
    eventually(lambda: pods.exists("db-0"))
    before = pods.get("db-0")["metadata"]["uid"]
    pods.patch("db-0/status", STRATEGIC_PATCH, {"status": {"phase": "Failed"}})
    eventually(lambda: [one["metadata"]["uid"] for one in pods.listing()["items"]] not in ([], [before]))


def test_a_changed_template_is_rolled_out_from_the_last_pod_down(sets, pods):
    sets.create(workload("StatefulSet", "db", replicas=2, serviceName="db"))
    eventually(lambda: ready(sets, 2))
    with pods.watch(resourceVersion=pods.listing()["metadata"]["resourceVersion"]) as watch:
        sets.patch("db", MERGE_PATCH, {"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}})
        gone = [watch.until(lambda event: event.type == "DELETED").name for _ in range(2)]
    assert gone == ["db-1", "db-0"]

    def rolled_out():
        status = sets.get("db")["status"]
        return ready(sets, 2) and status["currentRevision"] == status["updateRevision"]

    eventually(rolled_out)
    assert pods.names(labelSelector="version=2") == ["db-0", "db-1"]
