"""What an MPIJob says of itself, from what is seen of its launcher and its pods."""

from typing import Any

import msgspec
import pytest

from tessera.operators.mpi_objects import MpiJob, MpiJobStatus
from tessera.operators.mpi_status import Observed, judge, judge_cleaned, tell, write_status
from tests.unit.operators.mpi_making import LATER, NOW, a_job, a_launcher, a_pod

WORKERS = (a_pod("fit-worker-0"), a_pod("fit-worker-1"))
COMPLETE = {"type": "Complete", "status": "True"}


def said(status: MpiJobStatus) -> dict[str, tuple[str, str]]:
    return {one.type: (one.status, one.reason) for one in status.conditions or ()}


def after(status: MpiJobStatus, **changes: Any) -> MpiJob:
    return a_job(status=msgspec.to_builtins(status), **changes)


def running() -> MpiJobStatus:
    seen = Observed(launcher=a_launcher(), launcher_pods=[a_pod("fit-launcher")], workers=WORKERS)
    return judge(a_job(), seen, NOW)


def test_a_new_job_is_created_and_has_begun() -> None:
    status = judge(a_job(), Observed(), NOW)
    assert said(status) == {"Created": ("True", "MPIJobCreated")}
    assert status.start_time == NOW


def test_a_job_runs_when_its_launcher_and_all_workers_do() -> None:
    assert said(running())["Running"] == ("True", "MPIJobRunning")
    fewer = Observed(launcher=a_launcher(), launcher_pods=[a_pod("fit-launcher")], workers=WORKERS[:1])
    assert "Running" not in said(judge(a_job(), fewer, NOW))
    waiting = Observed(launcher=a_launcher(), launcher_pods=[a_pod("fit-launcher", "Pending")], workers=WORKERS)
    assert "Running" not in said(judge(a_job(), waiting, NOW))


def test_what_is_said_already_keeps_its_time() -> None:
    first = running()
    seen = Observed(launcher=a_launcher(), launcher_pods=[a_pod("fit-launcher")], workers=WORKERS)
    assert judge(after(first), seen, LATER) == first


def test_a_job_succeeds_with_its_launcher_and_no_longer_runs() -> None:
    status = judge(after(running()), Observed(launcher=a_launcher(COMPLETE, completionTime=LATER)), LATER)
    assert said(status)["Succeeded"] == ("True", "MPIJobSucceeded")
    assert said(status)["Running"] == ("False", "MPIJobSucceeded")
    assert status.completion_time == LATER


def test_a_job_that_was_never_seen_to_run_does_not_run_either_when_it_is_over() -> None:
    assert said(judge(a_job(), Observed(launcher=a_launcher(COMPLETE)), NOW))["Running"][0] == "False"


def test_a_job_fails_for_the_reason_of_its_launcher() -> None:
    failed = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "too long"}
    status = judge(a_job(), Observed(launcher=a_launcher(failed, failed=1)), NOW)
    assert said(status)["Failed"] == ("True", "DeadlineExceeded")
    assert status.completion_time == NOW
    assert status.replica_statuses is not None
    assert status.replica_statuses["Launcher"].failed == 1


def test_after_too_many_tries_the_last_one_and_the_worker_that_failed_say_why() -> None:
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "limit reached"}
    ended = {"name": "main", "state": {"terminated": {"exitCode": 3, "message": "\0no data\n"}}}
    launcher = a_pod("fit-launcher", "Failed", containerStatuses=[ended])
    worker = a_pod("fit-worker-1", "Failed", message="out of memory")
    seen = Observed(launcher=a_launcher(failed), launcher_pods=[launcher], workers=[WORKERS[0], worker])
    status = judge(a_job(), seen, NOW)
    condition = status.condition("Failed")
    assert condition is not None
    assert condition.message == (
        "limit reached; worker fit-worker-1 has failed: out of memory: container main ended with exit code 3: no data"
    )


def test_evicted_workers_fail_the_job_without_an_end() -> None:
    evicted = a_pod("fit-worker-1", "Failed", reason="Evicted")
    seen = Observed(launcher=a_launcher(), launcher_pods=[a_pod("fit-launcher")], workers=[WORKERS[0], evicted])
    status = judge(after(running()), seen, LATER)
    condition = status.condition("Failed")
    assert condition is not None
    assert (condition.reason, condition.message) == ("MPIJobEvicted", "1/2 workers are evicted")
    assert said(status)["Running"][0] == "False"
    assert status.completion_time is None
    whole = Observed(launcher=a_launcher(), launcher_pods=[a_pod("fit-launcher")], workers=WORKERS)
    assert said(judge(after(status), whole, LATER))["Running"][0] == "False"


def test_a_suspended_job_does_not_run_and_begins_anew_when_it_is_resumed() -> None:
    suspended = judge(after(running(), runPolicy={"suspend": True}), Observed(launcher=a_launcher()), LATER)
    assert said(suspended)["Suspended"] == ("True", "MPIJobSuspended")
    assert said(suspended)["Running"] == ("False", "MPIJobSuspended")
    resumed = judge(after(suspended), Observed(launcher=a_launcher()), "2026-01-01T00:02:00Z")
    assert said(resumed)["Suspended"] == ("False", "MPIJobResumed")
    assert resumed.start_time == "2026-01-01T00:02:00Z"


def test_workers_that_were_cleaned_up_are_no_longer_counted() -> None:
    status = judge_cleaned(after(running()), [a_pod("fit-worker-0", "Succeeded")])
    assert write_status(status)["replicaStatuses"]["Worker"] == {"active": None, "succeeded": 1, "failed": None}


def test_each_change_is_told_once() -> None:
    before, now = MpiJobStatus(), running()
    assert [(level, reason) for level, reason, _ in tell(before, now)] == [
        ("Normal", "MPIJobCreated"),
        ("Normal", "MPIJobRunning"),
    ]
    assert list(tell(now, now)) == []


@pytest.mark.parametrize(("reason", "level"), [("MPIJobSucceeded", "Normal"), ("DeadlineExceeded", "Warning")])
def test_failures_are_told_as_warnings(reason: str, level: str) -> None:
    kind = "Complete" if reason == "MPIJobSucceeded" else "Failed"
    over = a_launcher({"type": kind, "status": "True", "reason": reason, "message": "m"})
    told = tell(running(), judge(after(running()), Observed(launcher=over), LATER))
    assert [(one, why) for one, why, _ in told] == [(level, reason)]
