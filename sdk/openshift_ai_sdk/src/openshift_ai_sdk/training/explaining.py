"""Why a job is not done, or not done well: one verdict and its fix, from everything the cluster tells.

Rules are asked in order, the surest first; the first that knows answers. Pure: what was seen comes in as `Evidence`.
"""

from typing import Callable, Optional

from .documents import int_at, mappings_at, text_at
from .evidence import Evidence, Explanation
from .pods import Pod, launchers, name_of, newest, phase_of, workers
from .ranks import is_worth_a_warning
from .resources import LAUNCHER_MEMORY
from .statuses import FAILED, PENDING, REFUSED, RESOURCE_EXISTS, RUNNING, SUCCEEDED
from .symptoms import HOSTFILE_FIX, Symptom, describe_exit, exit_of, symptom_in_log, symptom_of_exit, waiting_reason

PULLING = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"}
)
CONFIGURING = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
MOUNTING = frozenset({"FailedMount", "FailedAttachVolume"})
NOT_STARTED = frozenset({"StartError", "ContainerCannotRun"})
GOOD = "nothing needs to be done"


def explain(evidence: Evidence) -> Explanation:
    for rule in RULES:
        found = rule(evidence)
        if found is not None:
            return found
    return _as_it_should(evidence)


def _by_status(seen: Evidence) -> Optional[Explanation]:
    """What the job says of itself."""
    reason, detail = seen.status.reason, (seen.status.detail,)
    known = {
        "Invalid": (
            "the operator refuses the job as it is",
            "correct what the message names, and create the job again",
        ),
        "Evicted": (
            "workers were evicted from their nodes",
            "see which resource the node ran out of (kubectl describe pod), and ask for what the job really uses",
        ),
    }
    if reason in known:
        return Explanation(reason, *known[reason], detail)
    if reason == "Suspended":
        queue = text_at(seen.document, "metadata", "labels", "kueue.x-k8s.io/queue-name")
        fix = f"wait until Kueue admits it from the queue {queue}" if queue else "call resume()"
        return Explanation("Suspended", "the job is suspended, and has no pods", fix, detail)
    if seen.status.value == FAILED and "DeadlineExceeded" in seen.failed_reason:
        return Explanation(
            "DeadlineExceeded",
            "the job took longer than active_deadline_seconds",
            "raise it, or make the job faster",
            detail,
        )
    return None


def _by_conflict(seen: Evidence) -> Optional[Explanation]:
    """The operator goes on trying, and says so in an event only, which stays when nothing is in the way any more."""
    refused = [one for one in seen.events if text_at(one, "reason") == RESOURCE_EXISTS]
    if not refused or not seen.missing_pods or seen.status.value != PENDING:
        return None
    return Explanation(
        "ResourceExists",
        "an object of the name that the job needs is there already, and is not the job's",
        "delete it, or give the job another name",
        (text_at(refused[-1], "message"),),
    )


def _by_ranks(seen: Evidence) -> Optional[Explanation]:
    if seen.ranks is None or seen.status.value not in (RUNNING, SUCCEEDED):
        return None
    if not is_worth_a_warning(seen.document, seen.ranks):
        return None
    if seen.status.value == RUNNING and (seen.ranks.used or not _shows_open_mpi_5(seen.launcher_log)):
        return None  # they may still be on their way
    verdict = f"{seen.ranks}; Open MPI 5 runs all ranks in the launcher unless it is told the hosts"
    return Explanation("RanksNotEverywhere", verdict, HOSTFILE_FIX, (f"no ranks on {', '.join(seen.ranks.unused)}",))


def _by_success(seen: Evidence) -> Optional[Explanation]:
    return _as_it_should(seen) if seen.status.value == SUCCEEDED else None


def _by_images(seen: Evidence) -> Optional[Explanation]:
    for pod in seen.unfinished_pods:
        reason, message = waiting_reason(pod)
        if reason in PULLING:
            return Explanation(
                "ImagePull",
                f"the image of {name_of(pod)} cannot be pulled ({reason})",
                "check the image's name and tag, and that the namespace has a pull secret for its registry",
                (message or seen.last_message(pod, "Failed") or f"image {_image(pod)}",),
            )
        if reason in CONFIGURING:
            return Explanation(
                "ContainerConfig",
                f"the container of {name_of(pod)} cannot be made ({reason})",
                "see that the Secrets and ConfigMaps that it names are there",
                (message,),
            )
    return None


def _by_memory(seen: Evidence) -> Optional[Explanation]:
    for pod in seen.pods:
        if text_at(exit_of(pod), "reason") == "OOMKilled":
            return Explanation(
                "OutOfMemory",
                f"{name_of(pod)} was out of memory and was killed (OOMKilled)",
                _more_memory(pod),
                (describe_exit(pod),),
            )
    return None


def _by_quota(seen: Evidence) -> Optional[Explanation]:
    """Counts as long as pods are missing: the event stays when the quota is long free."""
    missing = seen.missing_pods
    refused = [one for one in seen.events if "exceeded quota" in text_at(one, "message")]
    if not missing or not refused or seen.status.is_finished:
        return None
    return Explanation(
        "Quota",
        f"quota exceeded: the namespace's quota lets {len(missing)} pods of the job not in, {missing[0]} among them",
        "use fewer workers or fewer resources, delete jobs that are done, or ask for a larger quota",
        (text_at(refused[-1], "message"),),
    )


def _by_refusal(seen: Evidence) -> Optional[Explanation]:
    """Of a pod that is forbidden or invalid. Who makes it tells: the operator of workers, the Job of the launcher."""
    job = text_at(seen.document, "metadata", "name")
    for event in reversed(seen.events if seen.status.value == PENDING else []):
        is_of_launcher = text_at(event, "involvedObject", "name") != job
        missing = [name for name in seen.missing_pods if name.endswith("-launcher") == is_of_launcher]
        if text_at(event, "reason") == ("FailedCreate" if is_of_launcher else REFUSED) and missing:
            return Explanation(
                "PodRefused",
                f"the API server refuses {missing[0]}",
                "correct what the message names and create the job again, or have the namespace's limits or security "
                "policy (on OpenShift its SCC) allow it",
                (text_at(event, "message"),),
            )
    return None


def _by_scheduling(seen: Evidence) -> Optional[Explanation]:
    for pod in seen.unfinished_pods:
        refused = [one for one in mappings_at(pod, "status", "conditions") if _is_unschedulable(one)]
        if refused:
            said = text_at(refused[0], "message") or seen.last_message(pod, "FailedScheduling") or "no node fits"
            return Explanation(
                "Unschedulable",
                f"{name_of(pod)} cannot be scheduled: {said}",
                "wait for others to end, or ask for less: fewer workers, fewer or smaller GPUs; check node_selector "
                "and tolerations",
                tuple(filter(None, [seen.last_message(pod, "FailedScheduling")])),
            )
    return None


def _by_mounts(seen: Evidence) -> Optional[Explanation]:
    for pod in seen.unfinished_pods:
        troubles = [one for one in seen.events_of(pod) if text_at(one, "reason") in MOUNTING]
        if troubles and waiting_reason(pod)[0] in ("", "ContainerCreating"):
            return Explanation(
                "Volume",
                f"{name_of(pod)} cannot mount a volume",
                "see that the claims, Secrets and ConfigMaps in volumes are there",
                (text_at(troubles[-1], "message"),),
            )
    return None


def _by_log(seen: Evidence) -> Optional[Explanation]:
    """Of a job that runs only what keeps it from getting on: NCCL also warns of what it copes with."""
    found = symptom_in_log(seen.launcher_log)
    if not found or (seen.status.value == RUNNING and not found[0].cause.startswith("Ssh")):
        return None
    return _told(found[0], found[1])


def _by_exit(seen: Evidence) -> Optional[Explanation]:
    launcher = newest(launchers(seen.pods))
    code = int_at(exit_of(launcher), "exitCode") if launcher else None
    if not launcher or not code:
        return None
    if text_at(exit_of(launcher), "reason") in NOT_STARTED:
        return Explanation(
            "StartError",
            f"the container of {name_of(launcher)} cannot be started",
            "check command, and that the image has it in its PATH and may run it",
            (text_at(exit_of(launcher), "message") or describe_exit(launcher),),
        )
    lines = [line.strip() for line in seen.launcher_log.splitlines() if line.strip()]
    return _told(symptom_of_exit(code), describe_exit(launcher), *lines[-3:])


def _by_failed_workers(seen: Evidence) -> Optional[Explanation]:
    for pod in workers(seen.pods, text_at(seen.document, "metadata", "name")):
        if phase_of(pod) == "Failed":
            said = text_at(pod, "status", "message") or describe_exit(pod)
            return Explanation(
                "WorkerFailed", f"{name_of(pod)} failed", "its log, get_logs(worker_index=...), tells more", (said,)
            )
    return None


def _as_it_should(seen: Evidence) -> Explanation:
    """Nothing is wrong that anybody tells of."""
    if seen.status.value == SUCCEEDED:
        known = (str(seen.ranks),) if seen.ranks else ()
        return Explanation("Succeeded", "the job has ended well", GOOD, known)
    if seen.status.value == RUNNING:
        return Explanation("Running", "the job runs", "wait_for_completion() waits for it", (seen.status.detail,))
    if seen.status.value == FAILED:
        return Explanation(
            "Failed", f"the job failed: {seen.status.detail}", "create it again and follow get_logs(follow=True)", ()
        )
    if seen.status.reason == "Accepted" and not seen.pods:
        return Explanation(
            "NoController",
            "no controller has looked at the job yet",
            "wait a moment; if it stays so, see that the MPI operator runs and watches this namespace",
        )
    waiting = [name_of(pod) for pod in seen.pods if phase_of(pod) == "Pending"] + seen.missing_pods
    who = f"{len(waiting)} pods are not running yet" if waiting else "its pods run, and the operator has not told yet"
    return Explanation("Starting", f"the job is starting: {who}", "wait a moment", (seen.status.detail, *waiting[:3]))


RULES: tuple[Callable[[Evidence], Optional[Explanation]], ...] = (
    _by_status,
    _by_conflict,
    _by_ranks,
    _by_success,
    _by_images,
    _by_memory,
    _by_quota,
    _by_refusal,
    _by_scheduling,
    _by_mounts,
    _by_log,
    _by_exit,
    _by_failed_workers,
)


def _told(symptom: Symptom, *evidence: str) -> Explanation:
    return Explanation(symptom.cause, symptom.verdict, symptom.fix, tuple(evidence))


def _more_memory(pod: Pod) -> str:
    if launchers([pod]):
        return f"let the ranks do the work: a launcher has what a worker has, and {LAUNCHER_MEMORY} at most"
    return "raise memory in ResourceRequirements, or let each rank hold less"


def _shows_open_mpi_5(log: str) -> bool:
    return "prterun" in log or "PRTE" in log


def _is_unschedulable(condition: object) -> bool:
    return text_at(condition, "type") == "PodScheduled" and text_at(condition, "status") == "False"


def _image(pod: Pod) -> str:
    containers = mappings_at(pod, "spec", "containers")
    return text_at(containers[0], "image") if containers else ""
