"""Which nodes a pod may be on at all, cards apart.

The kube-scheduler filters modelled here are NodeUnschedulable, NodeAffinity with nodeSelector, and TaintToleration;
CPU, memory and the pod count are arithmetic and belong to the trial. Inter-pod affinity, topology spread, volumes and
ports are not modelled. That a node which is not ready takes nobody is a rule of our own: a card behind a kubelet that
does not answer cannot be handed out, whatever the pod tolerates.
"""

from collections.abc import Mapping

import numpy as np

from tessera.engine.arrays import Bools, Longs, Rows
from tessera.engine.fleet import Fleet
from tessera.model.devices import Host, Taint
from tessera.model.refusals import Reason, Refusal
from tessera.model.requests import HostRequest, LabelRule, Toleration

NODE_NAME = "metadata.name"


def refuse_host(request: HostRequest, host: Host, name: str) -> Refusal | None:
    """Why the node is out of the question for the pod, or None."""
    if not host.ready:
        return Refusal(Reason.NODE_NOT_READY, where=name)
    taint = next((taint for taint in host.taints if not _tolerated(taint, request.tolerations)), None)
    if host.unschedulable and not _tolerated(_UNSCHEDULABLE, request.tolerations):
        return Refusal(Reason.NODE_CORDONED, where=name)
    if request.node_terms:
        labels = {**dict(host.labels), NODE_NAME: name}
        if not any(term and all(matches_rule(rule, labels) for rule in term) for term in request.node_terms):
            return Refusal(Reason.NODE_SELECTOR, where=name)
    if taint is not None:
        value = f"={taint.value}" if taint.value else ""
        return Refusal(Reason.NODE_TAINT, where=name, detail=f"{taint.key}{value}:{taint.effect}")
    return None


def matches_rule(rule: LabelRule, labels: Mapping[str, str]) -> bool:
    value = labels.get(rule.key)
    match rule.operator:
        case "In":
            return value in rule.values
        case "NotIn":
            return value not in rule.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(rule, value)
        case _:
            return False


def _compares(rule: LabelRule, value: str | None) -> bool:
    try:
        have, bound = int(value or ""), int(rule.values[0])
    except (ValueError, IndexError):
        return False
    return have > bound if rule.operator == "Gt" else have < bound


_UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable")


def _tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    if taint.effect == "PreferNoSchedule":
        return True
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    return toleration.key == taint.key and toleration.value == taint.value


class Admission:
    """For each set of rules seen lately, which rows admit a pod with them; corrected for rows that changed."""

    def __init__(self, fleet: Fleet, *, limit: int = 256) -> None:
        self._fleet = fleet
        self._limit = limit
        self._known: dict[HostRequest, tuple[Bools, Longs]] = {}

    def admitted(self, request: HostRequest, rows: Rows) -> Bools:
        """Whether each of these rows may be considered."""
        rules = HostRequest(node_terms=request.node_terms, tolerations=request.tolerations)
        fleet = self._fleet
        known = self._known.get(rules)
        if known is None or len(known[0]) != len(fleet.alive):
            if len(self._known) >= self._limit:
                self._known.clear()
            known = np.zeros(len(fleet.alive), np.bool_), np.full(len(fleet.alive), -1, np.int64)
            self._known[rules] = known
        verdict, seen_host = known
        for row in map(int, rows[seen_host[rows] != fleet.host_changed_at[rows]]):
            verdict[row] = refuse_host(rules, fleet.hosts[row], fleet.names[row]) is None
            seen_host[row] = fleet.host_changed_at[row]
        return verdict[rows] & fleet.alive[rows]
