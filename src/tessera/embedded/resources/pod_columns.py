"""What is shown of a pod: one word for how it is, made of what its containers say."""

from collections.abc import Callable
from datetime import datetime

from tessera.embedded.documents import Frozen
from tessera.embedded.resources.columns import AGE, NAME, NONE, Column, since, text
from tessera.embedded.resources.parts import each, inside
from tessera.embedded.resources.pods import ENDED, GATED


def word_for(pod: Frozen) -> str:
    """The status of a pod as people read it."""
    status = inside(pod, "status")
    word = status.get("reason") or status.get("phase") or "Unknown"
    if any(entry.get("reason") == GATED for entry in each(status, "conditions") if entry.get("type") == "PodScheduled"):
        word = GATED
    word = _beginning(pod) or _running(status, word)
    is_going = pod["metadata"].get("deletionTimestamp") and status.get("phase") not in ENDED
    return "Terminating" if is_going else word


def _beginning(pod: Frozen) -> str:
    """What the init containers say while one of them is not through; empty when all are."""
    specs = each(pod["spec"], "initContainers")
    sidecars = {spec["name"] for spec in specs if spec.get("restartPolicy") == "Always"}
    for number, status in enumerate(each(inside(pod, "status"), "initContainerStatuses")):
        state = inside(status, "state")
        ended, waiting = inside(state, "terminated"), inside(state, "waiting")
        if ended and not ended.get("exitCode"):
            continue
        if status.get("name") in sidecars and status.get("started"):
            continue
        if ended:
            return f"Init:{ended.get('reason') or _exit(ended)}"
        reason = waiting.get("reason")
        return f"Init:{reason}" if reason and reason != "PodInitializing" else f"Init:{number}/{len(specs)}"
    return ""


def _running(status: Frozen, word: str) -> str:
    """What the containers say, the first one last."""
    is_running = False
    for container in reversed(each(status, "containerStatuses")):
        state = inside(container, "state")
        ended, waiting = inside(state, "terminated"), inside(state, "waiting")
        if waiting.get("reason"):
            word = waiting["reason"]
        elif "terminated" in state:
            word = ended.get("reason") or _exit(ended)
        elif container.get("ready") and "running" in state:
            is_running = True
    if word == "Completed" and is_running:
        is_ready = any((one.get("type"), one.get("status")) == ("Ready", "True") for one in each(status, "conditions"))
        return "Running" if is_ready else "NotReady"
    return word


def _exit(ended: Frozen) -> str:
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def ready(pod: Frozen) -> str:
    status = inside(pod, "status")
    sidecars = {spec["name"] for spec in each(pod["spec"], "initContainers") if spec.get("restartPolicy") == "Always"}
    beside = [one for one in each(status, "initContainerStatuses") if one.get("name") in sidecars]
    good = sum(1 for one in [*each(status, "containerStatuses"), *beside] if one.get("ready"))
    return f"{good}/{len(each(pod['spec'], 'containers')) + len(sidecars)}"


def restarts(pod: Frozen, now: datetime) -> str:
    statuses = each(inside(pod, "status"), "containerStatuses")
    count = sum(one.get("restartCount", 0) for one in statuses)
    ends = [inside(inside(one, "lastState"), "terminated").get("finishedAt") for one in statuses]
    last = max((end for end in ends if end), default=None)
    return f"{count} ({since(last, now)} ago)" if count and last else str(count)


def _gates(pod: Frozen) -> str:
    gates = each(pod["spec"], "readinessGates")
    true = {one.get("type") for one in each(inside(pod, "status"), "conditions") if one.get("status") == "True"}
    return f"{sum(1 for gate in gates if gate.get('conditionType') in true)}/{len(gates)}" if gates else NONE


def _of_status(field: str) -> Callable[[Frozen], str]:
    return lambda pod: inside(pod, "status").get(field) or NONE


COLUMNS = (
    NAME,
    text("Ready", ready),
    text("Status", word_for),
    Column("Restarts", restarts),
    AGE,
    text("IP", _of_status("podIP"), wide=True),
    text("Node", lambda pod: pod["spec"].get("nodeName") or NONE, wide=True),
    text("Nominated Node", _of_status("nominatedNodeName"), wide=True),
    text("Readiness Gates", _gates, wide=True),
)
