"""What a Job makes of pods that failed, by its podFailurePolicy."""

import itertools
from datetime import UTC, datetime

import pytest

from tessera.embedded.controllers.jobs import plan
from tessera.embedded.controllers.objects import Job, JobSpec, Metadata
from tessera.embedded.controllers.pods import (
    Condition,
    ContainerState,
    ContainerStatus,
    Pod,
    Spec,
    Status,
    Terminated,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LONG_AGO = "2026-01-01T00:00:00Z"
TEMPLATE = {"spec": {"containers": [{"name": "main"}], "restartPolicy": "Never"}}


def job(*rules, **spec):
    wanted = JobSpec(template=TEMPLATE, completions=1, pod_failure_policy={"rules": list(rules)}, **spec)
    return Job(metadata=Metadata(name="train", namespace="default", uid="1"), spec=wanted)


def failed(exit_code, *, container="main", condition=None):
    state = ContainerState(terminated=Terminated(exit_code=exit_code, finished_at=LONG_AGO))
    conditions = (Condition(type=condition, status="True"),) if condition else ()
    return Pod(
        metadata=Metadata(name="train-0", namespace="default"),
        spec=Spec(),
        status=Status(
            phase="Failed",
            container_statuses=(ContainerStatus(name=container, state=state),),
            conditions=conditions,
        ),
    )


def on_codes(action, operator, *values, container=None):
    codes = {"operator": operator, "values": list(values)} | ({"containerName": container} if container else {})
    return {"action": action, "onExitCodes": codes}


ON_DISRUPTION = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


def next_step(wanted, pod):
    return plan(wanted, [pod], (str(number) for number in itertools.count()), NOW)


def reason(step):
    return next((one["reason"] for one in step.status.get("conditions", ()) if one["type"] == "FailureTarget"), None)


@pytest.mark.parametrize(
    ("rule", "pod", "ends"),
    [
        (on_codes("FailJob", "In", 42), failed(42), True),
        (on_codes("FailJob", "In", 42), failed(1), False),
        (on_codes("FailJob", "NotIn", 42), failed(1), True),
        (on_codes("FailJob", "NotIn", 42), failed(42), False),
        (on_codes("FailJob", "In", 42, container="other"), failed(42), False),
        (on_codes("FailJob", "In", 42, container="other"), failed(42, container="other"), True),
        (on_codes("FailJob", "NotIn", 42), failed(0), False),
    ],
)
def test_an_exit_code_ends_the_job_where_a_rule_says_so(rule, pod, ends):
    step = next_step(job(rule), pod)
    assert (reason(step) == "PodFailurePolicy") == ends
    assert len(step.make) == (0 if ends else 1)


def test_a_failure_that_is_ignored_does_not_count_and_is_made_good():
    step = next_step(job(ON_DISRUPTION, backoff_limit=0), failed(137, condition="DisruptionTarget"))
    assert (reason(step), step.status.get("failed"), len(step.make)) == (None, None, 1)
    step = next_step(job(ON_DISRUPTION, backoff_limit=0), failed(137))
    assert (reason(step), step.status["failed"]) == ("BackoffLimitExceeded", 1)


def test_the_first_rule_that_matches_decides():
    rules = (on_codes("Count", "In", 42), on_codes("FailJob", "In", 42, 43))
    assert reason(next_step(job(*rules), failed(42))) is None
    assert reason(next_step(job(*rules), failed(43))) == "PodFailurePolicy"
