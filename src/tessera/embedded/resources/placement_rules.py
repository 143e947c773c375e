"""What a pod says about where it may run: node names, selectors, affinities, tolerations."""

from collections.abc import Mapping
from typing import Any

from tessera.embedded import causes
from tessera.embedded.documents import Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.resources import metadata, names
from tessera.embedded.resources.parts import each, inside

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION_OPERATORS = ("Equal", "Exists")
_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def check(spec: Frozen, field: str) -> list[Cause]:
    found = metadata.check_labels(spec.get("nodeSelector"), f"{field}.nodeSelector")
    if spec.get("nodeName"):
        node = spec["nodeName"]
        found += [causes.invalid(f"{field}.nodeName", node, sentence) for sentence in names.subdomain(node)]
    affinity: Mapping[str, Any] = inside(spec, "affinity")
    if affinity.get("nodeAffinity"):
        found += _check_node_affinity(affinity["nodeAffinity"], f"{field}.affinity.nodeAffinity")
    for number, toleration in enumerate(each(spec, "tolerations")):
        found += _check_toleration(toleration, f"{field}.tolerations[{number}]")
    return found


def _check_toleration(toleration: Frozen, field: str) -> list[Cause]:
    key, operator = toleration.get("key") or "", toleration.get("operator") or "Equal"
    effect, value = toleration.get("effect") or "", toleration.get("value") or ""
    found = [causes.invalid(f"{field}.key", key, sentence) for sentence in (names.qualified(key) if key else ())]
    if not key and operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        found.append(causes.invalid(f"{field}.operator", operator, detail))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found.append(causes.invalid(f"{field}.effect", effect, detail))
    if operator not in _TOLERATION_OPERATORS:
        found.append(causes.not_supported(f"{field}.operator", operator, _TOLERATION_OPERATORS))
    elif operator == "Exists" and value:
        found.append(causes.invalid(f"{field}.operator", value, "value must be empty when `operator` is 'Exists'"))
    elif sentences := names.label_value(value):
        found += [causes.invalid(f"{field}.operator", value, sentence) for sentence in sentences]
    return found + (causes.unsupported_choice(f"{field}.effect", effect, EFFECTS) if effect else [])


def _check_node_affinity(affinity: Frozen, field: str) -> list[Cause]:
    found: list[Cause] = []
    if affinity.get(_REQUIRED) is not None:
        terms = affinity[_REQUIRED].get("nodeSelectorTerms") or ()
        where = f"{field}.{_REQUIRED}.nodeSelectorTerms"
        if not terms:
            found.append(causes.required(where, "must have at least one node selector term"))
        for number, term in enumerate(terms):
            found += _check_term(term, f"{where}[{number}]")
    for number, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        where = f"{field}.{_PREFERRED}[{number}]"
        if not 1 <= preferred.get("weight", 0) <= 100:
            found.append(causes.invalid(f"{where}.weight", preferred.get("weight", 0), "must be in the range 1-100"))
        found += _check_term(inside(preferred, "preference"), f"{where}.preference")
    return found


def _check_term(term: Frozen, field: str) -> list[Cause]:
    found: list[Cause] = []
    for part in ("matchExpressions", "matchFields"):
        for number, expression in enumerate(term.get(part) or ()):
            operator = expression.get("operator") or ""
            if operator not in _NODE_OPERATORS:
                where = f"{field}.{part}[{number}].operator"
                found.append(causes.invalid(where, operator, "not a valid selector operator"))
            elif operator in ("In", "NotIn") and not expression.get("values"):
                where = f"{field}.{part}[{number}].values"
                found.append(causes.required(where, "must be specified when `operator` is 'In' or 'NotIn'"))
    return found
