"""Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs."""

import copy

import pytest

from tests.unit.embedded.resources.making import (
    UID,
    complaints,
    created,
    pod,
    refusals,
    served,
    updated,
    with_status,
    workload,
)

DEPLOYMENTS = served("deployments", "apps")
STATEFUL_SETS = served("statefulsets", "apps")
JOBS = served("jobs", "batch")
EACH = [served(plural, "apps") for plural in ("deployments", "replicasets", "statefulsets", "daemonsets")]


def job(**spec):
    template = {"metadata": {"labels": {"app": "job"}}, "spec": pod()["spec"] | {"restartPolicy": "Never"}}
    return {"metadata": {"name": "once"}, "spec": {"template": template} | spec}


def test_a_deployment_is_completed():
    spec = created(DEPLOYMENTS, workload())["spec"]
    assert (spec["replicas"], spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (1, 10, 600)
    rolling = {"maxUnavailable": "25%", "maxSurge": "25%"}
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": rolling}


def test_a_template_is_completed_as_a_pod_but_for_what_only_a_pod_has():
    template = created(DEPLOYMENTS, workload())["spec"]["template"]["spec"]
    assert template["restartPolicy"] == "Always"
    assert template["containers"][0]["imagePullPolicy"] == "Always"
    assert "tolerations" not in template
    assert "enableServiceLinks" not in template


def test_a_stateful_set_is_completed():
    made = created(STATEFUL_SETS, workload())
    assert made["spec"]["podManagementPolicy"] == "OrderedReady"
    assert made["spec"]["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert made["status"] == {"replicas": 0, "availableReplicas": 0}


@pytest.mark.parametrize("kind", EACH, ids=lambda kind: kind.kind.kind)
def test_a_selector_must_match_its_own_template(kind):
    told = complaints(kind, workload(selector={"matchLabels": {"app": "another"}}))
    expected = 'Invalid value: {"app":"web"}: `selector` does not match template `labels`'
    assert told["spec.template.metadata.labels"] == expected


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"selector": None}, "spec.selector", "Required value"),
        ({"selector": {}}, "spec.selector", "Invalid value: {}: empty selector is invalid for deployment"),
        ({"replicas": -1}, "spec.replicas", "Invalid value: -1: must be greater than or equal to 0"),
        (
            {"strategy": {"type": "Recreate", "rollingUpdate": {}}},
            "spec.strategy.rollingUpdate",
            "Forbidden: may not be specified when strategy `type` is 'Recreate'",
        ),
        (
            {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}},
            "spec.strategy.rollingUpdate.maxUnavailable",
            'Invalid value: "0%": may not be 0 when `maxSurge` is 0',
        ),
        (
            {"selector": {"matchExpressions": [{"key": "app", "operator": "In"}]}},
            "spec.selector.matchExpressions[0].values",
            "Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ),
    ],
)
def test_a_deployment_is_told_what_is_wrong_with_it(spec, field, message):
    assert complaints(DEPLOYMENTS, workload(**spec))[field] == message


def test_pods_that_are_made_again_must_be_restarted_always():
    wrong = workload()
    wrong["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    told = complaints(DEPLOYMENTS, wrong)["spec.template.spec.restartPolicy"]
    assert told == 'Unsupported value: "Never": supported values: "Always"'


def test_the_generation_counts_changes_of_the_spec_alone():
    made = created(DEPLOYMENTS, workload())
    labelled = updated(DEPLOYMENTS, made, metadata=made["metadata"] | {"labels": {"tier": "front"}})
    paused = updated(DEPLOYMENTS, labelled, spec=made["spec"] | {"paused": True})
    observed = with_status(DEPLOYMENTS, paused, status={"replicas": 1}, spec={})
    assert [one["metadata"]["generation"] for one in (made, labelled, paused, observed)] == [1, 1, 2, 2]
    assert observed["spec"] == paused["spec"]


def test_a_selector_is_fixed():
    made = created(DEPLOYMENTS, workload())
    other = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    assert refusals(DEPLOYMENTS, made, spec=made["spec"] | {"selector": other})["spec.selector"].endswith(
        "field is immutable"
    )


def test_a_stateful_set_changes_in_a_few_ways_only():
    made = created(STATEFUL_SETS, workload())
    assert refusals(STATEFUL_SETS, made, spec=made["spec"] | {"replicas": 3}) == {}
    told = refusals(STATEFUL_SETS, made, spec=made["spec"] | {"serviceName": "other"})["spec"]
    assert told.startswith("Forbidden: updates to statefulset spec for fields other than 'replicas'")


def test_a_job_finds_its_pods_by_its_uid():
    made = created(JOBS, job())
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": UID}}
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert (labels["batch.kubernetes.io/job-name"], labels["job-name"], labels["app"]) == ("once", "once", "job")
    assert labels == made["metadata"]["labels"]


def test_a_job_is_completed():
    spec = created(JOBS, job())["spec"]
    assert (spec["parallelism"], spec["completions"], spec["backoffLimit"]) == (1, 1, 6)
    assert (spec["completionMode"], spec["suspend"]) == ("NonIndexed", False)


def test_the_number_of_completions_is_left_open_where_only_the_parallelism_is_said():
    assert "completions" not in created(JOBS, job(parallelism=3))["spec"]


def test_pods_of_a_job_are_not_restarted_always():
    wrong = job()
    del wrong["spec"]["template"]["spec"]["restartPolicy"]
    told = complaints(JOBS, wrong)["spec.template.spec.restartPolicy"]
    assert told == 'Required value: valid values: "OnFailure", "Never"'


def test_a_selector_of_ones_own_is_refused_unless_it_is_meant():
    own = {"matchLabels": {"app": "job"}}
    assert complaints(JOBS, job(selector=own))["spec.selector"].endswith("`selector` not auto-generated")
    assert created(JOBS, job(selector=own, manualSelector=True))["spec"]["selector"] == own


def test_the_pods_of_a_job_are_fixed_but_for_their_place_while_it_is_suspended():
    suspended, running = created(JOBS, job(suspend=True)), created(JOBS, job())

    def placed(old):
        spec = copy.deepcopy(old["spec"])
        spec["template"]["spec"]["nodeSelector"] = {"gpu": "on"}
        return refusals(JOBS, old, spec=spec)

    assert placed(suspended) == {}
    assert list(placed(running)) == ["spec.template.spec"]
    assert list(refusals(JOBS, running, spec=running["spec"] | {"completions": 5})) == ["spec.completions"]
