"""Pods: what they are given, what of them may change, and how long their end may take."""

from typing import Any, Final

from tessera.embedded import causes
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.resources import amounts, names, pod_rules
from tessera.embedded.resources.parts import each, inside, part_of, put_back, set_defaults
from tessera.embedded.resources.pod_defaults import complete_pod, containers_of, fill_in_spec
from tessera.embedded.resources.strategy import Strategy

ENDED = ("Succeeded", "Failed")
GATED: Final = "SchedulingGated"

_MAY_CHANGE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)"
)
_CHECKED_ON_THEIR_OWN = ("activeDeadlineSeconds", "tolerations", "schedulingGates", "containers", "initContainers")
_FREE_WHILE_GATED = ("nodeSelector", "affinity")


class Pods(Strategy):
    has_status = True
    counts_generation = True

    def default(self, document: Document) -> Document:
        spec = part_of(document, "spec")
        fill_in_spec(spec, "Pod")
        complete_pod(spec)
        return document

    def prepare_create(self, document: Document, now: str) -> Document:
        set_defaults(document["spec"], preemptionPolicy="PreemptLowerPriority", priority=0)
        return super().prepare_create(document, now)

    def initial_status(self, document: Frozen, now: str) -> Document:
        status: Document = {"phase": "Pending"}
        if document["spec"].get("schedulingGates"):
            status["conditions"] = [_gated(now)]
        status["qosClass"] = amounts.class_of_service(containers_of(document["spec"]))
        return status

    def prepare_update(self, new: Document, old: Frozen) -> Document:
        for field in ("priority", "preemptionPolicy", "serviceAccountName", "serviceAccount"):
            if new["spec"].get(field) is None:
                put_back(new["spec"], old["spec"], field)
        if not new["spec"].get("schedulingGates"):
            new["spec"].pop("schedulingGates", None)
        return super().prepare_update(new, old)

    def prepare_status(self, new: Document, old: Frozen) -> Document:
        super().prepare_status(new, old)
        if not inside(new, "status").get("qosClass"):
            put_back(part_of(new, "status"), inside(old, "status"), "qosClass")
        return new

    def check(self, document: Frozen) -> list[Cause]:
        return pod_rules.check_spec(document["spec"], "spec")

    def check_change(self, new: Frozen, old: Frozen) -> list[Cause]:
        return _changes_of_spec(new["spec"], old["spec"])

    def check_status(self, new: Frozen, old: Frozen) -> list[Cause]:
        status, before = inside(new, "status"), inside(old, "status")
        found: list[Cause] = []
        nominated = status.get("nominatedNodeName") or ""
        field = "status.nominatedNodeName"
        found += [causes.invalid(field, nominated, told) for told in (names.subdomain(nominated) if nominated else ())]
        for number, condition in enumerate(each(status, "conditions")):
            kind = condition.get("type") or ""
            field = f"status.conditions[{number}].Type"
            found += [causes.invalid(field, kind, sentence) for sentence in names.qualified(kind)]
        if status.get("qosClass", before.get("qosClass")) != before.get("qosClass"):
            found.append(causes.immutable("status.qosClass", status["qosClass"]))
        return found

    def grace_s(self, document: Frozen, options: Frozen) -> int:
        """Nobody need be waited for where the pod has no node, or has ended, or whoever deletes it says so."""
        if not document["spec"].get("nodeName") or inside(document, "status").get("phase") in ENDED:
            return 0
        asked = options.get("gracePeriodSeconds")
        granted: Any = document["spec"].get("terminationGracePeriodSeconds", 0) if asked is None else asked
        return 1 if granted < 0 else granted


def _gated(now: str) -> Document:
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": now,
        "reason": GATED,
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


def _changes_of_spec(new: Frozen, old: Frozen) -> list[Cause]:
    found: list[Cause] = []
    for part in ("containers", "initContainers"):
        if len(new.get(part) or ()) != len(old.get(part) or ()):
            return [causes.forbidden(f"spec.{part}", "pod updates may not add or remove containers")]
    found += _changes_of_deadline(new, old)
    found += _changes_of_tolerations(new.get("tolerations") or [], old.get("tolerations") or [])
    found += _changes_of_gates(new.get("schedulingGates") or [], old.get("schedulingGates") or [])
    if _without_what_may_change(new, old) != _without_what_may_change(old, old):
        detail = f"pod updates may not change fields other than {_MAY_CHANGE}\n"
        found.append(causes.forbidden("spec", detail))
    return found


def _without_what_may_change(spec: Frozen, old: Frozen) -> Document:
    free = (*_CHECKED_ON_THEIR_OWN, *(_FREE_WHILE_GATED if old.get("schedulingGates") else ()))
    rest = {name: value for name, value in spec.items() if name not in free}
    for part in ("containers", "initContainers"):
        rest[part] = [container | {"image": ""} for container in spec.get(part) or ()]
    if old.get("terminationGracePeriodSeconds", 0) < 0 and rest.get("terminationGracePeriodSeconds") == 1:
        rest["terminationGracePeriodSeconds"] = old["terminationGracePeriodSeconds"]
    return rest


def _changes_of_deadline(new: Frozen, old: Frozen) -> list[Cause]:
    field, before, after = (
        "spec.activeDeadlineSeconds",
        old.get("activeDeadlineSeconds"),
        new.get("activeDeadlineSeconds"),
    )
    if before is None or before == after:
        return []
    if after is None:
        return [causes.invalid(field, after, "must not update from a positive integer to nil value")]
    return [causes.invalid(field, after, "must be less than or equal to previous value")] if after > before else []


def _changes_of_tolerations(new: list[Frozen], old: list[Frozen]) -> list[Cause]:
    """They may be added, and the time of one may change."""
    kept = [_timeless(toleration) for toleration in new]
    if all(_timeless(toleration) in kept for toleration in old):
        return []
    detail = "existing toleration can not be modified except its tolerationSeconds"
    return [causes.forbidden("spec.tolerations", detail)]


def _timeless(toleration: Frozen) -> Document:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds" and value}


def _changes_of_gates(new: list[Frozen], old: list[Frozen]) -> list[Cause]:
    known = {gate["name"] for gate in old}
    return [
        causes.forbidden(
            f"spec.schedulingGates[{number}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate['name']}'",
        )
        for number, gate in enumerate(new)
        if gate["name"] not in known
    ]
