"""What is shown of things that make pods: how many there are, and what they run."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from tessera.embedded.documents import Frozen
from tessera.embedded.resources import table
from tessera.embedded.resources.columns import AGE, NAME, Column, at, since, text
from tessera.embedded.resources.label_selectors import written
from tessera.embedded.resources.parts import each, inside


def _template(field: str) -> Callable[[Frozen], str]:
    """The names or images of what a workload runs."""
    return lambda document: ",".join(
        container.get(field, "") for container in each(document["spec"]["template"]["spec"], "containers")
    )


_CONTAINERS = (text("Containers", _template("name"), wide=True), text("Images", _template("image"), wide=True))
_SELECTOR = text("Selector", lambda document: written(document["spec"].get("selector")), wide=True)


def _ready_of(document: Frozen) -> str:
    return f"{inside(document, 'status').get('readyReplicas', 0)}/{document['spec'].get('replicas', 0)}"


def _job_status(job: Frozen) -> str:
    true = {one.get("type") for one in each(inside(job, "status"), "conditions") if one.get("status") == "True"}
    for word, kind in (("Complete", "Complete"), ("Failed", "Failed"), ("Suspended", "Suspended")):
        if kind in true:
            return word
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return (
        "SuccessCriteriaMet"
        if "SuccessCriteriaMet" in true
        else "FailureTarget"
        if "FailureTarget" in true
        else "Running"
    )


def _job_completions(job: Frozen) -> str:
    wanted, done = job["spec"].get("completions"), inside(job, "status").get("succeeded", 0)
    parallel = job["spec"].get("parallelism", 0)
    return f"{done}/{wanted}" if wanted is not None else f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _job_duration(job: Frozen, now: datetime) -> str:
    status = inside(job, "status")
    if not status.get("startTime"):
        return ""
    ended = status.get("completionTime")
    return since(status["startTime"], datetime.fromisoformat(ended.replace("Z", "+00:00")) if ended else now)


SETS: Mapping[str, Sequence[Column]] = {
    table.DEPLOYMENTS.resource: (
        NAME,
        text("Ready", _ready_of),
        text("Up-to-date", at("status", "updatedReplicas", absent=0)),
        text("Available", at("status", "availableReplicas", absent=0)),
        AGE,
        *_CONTAINERS,
        _SELECTOR,
    ),
    table.REPLICA_SETS.resource: (
        NAME,
        text("Desired", at("spec", "replicas", absent=0), type="integer"),
        text("Current", at("status", "replicas", absent=0), type="integer"),
        text("Ready", at("status", "readyReplicas", absent=0), type="integer"),
        AGE,
        *_CONTAINERS,
        _SELECTOR,
    ),
    table.STATEFUL_SETS.resource: (NAME, text("Ready", _ready_of), AGE, *_CONTAINERS),
    table.DAEMON_SETS.resource: (
        NAME,
        text("Desired", at("status", "desiredNumberScheduled", absent=0), type="integer"),
        text("Current", at("status", "currentNumberScheduled", absent=0), type="integer"),
        text("Ready", at("status", "numberReady", absent=0), type="integer"),
        text("Up-to-date", at("status", "updatedNumberScheduled", absent=0), type="integer"),
        text("Available", at("status", "numberAvailable", absent=0), type="integer"),
        text(
            "Node Selector", lambda one: written({"matchLabels": one["spec"]["template"]["spec"].get("nodeSelector")})
        ),
        AGE,
        *_CONTAINERS,
        _SELECTOR,
    ),
    table.JOBS.resource: (
        NAME,
        text("Status", _job_status),
        text("Completions", _job_completions),
        Column("Duration", _job_duration),
        AGE,
        *_CONTAINERS,
        _SELECTOR,
    ),
}
