"""Nodes: what their conditions mean for scheduling, and which have fallen silent.

Taints follow conditions: a node that is not ready takes no new pods. What runs on it is left alone, unless somebody
taints it to clear it (`clearing`); pods are removed, after a while, when the node itself is gone and nobody is left who
could end them.
"""

from collections.abc import Sequence
from datetime import datetime

from tessera.embedded.controllers.conditions import Said, find_condition, with_condition
from tessera.embedded.controllers.objects import NODES, Node
from tessera.embedded.controllers.times import write_time
from tessera.embedded.controllers.writes import Write, change, put_status
from tessera.kube.objects import Document

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
OURS = (NOT_READY, UNREACHABLE, UNSCHEDULABLE)
SILENCE_S = 40.0
ORPHANED_S = 40.0


def plan(node: Node, silent_s: float | None, now: datetime) -> list[Write]:
    """`silent_s` is how long its lease was not renewed; None if it has none, and nobody can tell."""
    silence = _tell_silence(node, now) if silent_s is not None and silent_s >= SILENCE_S else []
    return silence or _follow_conditions(node)


def wanted_taints(node: Node) -> list[Document]:
    """Those of others as they are, and ours as the conditions have it."""
    there = node.spec.taints or ()
    ready = find_condition(node.status.conditions, "Ready")
    due = {_readiness_taint(ready), UNSCHEDULABLE if node.spec.unschedulable else None}
    kept = [taint for taint in there if taint["key"] not in OURS or _is_due(taint, due)]
    missing = [key for key in OURS if key in due and not any(_is_due(taint, {key}) for taint in there)]
    return [*kept, *({"key": key, "effect": "NoSchedule"} for key in missing)]


def _follow_conditions(node: Node) -> list[Write]:
    taints: Sequence[Document] = wanted_taints(node)
    if taints == list(node.spec.taints or ()):
        return []
    return [change(NODES, node.metadata, spec={"taints": taints or None})]


def _is_due(taint: Document, due: set[str | None]) -> bool:
    return taint["key"] in due and taint.get("effect") == "NoSchedule"


def _readiness_taint(ready: Document | None) -> str | None:
    if ready is None or ready["status"] == "False":
        return NOT_READY
    return UNREACHABLE if ready["status"] == "Unknown" else None


def _tell_silence(node: Node, now: datetime) -> list[Write]:
    said = Said("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
    before = list(node.status.conditions or ())
    after = with_condition(before, said, write_time(now))
    return [*put_status(NODES, node.metadata, {"conditions": before}, {"conditions": after})]
