"""What a pod's spec must be like, for a pod and for the template of one.

The causes come in Kubernetes' order and words. Only those are here that people meet; types and unknown fields are
found by the schema before.
"""

from typing import Any

from tessera.embedded import causes
from tessera.embedded.documents import Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.resources import names, placement_rules
from tessera.embedded.resources.container_rules import check_container
from tessera.embedded.resources.parts import each

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_LONGEST_DEADLINE_S = 2**31 - 1


def check_spec(spec: Frozen, field: str) -> list[Cause]:
    volumes, found = _check_volumes(each(spec, "volumes"), f"{field}.volumes")
    found += _check_containers(spec, volumes, field)
    found += _check_running(spec, field)
    found += placement_rules.check(spec, field)
    found += _check_gates(spec, field)
    return found


def _check_volumes(volumes: Any, field: str) -> tuple[set[str], list[Cause]]:
    """The names that can be mounted, and what is wrong with the list."""
    known: set[str] = set()
    found: list[Cause] = []
    for number, volume in enumerate(volumes):
        where, name = f"{field}[{number}]", volume.get("name") or ""
        if not name:
            found.append(causes.required(f"{where}.name"))
        elif sentences := names.label(name):
            found += [causes.invalid(f"{where}.name", name, sentence) for sentence in sentences]
        if name in known:
            found.append(causes.duplicate(f"{where}.name", name))
        known.add(name)
        kinds = [kind for kind, value in volume.items() if kind != "name" and value is not None]
        found += [causes.forbidden(f"{where}.{kind}", "may not specify more than 1 volume type") for kind in kinds[1:]]
    return known, found


def _check_containers(spec: Frozen, volumes: set[str], field: str) -> list[Cause]:
    found: list[Cause] = []
    taken: set[str] = set()
    if not spec.get("containers"):
        found.append(causes.required(f"{field}.containers"))
    for part in ("containers", "initContainers"):
        for number, container in enumerate(spec.get(part) or ()):
            where = f"{field}.{part}[{number}]"
            found += check_container(container, volumes, where)
            name = container.get("name")
            if name in taken:
                found.append(causes.duplicate(f"{where}.name", name))
            elif name:
                taken.add(name)
    return found


def _check_running(spec: Frozen, field: str) -> list[Cause]:
    found: list[Cause] = []
    found += causes.unsupported_choice(f"{field}.restartPolicy", spec.get("restartPolicy"), _RESTART_POLICIES)
    found += causes.unsupported_choice(f"{field}.dnsPolicy", spec.get("dnsPolicy"), _DNS_POLICIES)
    grace_field = f"{field}.terminationGracePeriodSeconds"
    found += causes.below_zero(grace_field, spec.get("terminationGracePeriodSeconds"))
    deadline_s = spec.get("activeDeadlineSeconds")
    if deadline_s is not None and not 1 <= deadline_s <= _LONGEST_DEADLINE_S:
        detail = f"must be between 1 and {_LONGEST_DEADLINE_S}, inclusive"
        found.append(causes.invalid(f"{field}.activeDeadlineSeconds", deadline_s, detail))
    for name, rule in (("serviceAccountName", names.subdomain), ("hostname", names.label), ("subdomain", names.label)):
        word = spec.get(name)
        found += [causes.invalid(f"{field}.{name}", word, sentence) for sentence in (rule(word) if word else ())]
    scheduler = spec.get("schedulerName") or ""
    found += [causes.invalid(f"{field}.schedulerName", scheduler, told) for told in names.qualified(scheduler)]
    if spec.get("preemptionPolicy") is not None:
        field = f"{field}.preemptionPolicy"
        found += causes.unsupported_choice(field, spec["preemptionPolicy"], _PREEMPTION_POLICIES)
    return found


def _check_gates(spec: Frozen, field: str) -> list[Cause]:
    gates = each(spec, "schedulingGates")
    found: list[Cause] = []
    seen: set[str] = set()
    for number, gate in enumerate(gates):
        where, name = f"{field}.schedulingGates[{number}]", gate.get("name") or ""
        found += [causes.invalid(where, name, sentence) for sentence in names.qualified(name)]
        if name in seen:
            found.append(causes.duplicate(where, name))
        seen.add(name)
    if gates and spec.get("nodeName"):
        detail = "cannot be set until all schedulingGates have been cleared"
        found.append(causes.forbidden(f"{field}.nodeName", detail))
    return found
