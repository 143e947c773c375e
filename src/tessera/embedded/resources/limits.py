"""What limits others: quotas, disruption budgets, priorities, network policies, claims to storage."""

import ipaddress
import re
from typing import Any

from tessera.embedded import causes
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.resources import amounts, label_selectors, names
from tessera.embedded.resources.container_rules import check_port
from tessera.embedded.resources.parts import each, inside, part_of, set_defaults
from tessera.embedded.resources.quantities import canonicalise
from tessera.embedded.resources.strategy import Strategy

LARGEST_PRIORITY = 1_000_000_000
SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_PREEMPTION = ("PreemptLowerPriority", "Never")
_IS_PERCENT = re.compile(r"\d+%").fullmatch


class ResourceQuotas(Strategy):
    has_status = True

    def default(self, document: Document) -> Document:
        canonicalise(part_of(document, "spec").get("hard"), "ResourceQuota")
        status = inside(document, "status")
        canonicalise(status.get("hard"), "ResourceQuota")
        canonicalise(status.get("used"), "ResourceQuota")
        return document

    def check(self, document: Frozen) -> list[Cause]:
        return amounts.check_hard(inside(document["spec"], "hard"), "spec.hard")


class PersistentVolumeClaims(Strategy):
    has_status = True

    def default(self, document: Document) -> Document:
        spec = part_of(document, "spec")
        set_defaults(spec, volumeMode="Filesystem", resources={})
        canonicalise(spec["resources"].get("requests"), "PersistentVolumeClaim")
        canonicalise(spec["resources"].get("limits"), "PersistentVolumeClaim")
        return document

    def initial_status(self, document: Frozen, now: str) -> Document:
        del document, now
        return {"phase": "Pending"}

    def check(self, document: Frozen) -> list[Cause]:
        spec: Frozen = document["spec"]
        found: list[Cause] = []
        if not spec.get("accessModes"):
            found.append(causes.required("spec.accessModes", "at least 1 access mode is required"))
        if "storage" not in inside(spec["resources"], "requests"):
            found.append(causes.required("spec.resources[storage]"))
        return found


class DisruptionBudgets(Strategy):
    has_status = True
    counts_generation = True

    def default(self, document: Document) -> Document:
        part_of(document, "spec")
        return document

    def initial_status(self, document: Frozen, now: str) -> Document:
        del document, now
        return dict.fromkeys(("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"), 0)

    def check(self, document: Frozen) -> list[Cause]:
        spec: Frozen = document["spec"]
        found: list[Cause] = []
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            found.append(causes.invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
        for name in ("minAvailable", "maxUnavailable"):
            found += _check_share(spec.get(name), f"spec.{name}")
        if spec.get("selector") is not None:
            found += label_selectors.check(spec["selector"], "spec.selector")
        return found


class PriorityClasses(Strategy):
    counts_generation = True

    def default(self, document: Document) -> Document:
        set_defaults(document, value=0, preemptionPolicy="PreemptLowerPriority")
        return document

    def check(self, document: Frozen) -> list[Cause]:
        name, value = document["metadata"].get("name", ""), document["value"]
        found: list[Cause] = []
        if name.startswith("system-") and SYSTEM_PRIORITIES.get(name) != value:
            detail = (
                "priority class names with 'system-' prefix are reserved for system use only. "
                f"error: {name} is not a known system priority class"
            )
            found.append(causes.forbidden("metadata.name", detail))
        elif name not in SYSTEM_PRIORITIES and value > LARGEST_PRIORITY:
            detail = f"maximum allowed value of a user defined priority is {LARGEST_PRIORITY}"
            found.append(causes.forbidden("value", detail))
        return found + causes.unsupported_choice("preemptionPolicy", document["preemptionPolicy"], _PREEMPTION)

    def check_change(self, new: Frozen, old: Frozen) -> list[Cause]:
        found: list[Cause] = []
        if new["value"] != old["value"]:
            found.append(causes.forbidden("value", "may not be changed in an update."))
        if new["preemptionPolicy"] != old["preemptionPolicy"]:
            found.append(causes.immutable("preemptionPolicy", new["preemptionPolicy"]))
        return found


class NetworkPolicies(Strategy):
    """Kept and checked. Nothing here enforces them."""

    counts_generation = True

    def default(self, document: Document) -> Document:
        spec = part_of(document, "spec")
        part_of(spec, "podSelector")
        for direction in ("ingress", "egress"):
            for rule in each(spec, direction):
                for port in each(rule, "ports"):
                    set_defaults(port, protocol="TCP")
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else ())]
        return document

    def check(self, document: Frozen) -> list[Cause]:
        spec: Frozen = document["spec"]
        found = label_selectors.check(spec["podSelector"], "spec.podSelector")
        for direction, peers in (("ingress", "from"), ("egress", "to")):
            for number, rule in enumerate(each(spec, direction)):
                field = f"spec.{direction}[{number}]"
                for place, port in enumerate(each(rule, "ports")):
                    found += _check_policy_port(port, f"{field}.ports[{place}]")
                for place, peer in enumerate(each(rule, peers)):
                    found += _check_peer(peer, f"{field}.{peers}[{place}]")
        for number, kind in enumerate(spec["policyTypes"]):
            found += causes.unsupported_choice(f"spec.policyTypes[{number}]", kind, ("Ingress", "Egress"))
        return found


class RuntimeClasses(Strategy):
    def check(self, document: Frozen) -> list[Cause]:
        handler = document.get("handler")
        if not handler:
            return [causes.required("handler")]
        return [causes.invalid("handler", handler, sentence) for sentence in names.label(handler)]


class Leases(Strategy):
    def default(self, document: Document) -> Document:
        part_of(document, "spec")
        return document

    def check(self, document: Frozen) -> list[Cause]:
        spec: Frozen = document["spec"]
        lasting = spec.get("leaseDurationSeconds")
        found: list[Cause] = []
        if lasting is not None and lasting <= 0:
            found.append(causes.invalid("spec.leaseDurationSeconds", lasting, "must be greater than 0"))
        return found + causes.below_zero("spec.leaseTransitions", spec.get("leaseTransitions"))


def _check_share(share: Any, field: str) -> list[Cause]:
    """A number of pods, or a part of them in per cent."""
    if not isinstance(share, str):
        return causes.below_zero(field, share)
    if not _IS_PERCENT(share):
        detail = (
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
            "regex used for validation is '[0-9]+%')"
        )
        return [causes.invalid(field, share, detail)]
    return [causes.invalid(field, share, "must not be greater than 100%")] if int(share[:-1]) > 100 else []


def _check_policy_port(port: Frozen, field: str) -> list[Cause]:
    found = causes.unsupported_choice(f"{field}.protocol", port["protocol"], ("TCP", "UDP", "SCTP"))
    number, last = port.get("port"), port.get("endPort")
    if last is not None and not isinstance(number, int):
        found.append(causes.invalid(f"{field}.endPort", last, "may not be specified when `port` is non-numeric"))
    elif last is not None and last < number:
        found.append(causes.invalid(f"{field}.endPort", last, "must be greater than or equal to `port`"))
    return found + (check_port(number, f"{field}.port") if number is not None else [])


def _check_peer(peer: Frozen, field: str) -> list[Cause]:
    if not any(peer.get(kind) is not None for kind in ("podSelector", "namespaceSelector", "ipBlock")):
        return [causes.required(field, "must specify a peer")]
    block: Frozen | None = peer.get("ipBlock")
    if block is None:
        return []
    try:
        ipaddress.ip_network(block.get("cidr") or "", strict=False)
    except ValueError:
        detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
        return [causes.invalid(f"{field}.ipBlock.cidr", block.get("cidr"), detail)]
    return []
