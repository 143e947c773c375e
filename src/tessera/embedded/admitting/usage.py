"""What an object costs its namespace, by the names that quotas use."""

from collections.abc import Iterable, Mapping
from fractions import Fraction

from tessera.embedded.documents import Frozen
from tessera.embedded.kinds import Kind
from tessera.embedded.resources.parts import each, inside
from tessera.model.quantities import parse_quantity

Usage = Mapping[str, Fraction]
"""By the resource's name in a quota: `pods`, `requests.nvidia.com/gpu`."""
NONE = Fraction(0)
ENDED = ("Succeeded", "Failed")
_COUNTED = frozenset(
    ("configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas", "secrets", "services")
)
_BARE = ("cpu", "memory", "ephemeral-storage")
"""Of what is requested, what a quota may name without saying so."""


def usage_of(kind: Kind, document: Frozen) -> Usage:
    """What one object uses. A pod that has ended uses nothing but its name."""
    usage = {f"count/{kind.resource}": Fraction(1)}
    if kind.resource in _COUNTED:
        usage[kind.plural] = Fraction(1)
    if kind.resource != "pods" or inside(document, "status").get("phase") in ENDED:
        return usage
    requests, limits = (_of_pod(inside(document, "spec"), part) for part in ("requests", "limits"))
    usage["pods"] = Fraction(1)
    usage |= {f"requests.{name}": amount for name, amount in requests.items()}
    usage |= {name: amount for name, amount in requests.items() if name in _BARE}
    usage |= {f"limits.{name}": amount for name, amount in limits.items()}
    return usage


def difference(after: Usage, before: Usage) -> Usage:
    return {name: after.get(name, NONE) - before.get(name, NONE) for name in {*after, *before}}


def amounts_of(container: Frozen, part: str) -> Usage:
    """What a container requests, or what it is limited to."""
    return amounts_in(inside(container, "resources"), part)


def amounts_in(document: Frozen, field: str) -> Usage:
    """A list of resources, as numbers."""
    said: Mapping[str, str] = inside(document, field)
    return {name: parse_quantity(amount) for name, amount in said.items()}


def _of_pod(spec: Frozen, part: str) -> Usage:
    """Containers and sidecars together, or the most that an init container wants beside earlier sidecars."""
    containers = _summed(amounts_of(container, part) for container in each(spec, "containers"))
    sidecars: Usage = {}
    peak: Usage = {}
    for container in each(spec, "initContainers"):
        wanted = _summed([sidecars, amounts_of(container, part)])
        if container.get("restartPolicy") == "Always":
            sidecars = wanted
        peak = _larger(peak, wanted)
    most = _larger(_summed([containers, sidecars]), peak)
    overhead = amounts_in(spec, "overhead")
    return _summed([most, {name: overhead[name] for name in overhead if part == "requests" or name in most}])


def _summed(parts: Iterable[Usage]) -> Usage:
    total: dict[str, Fraction] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, NONE) + amount
    return total


def _larger(one: Usage, other: Usage) -> Usage:
    return {name: max(one.get(name, NONE), other.get(name, NONE)) for name in {*one, *other}}
