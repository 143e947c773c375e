"""Jobs that are suspended: what is stopped for it has not failed."""

from tessera.embedded.controllers.jobs import plan
from tests.unit.embedded.controllers.making import NOW, ago, going, job, pod


def test_pods_that_end_because_their_job_is_suspended_are_no_failures() -> None:
    stopped = going("a", "Failed")
    status = plan(job(suspend=True, backoffLimit=0), [stopped], iter(["s"]), NOW).status
    assert "failed" not in status
    assert [one["type"] for one in status["conditions"]] == ["Suspended"]


def test_a_pod_that_failed_by_itself_counts_though_its_job_is_suspended_later() -> None:
    ended = {"state": {"terminated": {"finishedAt": ago(60)}}}
    failed = pod("a", "Failed", ready=False, status={"containerStatuses": [ended]})
    status = plan(job(suspend=True, backoffLimit=0), [failed], iter(["s"]), NOW).status
    assert status["failed"] == 1
