from datetime import timedelta

from tessera.embedded.controllers.deployments import REVISION, plan
from tessera.embedded.controllers.writes import Create, Delete, Patch
from tests.unit.embedded.controllers.making import NOW, TEMPLATE, ago, deployment, replica_set


def changed(version):
    return {**TEMPLATE, "metadata": {"labels": {"app": "web", "version": version}}}


def status_in(writes):
    return next(write.body["status"] for write in writes if isinstance(write, Patch) and write.subresource == "status")


def conditions(status):
    return {one["type"]: one for one in status["conditions"]}


def made_by(deployed):
    """Its ReplicaSet, as the API server would have it."""
    (create,) = [write for write in plan(deployed, [], 0, NOW).writes if isinstance(write, Create)]
    body = create.body
    return replica_set(
        create.key.name,
        body["spec"]["replicas"],
        template=body["spec"]["template"],
        labels=body["metadata"]["labels"],
        annotations=body["metadata"]["annotations"],
    )


def test_the_same_template_never_makes_a_second_replica_set():
    deployed = deployment(2)
    made = made_by(deployed)
    assert not [write for write in plan(deployed, [made], 0, NOW).writes if isinstance(write, Create)]
    assert made_by(deployed).metadata.name == made.metadata.name


def test_pods_and_selector_carry_the_hash_of_the_template():
    (create,) = [write for write in plan(deployment(1), [], 0, NOW).writes if isinstance(write, Create)]
    spec = create.body["spec"]
    digest = create.key.name.removeprefix("web-")
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    assert spec["template"]["metadata"]["labels"] == {"app": "web", "pod-template-hash": digest}
    assert create.body["metadata"]["ownerReferences"][0]["controller"] is True


def test_a_template_that_comes_back_gets_the_next_revision():
    first = replica_set("one", 0, template=TEMPLATE, annotations={REVISION: "1"})
    second = replica_set("two", 1, template=changed("2"), annotations={REVISION: "2"})
    writes = plan(deployment(1), [first, second], 1, NOW).writes
    told = [write.body["metadata"].get("annotations", {}).get(REVISION) for write in writes if isinstance(write, Patch)]
    assert "3" in told


def test_a_deployment_without_enough_pods_is_not_available_and_says_since_when():
    deployed = deployment(2)
    status = status_in(plan(deployed, [made_by(deployed)], 0, NOW).writes)
    assert conditions(status)["Available"]["reason"] == "MinimumReplicasUnavailable"
    assert conditions(status)["Progressing"]["reason"] == "NewReplicaSetCreated"
    assert status["unavailableReplicas"] == 2


def test_what_was_said_is_said_again_in_the_same_words():
    made = made_by(deployment(2))
    status = status_in(plan(deployment(2), [made], 0, NOW).writes)
    later = plan(deployment(2, status=status), [made], 0, NOW + timedelta(seconds=5))
    assert status_in(later.writes) == status


def test_without_progress_for_too_long_it_gives_up_saying_that_it_progresses():
    deployed = deployment(1, progressDeadlineSeconds=10)
    made = made_by(deployed)
    status = status_in(plan(deployed, [made], 0, NOW).writes)
    stuck = deployment(1, progressDeadlineSeconds=10, status=status)
    early = plan(stuck, [made], 0, NOW + timedelta(seconds=9))
    assert early.again_s == 1.0
    late = status_in(plan(stuck, [made], 0, NOW + timedelta(seconds=10)).writes)
    assert conditions(late)["Progressing"]["reason"] == "ProgressDeadlineExceeded"


def test_a_deployment_that_moves_again_says_since_when():
    made = made_by(deployment(2))
    stuck = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    stuck |= {"lastTransitionTime": ago(100), "lastUpdateTime": ago(100)}
    moved = replica_set(made.metadata.name, 2, template=made.spec.template, status={"replicas": 1})
    status = status_in(plan(deployment(2, status={"conditions": [stuck]}), [moved], 0, NOW).writes)
    progressing = conditions(status)["Progressing"]
    assert (progressing["reason"], progressing["lastTransitionTime"]) == ("ReplicaSetUpdated", ago(0))


def test_a_paused_deployment_rolls_nothing_out():
    old = replica_set("old", 1, template=changed("1"))
    writes = plan(deployment(1, paused=True), [old], 1, NOW).writes
    assert not [write for write in writes if isinstance(write, Create)]


def test_of_the_history_the_oldest_goes_first():
    deployed = deployment(0, revisionHistoryLimit=1)
    new = replica_set("new", 0, template=TEMPLATE, annotations={REVISION: "9"})
    old = [
        replica_set(f"old-{number}", 0, template=changed(number), annotations={REVISION: number}) for number in "312"
    ]
    gone = [write.key.name for write in plan(deployed, [new, *old], 0, NOW).writes if isinstance(write, Delete)]
    assert gone == ["old-1", "old-2"]
