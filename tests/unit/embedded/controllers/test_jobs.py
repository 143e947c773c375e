from itertools import count as counting

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.embedded.controllers.job_pods import FIRST_WAIT_S, INDEX, read_indexes, wait_after_failure_s, write_indexes
from tessera.embedded.controllers.jobs import expires_in_s, is_ours, plan
from tests.unit.embedded.controllers.making import NOW, TEMPLATE, ago, going, job, pod


def suffixes():
    return (f"s{number}" for number in counting())


def planned(wanted, *pods):
    return plan(wanted, pods, suffixes(), NOW)


def conditions(status):
    return {one["type"]: one for one in status.get("conditions", []) if one["status"] == "True"}


def ended(name, phase, seconds_ago=60, **more):
    state = {"state": {"terminated": {"finishedAt": ago(seconds_ago)}}}
    return pod(name, phase, ready=False, status={"containerStatuses": [state]}, **more)


@given(st.sets(st.integers(0, 200)))
def test_indexes_are_read_as_they_are_written(indexes):
    assert read_indexes(write_indexes(indexes)) == indexes


def test_neighbouring_indexes_are_written_as_a_range():
    assert write_indexes({7, 0, 2, 3, 4}) == "0,2-4,7"


def test_no_more_pods_are_made_than_may_work_at_once():
    assert len(planned(job(completions=5, parallelism=2), pod("a")).make) == 1


def test_no_more_pods_are_made_than_are_left_to_succeed():
    assert planned(job(completions=2, parallelism=2), ended("a", "Succeeded"), pod("b")).make == ()


def test_an_index_that_has_succeeded_is_not_tried_again_even_if_its_pod_is_gone():
    wanted = job(completions=3, parallelism=3, completionMode="Indexed", status={"completedIndexes": "0"})
    made = planned(wanted, pod("b", annotations={INDEX: "2"})).make
    assert [one["metadata"]["annotations"][INDEX] for one in made] == ["1"]


def test_what_was_counted_stays_counted():
    result = planned(job(completions=3, status={"succeeded": 2, "failed": 1}))
    assert (result.status["succeeded"], result.status["failed"]) == (2, 1)


def test_pods_that_still_work_are_stopped_before_a_job_is_complete():
    wanted = job(completions=1, parallelism=2)
    first = planned(wanted, ended("a", "Succeeded"), pod("b"))
    assert set(conditions(first.status)) == {"SuccessCriteriaMet"}
    assert [one.metadata.name for one in first.remove] == ["b"]
    waiting = planned(wanted, ended("a", "Succeeded"), going("b"))
    assert "Complete" not in conditions(waiting.status)
    assert "Complete" in conditions(planned(wanted, ended("a", "Succeeded")).status)


def test_without_a_number_a_job_is_complete_when_one_has_succeeded_and_all_have_ended():
    wanted = job(parallelism=2)
    assert planned(wanted, ended("a", "Succeeded"), pod("b")).make == ()
    assert "Complete" in conditions(planned(wanted, ended("a", "Succeeded"), ended("b", "Failed")).status)


def test_pods_that_a_failing_job_stops_are_counted_once():
    late = {"activeDeadlineSeconds": 5, "backoffLimit": 6}
    first = planned(job(**late, status={"startTime": ago(9), "failed": 1}), ended("a", "Failed"), pod("b")).status
    assert (first["failed"], "FailureTarget" in conditions(first)) == (2, True)
    second = planned(job(**late, status=first), ended("a", "Failed"), going("b")).status
    assert second["failed"] == 2
    third = planned(job(**late, status=second), ended("a", "Failed"), ended("b", "Failed")).status
    assert (third["failed"], "Failed" in conditions(third)) == (2, True)


def test_containers_that_are_started_again_count_as_failures():
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "OnFailure"}}
    failing = pod("a", status={"containerStatuses": [{"restartCount": 2}]})
    assert "FailureTarget" in conditions(planned(job(template=template, backoffLimit=2), failing).status)
    assert "FailureTarget" not in conditions(planned(job(template=template, backoffLimit=3), failing).status)


@pytest.mark.parametrize(("failures", "wait_s"), [(1, FIRST_WAIT_S), (3, FIRST_WAIT_S * 4), (20, 600.0)])
def test_each_failure_makes_the_next_try_later(failures, wait_s):
    pods = [ended(str(number), "Failed", 1 + failures - number) for number in range(1, failures + 1)]
    assert wait_after_failure_s(pods, NOW) == wait_s - 1


def test_a_success_ends_the_waiting():
    assert wait_after_failure_s([ended("a", "Failed", 9), ended("b", "Succeeded", 8)], NOW) == 0


def test_after_a_failure_nothing_is_made_until_its_time():
    result = planned(job(), ended("a", "Failed", 4))
    assert (result.make, result.again_s) == ((), FIRST_WAIT_S - 4)


def test_a_job_that_resumes_counts_its_time_anew():
    suspended = planned(job(suspend=True, activeDeadlineSeconds=5, status={"startTime": ago(900)})).status
    assert "Suspended" in conditions(suspended)
    result = planned(job(activeDeadlineSeconds=5, status=suspended))
    assert "Suspended" not in conditions(result.status)
    assert result.status["startTime"] == ago(0)
    assert len(result.make) == 1


def test_a_job_that_is_over_is_kept_for_its_time():
    over = {"conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": ago(4)}]}
    assert expires_in_s(job(ttlSecondsAfterFinished=10, status=over), NOW) == 6
    assert expires_in_s(job(status=over), NOW) is None
    assert expires_in_s(job(ttlSecondsAfterFinished=10), NOW) is None


def test_a_job_of_another_controller_is_not_ours():
    assert is_ours(job())
    assert not is_ours(job(managedBy="kueue.x-k8s.io/multikueue"))
