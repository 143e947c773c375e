"""Nodes: what they have is told by their agents through the status, and they are not ready until they say so."""

from collections.abc import Sequence

from tessera.embedded import causes
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.resources import amounts, names
from tessera.embedded.resources.parts import each, inside, part_of, set_defaults
from tessera.embedded.resources.placement_rules import EFFECTS
from tessera.embedded.resources.quantities import canonicalise
from tessera.embedded.resources.strategy import Strategy

NOT_READY = "node.kubernetes.io/not-ready"
_FACTS = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)


class Nodes(Strategy):
    has_status = True

    def default(self, document: Document) -> Document:
        part_of(document, "spec")
        status = part_of(document, "status")
        canonicalise(status.get("capacity"), "Node")
        if status.get("allocatable") is None and status.get("capacity"):
            status["allocatable"] = dict(status["capacity"])
        canonicalise(status.get("allocatable"), "Node")
        set_defaults(part_of(part_of(status, "daemonEndpoints"), "kubeletEndpoint"), Port=0)
        set_defaults(part_of(status, "nodeInfo"), **dict.fromkeys(_FACTS, ""))
        return document

    def prepare_create(self, document: Document, now: str) -> Document:
        """The status is kept: whoever makes a node knows what it has."""
        del now
        spec = document["spec"]
        taints: list[Document] = spec.get("taints") or []
        if not any(taint.get("key") == NOT_READY for taint in taints):
            spec["taints"] = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]
        if spec.get("podCIDR"):
            set_defaults(spec, podCIDRs=[spec["podCIDR"]])
        return document

    def check(self, document: Frozen) -> list[Cause]:
        return _check_taints(each(document["spec"], "taints"))

    def check_change(self, new: Frozen, old: Frozen) -> list[Cause]:
        before, after = old["spec"], new["spec"]
        found: list[Cause] = []
        if before.get("podCIDR") and before["podCIDR"] != after.get("podCIDR"):
            detail = 'node updates may not change podCIDR except from "" to valid'
            found.append(causes.forbidden("spec.podCIDRs", detail))
        if before.get("providerID") and before["providerID"] != after.get("providerID"):
            detail = 'node updates may not change providerID except from "" to valid'
            found.append(causes.forbidden("spec.providerID", detail))
        return found

    def check_status(self, new: Frozen, old: Frozen) -> list[Cause]:
        del old
        status = inside(new, "status")
        found = amounts.check_whole(inside(status, "capacity"), "status.capacity")
        return found + amounts.check_whole(inside(status, "allocatable"), "status.allocatable")


def _check_taints(taints: Sequence[Frozen]) -> list[Cause]:
    found: list[Cause] = []
    seen: set[tuple[str, str]] = set()
    for number, taint in enumerate(taints):
        field, key, effect = f"metadata.taints[{number}]", taint.get("key") or "", taint.get("effect") or ""
        found += [causes.invalid(f"{field}.key", key, sentence) for sentence in names.qualified(key)]
        value = taint.get("value") or ""
        found += [causes.invalid(f"{field}.value", value, sentence) for sentence in names.label_value(value)]
        found += causes.unsupported_choice(f"{field}.effect", effect, EFFECTS)
        if (key, effect) in seen:
            found.append(causes.duplicate(field, taint))
        seen.add((key, effect))
    return found
