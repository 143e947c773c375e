"""Jobs: pods that are to succeed a number of times.

What has succeeded or failed is counted from the pods that are there, and never counted down: a pod that is removed
afterwards stays counted. Kubernetes keeps ended pods by a finalizer until they are counted; here nothing removes them
in between but people. Success policies, and failures of single indexes, are not known.

A Job ends in two steps, as Kubernetes does it: the criterion (SuccessCriteriaMet, FailureTarget) is said at once and
stops its pods; that it is over (Complete, Failed) is said when they are gone.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from tessera.embedded.controllers.conditions import Said, find_condition, is_true, with_condition
from tessera.embedded.controllers.job_failures import counts, fatal_failure
from tessera.embedded.controllers.job_pods import missing_pods, succeeded_indexes, wait_after_failure_s, write_indexes
from tessera.embedded.controllers.objects import Job
from tessera.embedded.controllers.pods import ENDED, Pod
from tessera.embedded.controllers.times import seconds_since, write_time
from tessera.embedded.resources.parts import inside
from tessera.kube.objects import Document

OURS = "kubernetes.io/job-controller"
TARGETS = {"SuccessCriteriaMet": "Complete", "FailureTarget": "Failed"}


class Plan(NamedTuple):
    make: Sequence[Document]
    remove: Sequence[Pod]
    status: Document
    again_s: float | None = None


class Tally(NamedTuple):
    """A Job's pods, counted. `done` are the indexes that have succeeded, of an indexed Job.

    `fatal` is why no other try is made, where the Job's policy says so of a pod that failed.
    """

    active: Sequence[Pod]
    terminating: int
    succeeded: int
    failed: int
    done: frozenset[int]
    fatal: str | None = None


def is_over(job: Job) -> bool:
    conditions = job.status.get("conditions")
    return any(is_true(conditions, kind) for kind in TARGETS.values())


def is_ours(job: Job) -> bool:
    return job.spec.managed_by in (None, OURS)


def expires_in_s(job: Job, now: datetime) -> float | None:
    """How long a Job that is over is kept; None for ever."""
    limit_s = job.spec.ttl_seconds_after_finished
    ends = [find_condition(job.status.get("conditions"), kind) for kind in TARGETS.values()]
    ended_at = next((one["lastTransitionTime"] for one in ends if one and one["status"] == "True"), None)
    if limit_s is None or ended_at is None:
        return None
    return max(0.0, limit_s - seconds_since(ended_at, now))


def plan(job: Job, pods: Sequence[Pod], suffixes: Iterator[str], now: datetime) -> Plan:
    """From all pods that it manages; for a Job that is not over."""
    tally = count(job, pods)
    target = _target(job, tally, now)
    if target is not None:
        return _end(job, tally, target, now)
    if job.spec.suspend:
        return Plan((), tally.active, _suspended(job, tally, now))
    status = _running(job, tally, now)
    surplus = len(tally.active) - _wanted(job, tally)
    if surplus > 0:
        unready_first = sorted(tally.active, key=lambda pod: (pod.is_ready, pod.metadata.creation_timestamp))
        return Plan((), unready_first[:surplus], status, _deadline_in_s(job, status, now))
    waiting_s = wait_after_failure_s([pod for pod in pods if counts(job, pod)], now)
    soonest = min(filter(None, (waiting_s, _deadline_in_s(job, status, now))), default=None)
    if surplus == 0 or waiting_s or job.metadata.is_going:
        return Plan((), (), status, soonest)
    replaced = tally.terminating if job.spec.pod_replacement_policy == "Failed" else 0
    missing = max(0, -surplus - replaced)
    return Plan(missing_pods(job, pods, tally.done, missing, suffixes), (), status, soonest)


def count(job: Job, pods: Sequence[Pod]) -> Tally:
    active = [pod for pod in pods if pod.is_active]
    done = succeeded_indexes(job, pods) if job.spec.is_indexed else set[int]()
    succeeded, failed = ([pod for pod in pods if pod.status.phase == phase] for phase in ENDED)
    return Tally(
        active=active,
        terminating=sum(pod.metadata.is_going and pod.status.phase not in ENDED for pod in pods),
        succeeded=len(done) if job.spec.is_indexed else max(job.status.get("succeeded", 0), len(succeeded)),
        failed=max(job.status.get("failed", 0), sum(counts(job, pod) for pod in failed)),
        done=frozenset(done),
        fatal=fatal_failure(job, failed),
    )


def _target(job: Job, tally: Tally, now: datetime) -> Said | None:
    """What ends the Job, if anything does; what has been said once stands."""
    for kind in TARGETS:
        said = find_condition(job.status.get("conditions"), kind)
        if said is not None and said["status"] == "True":
            return Said(kind, "True", said.get("reason", ""), said.get("message", ""))
    if tally.fatal is not None:
        return Said("FailureTarget", "True", "PodFailurePolicy", tally.fatal)
    if _has_failed_too_often(job, tally):
        return Said("FailureTarget", "True", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    started, limit_s = job.status.get("startTime"), job.spec.active_deadline_seconds
    if started and limit_s is not None and not job.spec.suspend and seconds_since(started, now) >= limit_s:
        return Said("FailureTarget", "True", "DeadlineExceeded", "Job was active longer than specified deadline")
    if _has_succeeded(job, tally):
        message = "Reached expected number of succeeded pods"
        return Said("SuccessCriteriaMet", "True", "CompletionsReached", message)
    return None


def _has_failed_too_often(job: Job, tally: Tally) -> bool:
    limit = job.spec.backoff_limit
    if tally.failed > limit:
        return True
    if inside(job.spec.template, "spec").get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(pod.restarts for pod in tally.active)
    return restarts >= limit if limit else restarts > 0


def _has_succeeded(job: Job, tally: Tally) -> bool:
    if job.spec.completions is None:
        return tally.succeeded > 0 and not tally.active
    return tally.succeeded >= job.spec.completions


def _wanted(job: Job, tally: Tally) -> int:
    """How many pods should be at work."""
    if job.spec.completions is None:
        return len(tally.active) if tally.succeeded else job.spec.parallelism
    return min(job.spec.parallelism, job.spec.completions - tally.succeeded)


def _end(job: Job, tally: Tally, target: Said, now: datetime) -> Plan:
    """Pods that still work are stopped, which is to fail; once all are gone the Job is over."""
    at = write_time(now)
    if target.type == "FailureTarget" and not is_true(job.status.get("conditions"), target.type):
        tally = tally._replace(failed=tally.failed + len(tally.active))
    status = _figures(job, tally, at)
    status["conditions"] = with_condition(job.status.get("conditions"), target, at, "lastProbeTime")
    if tally.active or tally.terminating:
        return Plan((), tally.active, status)
    final = TARGETS[target.type]
    over = target._replace(type=final)
    status["conditions"] = with_condition(status["conditions"], over, at, "lastProbeTime")
    if final == "Complete":
        status["completionTime"] = at
    return Plan((), (), status)


def _suspended(job: Job, tally: Tally, now: datetime) -> Document:
    at = write_time(now)
    status = _figures(job, tally, at)
    del status["startTime"]  # its time counts anew when it resumes
    said = Said("Suspended", "True", "JobSuspended", "Job suspended")
    status["conditions"] = with_condition(job.status.get("conditions"), said, at, "lastProbeTime")
    return status


def _running(job: Job, tally: Tally, now: datetime) -> Document:
    at = write_time(now)
    status = _figures(job, tally, at)
    former = job.status.get("conditions")
    if is_true(former, "Suspended"):
        said = Said("Suspended", "False", "JobResumed", "Job resumed")
        status["conditions"] = with_condition(former, said, at, "lastProbeTime")
    elif former:
        status["conditions"] = former
    return status


def _figures(job: Job, tally: Tally, at: str) -> Document:
    figures = {
        "active": len(tally.active),
        "succeeded": tally.succeeded,
        "failed": tally.failed,
    }
    status: Document = {name: figure for name, figure in figures.items() if figure}
    status["ready"] = sum(pod.is_ready for pod in tally.active)
    status["terminating"] = tally.terminating
    status["startTime"] = job.status.get("startTime") or at
    status["uncountedTerminatedPods"] = {}
    if tally.done:
        status["completedIndexes"] = write_indexes(tally.done)
    return status


def _deadline_in_s(job: Job, status: Document, now: datetime) -> float | None:
    limit_s = job.spec.active_deadline_seconds
    if limit_s is None:
        return None
    return max(0.1, limit_s - seconds_since(status["startTime"], now))
