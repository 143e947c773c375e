"""Lists of resources: which names there are, what may be asked for, and the class of service that follows from it."""

from collections.abc import Iterable, Mapping

from tessera.embedded import causes
from tessera.embedded.documents import Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.resources import names
from tessera.embedded.resources.parts import inside
from tessera.model.quantities import parse_quantity

Amounts = Mapping[str, str]
"""By the resource's name, in canonical form."""

_OF_CONTAINERS = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES = "hugepages-"
_NATIVE_DOMAIN = "kubernetes.io/"
_OF_QUOTAS = frozenset(
    {
        "cpu",
        "memory",
        "ephemeral-storage",
        "storage",
        "pods",
        "configmaps",
        "secrets",
        "services",
        "services.nodeports",
        "services.loadbalancers",
        "replicationcontrollers",
        "resourcequotas",
        "persistentvolumeclaims",
    }
)
_QUOTA_PREFIXES = ("requests.", "limits.", "count/")


def is_extended(name: str) -> bool:
    """Whether it is counted in whole pieces and never promised twice: everything in a domain other than Kubernetes'."""
    return "/" in name and _NATIVE_DOMAIN not in name and not name.startswith("requests.")


def check_container(resources: Frozen, field: str) -> list[Cause]:
    limits: Amounts = inside(resources, "limits")
    requests: Amounts = inside(resources, "requests")
    found: list[Cause] = []
    for name, amount in limits.items():
        found += _check_one(name, amount, f"{field}.limits[{name}]")
    for name, amount in requests.items():
        found += _check_one(name, amount, f"{field}.requests[{name}]")
        found += _check_against_limit(name, amount, limits.get(name), field)
    return found


def check_hard(hard: Amounts, field: str) -> list[Cause]:
    """The limits of a quota."""
    found: list[Cause] = []
    for name, amount in hard.items():
        where = f"{field}[{name}]"
        if name not in _OF_QUOTAS and not name.startswith(_QUOTA_PREFIXES) and "/" not in name:
            found.append(causes.invalid(where, name, "must be a standard resource type or fully qualified"))
            found.append(causes.invalid(where, name, "must be a standard resource for quota"))
        if _is_negative(amount):
            found.append(causes.invalid(where, amount, "must be greater than or equal to 0"))
    return found


def check_whole(amounts: Amounts, field: str) -> list[Cause]:
    """Of what a node says that it has, extended resources are whole."""
    return [
        causes.invalid(f"{field}.{name}", amount, "must be an integer")
        for name, amount in amounts.items()
        if is_extended(name) and not _is_whole(amount)
    ]


def class_of_service(containers: Iterable[Frozen]) -> str:
    """Guaranteed when all ask for exactly what they are limited to, BestEffort when nobody asks for anything."""
    asked = [inside(container, "resources") for container in containers]
    if not any(_compute(resources, part) for resources in asked for part in ("limits", "requests")):
        return "BestEffort"
    for resources in asked:
        limits = _compute(resources, "limits")
        requests = _compute(resources, "requests")
        if set(limits) != {"cpu", "memory"} or requests != limits:
            return "Burstable"
    return "Guaranteed"


def _check_one(name: str, amount: str, field: str) -> list[Cause]:
    found = _check_name(name, field)
    if _is_negative(amount):
        found.append(causes.invalid(field, amount, "must be greater than or equal to 0"))
    elif is_extended(name) and not _is_whole(amount):
        found.append(causes.invalid(field, amount, "must be an integer"))
    return found


def _check_name(name: str, field: str) -> list[Cause]:
    if name in _OF_CONTAINERS or name.startswith(_HUGE_PAGES):
        return []
    if "/" not in name:
        sentences = [
            "must be a standard resource type or fully qualified",
            "must be a standard resource for containers",
        ]
    else:
        sentences = names.qualified(name)
        if sentences and is_extended(name):
            sentences = [*sentences, "doesn't follow extended resource name standard"]
    return [causes.invalid(field, name, sentence) for sentence in sentences]


def _check_against_limit(name: str, amount: str, limit: str | None, field: str) -> list[Cause]:
    overcommits = not is_extended(name)
    if limit is None:
        detail = "Limit must be set for non overcommitable resources"
        return [] if overcommits else [causes.required(f"{field}.limits", detail)]
    if amount == limit:
        return []
    if not overcommits and parse_quantity(amount) != parse_quantity(limit):
        return [causes.invalid(f"{field}.requests", amount, f"must be equal to {name} limit of {limit}")]
    if parse_quantity(amount) > parse_quantity(limit):
        return [causes.invalid(f"{field}.requests", amount, f"must be less than or equal to {name} limit of {limit}")]
    return []


def _compute(resources: Frozen, part: str) -> dict[str, str]:
    """CPU and memory of which there is more than none."""
    amounts: Amounts = resources.get(part) or {}
    return {name: amounts[name] for name in ("cpu", "memory") if amounts.get(name, "0") != "0"}


def _is_negative(amount: str) -> bool:
    return parse_quantity(amount) < 0


def _is_whole(amount: str) -> bool:
    return parse_quantity(amount).denominator == 1
