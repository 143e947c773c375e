"""Deployments and ReplicaSets with pods that run."""

import pytest

from tests.contract.api import MERGE_PATCH
from tests.contract.objects import pod
from tests.contract.waiting import eventually
from tests.embedded.controllers.workloads import condition_when, conditions, workload


@pytest.fixture
def deployments(of):
    return of("apps/v1/deployments")


@pytest.fixture
def replica_sets(of):
    return of("apps/v1/replicasets")


def available(deployments, name, count):
    status = deployments.get(name).get("status", {})
    return status.get("availableReplicas", 0) == status.get("updatedReplicas", 0) == status.get("replicas", 0) == count


def relabel(version):
    return {"spec": {"template": {"metadata": {"labels": {"version": version}}}}}


def test_a_deployment_makes_as_many_pods_as_it_wants_and_never_more(deployments, pods):
    with pods.watch() as watch:
        deployments.create(workload("Deployment", "web", replicas=12))
        eventually(lambda: available(deployments, "web", 12))
        pods.create(pod("last"))
        made = []
        while (event := watch.until(lambda event: event.type == "ADDED")).name != "last":
            made.append(event.name)
    assert len(made) == 12


def test_a_rollout_keeps_within_its_bounds(deployments, pods):
    bounds = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    deployments.create(workload("Deployment", "web", replicas=3, strategy=bounds))
    eventually(lambda: available(deployments, "web", 3))
    there = {item["metadata"]["name"] for item in pods.listing()["items"]}
    most, start = 0, pods.listing()["metadata"]["resourceVersion"]
    deployments.patch("web", MERGE_PATCH, relabel("2"))
    eventually(lambda: available(deployments, "web", 3) and not there & set(pods.names()))
    pods.create(pod("last"))
    with pods.watch(resourceVersion=start) as watch:
        while (event := watch.next()).name != "last":
            is_going = "deletionTimestamp" in event.object["metadata"] or event.type == "DELETED"
            there = there - {event.name} if is_going else there | {event.name}
            most = max(most, len(there))
            assert len(there) >= 3
    assert most == 4


def test_recreate_waits_until_the_last_old_pod_is_gone(deployments, pods):
    deployments.create(workload("Deployment", "web", replicas=2, strategy={"type": "Recreate"}))
    eventually(lambda: available(deployments, "web", 2))
    old = pods.names()
    pods.patch(old[0], MERGE_PATCH, {"metadata": {"finalizers": ["test.example/hold"]}})
    deployments.patch("web", MERGE_PATCH, relabel("2"))
    eventually(lambda: pods.names() == [old[0]])
    pods.patch(old[0], MERGE_PATCH, {"metadata": {"finalizers": None}})
    eventually(lambda: available(deployments, "web", 2))
    assert not set(old) & set(pods.names())


def test_kubectl_can_undo_a_rollout(deployments, replica_sets, kubectl):
    deployments.create(workload("Deployment", "web", replicas=1))
    eventually(lambda: available(deployments, "web", 1))
    deployments.patch("web", MERGE_PATCH, relabel("2"))
    kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    kubectl("rollout", "undo", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    assert "version" not in deployments.get("web")["spec"]["template"]["metadata"]["labels"]
    assert len(replica_sets.names()) == 2
    revisions = deployments.get("web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
    assert revisions == "3"


def test_old_replica_sets_are_kept_as_the_history_says(deployments, replica_sets):
    deployments.create(workload("Deployment", "web", replicas=1, revisionHistoryLimit=1))
    for version in ("2", "3", "4"):
        eventually(lambda: available(deployments, "web", 1))
        deployments.patch("web", MERGE_PATCH, relabel(version))
        eventually(lambda version=version: relabelled(replica_sets, version))
    eventually(lambda: available(deployments, "web", 1) and len(replica_sets.names()) == 2)
    assert relabelled(replica_sets, "4")
    assert relabelled(replica_sets, "3")


def relabelled(replica_sets, version):
    return replica_sets.names(labelSelector=f"version={version}")


def test_a_deployment_that_gets_nowhere_says_so(deployments):
    deployments.create(workload("Deployment", "web", replicas=1, runs=False, progressDeadlineSeconds=1))

    def progress():
        told = deployments.get("web").get("status", {}).get("conditions", [])
        return [one["reason"] for one in told if (one["type"], one["status"]) == ("Progressing", "False")]

    assert eventually(progress) == ["ProgressDeadlineExceeded"]


def test_a_pod_that_nobody_manages_is_taken_in_and_one_that_is_relabelled_let_go(replica_sets, pods, active):
    pods.create(pod("stray", labels={"app": "web"}))
    replica_sets.create(workload("ReplicaSet", "web", replicas=2, runs=False))
    eventually(lambda: len(active()) == 2 and pods.get("stray")["metadata"].get("ownerReferences"))
    pods.patch("stray", MERGE_PATCH, {"metadata": {"labels": {"app": "other"}}})
    eventually(lambda: len(active()) == 3 and not pods.get("stray")["metadata"].get("ownerReferences"))


def test_why_a_pod_cannot_be_made_is_told_and_tried_again(of, deployments):
    quotas = of("resourcequotas")
    quotas.create({"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
    quotas.patch("none/status", MERGE_PATCH, {"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}})
    deployments.create(workload("Deployment", "web", replicas=1))
    failure = condition_when(deployments, "web", "ReplicaFailure")
    assert failure["reason"] == "FailedCreate"
    assert "exceeded quota: none" in failure["message"]
    quotas.delete("none")
    eventually(lambda: available(deployments, "web", 1))
    eventually(lambda: "ReplicaFailure" not in conditions(deployments.get("web")))


def test_controllers_that_are_killed_half_way_go_on_where_they_were(controllers, deployments, active):
    deployments.create(workload("Deployment", "web", replicas=8))
    eventually(lambda: len(active()) >= 1)
    controllers.kill()
    deployments.patch("web", MERGE_PATCH, relabel("2"))
    controllers.start()
    eventually(lambda: len(active(labelSelector="version=2")) >= 1)
    controllers.restart()
    eventually(lambda: available(deployments, "web", 8) and len(active()) == 8)
