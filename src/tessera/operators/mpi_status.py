"""What an MPIJob says of itself, judged from its launcher Job and its pods. Pure.

Conditions, reasons and messages are those of the MPI operator. What is told about a job comes from the difference
between two statuses, so that nothing is told twice.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from tessera.kube.objects import Document
from tessera.operators.mpi_objects import Condition, MpiJob, MpiJobStatus, ReplicaStatus, part
from tessera.operators.mpi_pods import MpiPod
from tessera.operators.mpi_validating import shorten

CREATED, RUNNING, SUSPENDED, SUCCEEDED, FAILED = "Created", "Running", "Suspended", "Succeeded", "Failed"
EVICTED = "Evicted"
BACKOFF = "BackoffLimitExceeded"
TOLD = {
    "MPIJobCreated": "Normal",
    "MPIJobRunning": "Normal",
    "MPIJobSucceeded": "Normal",
    "MPIJobSuspended": "Normal",
    "MPIJobResumed": "Normal",
}


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """`launcher` is its Job; pods are those that are its own."""

    launcher: Document | None = None
    launcher_pods: Sequence[MpiPod] = ()
    workers: Sequence[MpiPod] = ()


def judge(job: MpiJob, observed: Observed, now: str) -> MpiJobStatus:
    """For a job that is not over. Times are kept where nothing has changed."""
    status = _say(job.status, CREATED, "True", "MPIJobCreated", f"MPIJob {job.key} is created.", now)
    if status.start_time is None and not job.is_suspended:
        status = replace(status, start_time=now)
    status = _judge_suspension(job, status, now)
    status = replace(status, replica_statuses=_count(observed))
    status = _judge_launcher(job, status, observed, now)
    status = _judge_eviction(status, observed.workers, now)
    return _judge_running(job, status, observed, now)


def judge_cleaned(job: MpiJob, pods: Iterable[MpiPod]) -> MpiJobStatus:
    """Of a job that is over, and whose workers are being removed."""
    counts = dict(job.status.replica_statuses or {})
    kept = [pod.status.phase for pod in pods if not pod.is_going]
    counts["Worker"] = ReplicaStatus(succeeded=kept.count("Succeeded"), failed=kept.count("Failed"))
    return replace(job.status, replica_statuses=counts)


def tell(before: MpiJobStatus, after: MpiJobStatus) -> Iterator[tuple[str, str, str]]:
    """Level, reason and message of each event that the change is worth."""
    known = {(one.type, one.status, one.reason) for one in before.conditions or ()}
    for one in after.conditions or ():
        is_worth_it = one.status == "True" or one.reason == "MPIJobResumed"
        if is_worth_it and (one.type, one.status, one.reason) not in known:
            yield TOLD.get(one.reason, "Warning"), one.reason, one.message


def write_status(status: MpiJobStatus) -> Document:
    """As a merge patch takes it: what is not there is null, and so is a count of nothing."""
    counts = {
        role: {name: figure or None for name, figure in msgspec.structs.asdict(count).items()}
        for role, count in (status.replica_statuses or {}).items()
    }
    return {**msgspec.to_builtins(status), "replicaStatuses": counts}


def launcher_outcome(launcher: Document) -> Document | None:
    """The condition by which the Job is over, if it is."""
    conditions: list[Document] = part(launcher, "status").get("conditions") or []
    return next((one for one in conditions if one["type"] in ("Complete", "Failed") and one["status"] == "True"), None)


def _judge_suspension(job: MpiJob, status: MpiJobStatus, now: str) -> MpiJobStatus:
    if job.is_suspended:
        status = _say(status, SUSPENDED, "True", "MPIJobSuspended", "MPIJob suspended", now)
        return _say(status, RUNNING, "False", "MPIJobSuspended", f"MPIJob {job.key} is suspended.", now)
    if not status.is_true(SUSPENDED):
        return status
    status = _say(status, SUSPENDED, "False", "MPIJobResumed", "MPIJob resumed", now)
    return replace(status, start_time=now)


def _judge_launcher(job: MpiJob, status: MpiJobStatus, observed: Observed, now: str) -> MpiJobStatus:
    outcome = launcher_outcome(observed.launcher) if observed.launcher is not None else None
    if observed.launcher is None or outcome is None:
        return status
    if outcome["type"] == "Complete":
        at = observed.launcher["status"].get("completionTime") or now
        message = f"MPIJob {job.key} successfully completed."
        return _finish(replace(status, completion_time=at), SUCCEEDED, "MPIJobSucceeded", message, now)
    reason = outcome.get("reason") or "MPIJobFailed"
    message = outcome.get("message") or f"MPIJob {job.key} has failed"
    if (lost := _last_failed(observed.workers)) is not None:
        message = f"{message}; worker {lost.name} has failed: {lost.why or 'see its log'}"
    if reason == BACKOFF and (last := _last_failed(observed.launcher_pods)) is not None:
        reason = f"{reason}/{last.status.reason}" if last.status.reason else reason
        message = f"{message}: {last.why}" if last.why else message
    return _finish(replace(status, completion_time=now), FAILED, reason, shorten(message), now)


def _judge_eviction(status: MpiJobStatus, workers: Sequence[MpiPod], now: str) -> MpiJobStatus:
    evicted = sum(pod.status.phase == "Failed" and pod.status.reason == EVICTED for pod in workers)
    if not evicted or status.is_finished:
        return status
    return _finish(status, FAILED, "MPIJobEvicted", f"{evicted}/{len(workers)} workers are evicted", now)


def _judge_running(job: MpiJob, status: MpiJobStatus, observed: Observed, now: str) -> MpiJobStatus:
    if status.is_finished or job.is_suspended:
        return status
    launched = any(pod.status.phase == "Running" for pod in observed.launcher_pods)
    running = sum(pod.status.phase == "Running" for pod in observed.workers)
    if not launched or running != job.workers:
        return status
    return _say(status, RUNNING, "True", "MPIJobRunning", f"MPIJob {job.key} is running.", now)


def _finish(status: MpiJobStatus, kind: str, reason: str, message: str, now: str) -> MpiJobStatus:
    status = _say(status, RUNNING, "False", reason, message, now)
    return _say(status, kind, "True", reason, message, now)


def _say(status: MpiJobStatus, kind: str, is_so: str, reason: str, message: str, now: str) -> MpiJobStatus:
    """A condition that says the same as before is left alone; one that is new comes last."""
    before = status.condition(kind)
    if before is not None and (before.status, before.reason) == (is_so, reason):
        return status
    since = before.last_transition_time if before is not None and before.status == is_so else now
    said = Condition(
        type=kind, status=is_so, reason=reason, message=message, last_update_time=now, last_transition_time=since
    )
    others = tuple(one for one in status.conditions or () if one.type != kind)
    return replace(status, conditions=(*others, said))


def _count(observed: Observed) -> dict[str, ReplicaStatus]:
    workers = [pod.status.phase for pod in observed.workers]
    counts = {
        "Worker": ReplicaStatus(
            active=workers.count("Running"), succeeded=workers.count("Succeeded"), failed=workers.count("Failed")
        )
    }
    if observed.launcher is None:
        return counts
    outcome = launcher_outcome(observed.launcher)
    running = sum(pod.status.phase == "Running" for pod in observed.launcher_pods)
    counts["Launcher"] = ReplicaStatus(
        active=0 if outcome else running,
        succeeded=1 if outcome and outcome["type"] == "Complete" else 0,
        failed=part(observed.launcher, "status").get("failed", 0),
    )
    return counts


def _last_failed(pods: Iterable[MpiPod]) -> MpiPod | None:
    failed = [pod for pod in pods if pod.status.phase == "Failed"]
    return max(failed, key=lambda pod: pod.metadata.creation_timestamp or "", default=None)
