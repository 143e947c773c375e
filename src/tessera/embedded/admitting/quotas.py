"""ResourceQuotas: whether a namespace has as much left as an object costs.

What is admitted is charged at once, in the same breath as it is stored: of two pods of which one fits, one is refused.
What is given back is counted anew from what is there (`used_by`). Scopes of quotas are not known.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from tessera.embedded.admitting.requests import Reader, Request
from tessera.embedded.admitting.usage import NONE, Usage, amounts_in, amounts_of, difference, usage_of
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.kinds import Kind
from tessera.embedded.refusals import ApiRefusal, forbidden
from tessera.embedded.resources.parts import each, inside
from tessera.embedded.resources.quantities import canonical

QUOTAS = "resourcequotas"
PODS = "pods"
_DEMANDED = ("cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory")


class Charge(NamedTuple):
    """A quota as it is to be once something is stored."""

    quota: Document

    @classmethod
    def of(cls, quota: Frozen, used: Mapping[str, str]) -> "Charge":
        return cls({**quota, "status": {**inside(quota, "status"), "used": used}})


def charges(request: Request, reader: Reader) -> Sequence[Charge]:
    """One for each quota that is touched. Refuses what is too much."""
    kind = request.kind
    if request.object is None or request.subresource or not kind.is_namespaced:
        return ()
    quotas = reader.list(QUOTAS, request.namespace)
    if not quotas:
        return ()
    before: Usage = usage_of(kind, request.old_object) if request.old_object else {}
    delta = difference(usage_of(kind, request.object), before)
    if request.creates(PODS):
        for quota in quotas:
            _check_demands(request, quota, request.object)
    found = [charge(request, quota, delta) for quota in quotas]
    return [one for one in found if one is not None]


def charge(request: Request, quota: Frozen, delta: Usage) -> Charge | None:
    """None where the quota is not about this."""
    hard, used = _hard(quota), _used(quota)
    concerned = {name: amount for name, amount in delta.items() if name in hard and amount}
    if not concerned:
        return None
    after = {name: used.get(name, NONE) + concerned.get(name, NONE) for name in hard}
    exceeded = sorted(name for name, amount in concerned.items() if amount > 0 and after[name] > hard[name])
    if exceeded:
        raise _exceeded(request, quota, concerned, exceeded)
    return Charge.of(quota, _written(after, quota))


def used_by(quota: Frozen, objects: Iterable[tuple[Kind, Frozen]]) -> Mapping[str, str]:
    """What everything that is there uses of what the quota limits."""
    total = dict.fromkeys(_hard(quota), NONE)
    for kind, document in objects:
        for name, amount in usage_of(kind, document).items():
            if name in total:
                total[name] += amount
    return _written(total, quota)


def _exceeded(request: Request, quota: Frozen, requested: Usage, names: Sequence[str]) -> ApiRefusal:
    used = _used(quota)
    columns = (
        ("requested", requested),
        ("used", {name: used.get(name, NONE) for name in names}),
        ("limited", _hard(quota)),
    )
    told = [
        f"{column}: {','.join(f'{name}={_text(amounts[name], quota, name)}' for name in names)}"
        for column, amounts in columns
    ]
    why = f"exceeded quota: {quota['metadata']['name']}, {', '.join(told)}"
    return forbidden(request.kind, request.name, why)


def _check_demands(request: Request, quota: Frozen, pod: Frozen) -> None:
    """Where CPU or memory is limited, every container must say how much of it it wants."""
    hard, spec = _hard(quota), inside(pod, "spec")
    containers: Sequence[Frozen] = [*each(spec, "containers"), *each(spec, "initContainers")]
    silent = {
        name: sorted(one["name"] for one in containers if not _says(one, name)) for name in _DEMANDED if name in hard
    }
    missing = "; ".join(f"{name} for: {','.join(names)}" for name, names in silent.items() if names)
    if missing:
        why = f"failed quota: {quota['metadata']['name']}: must specify {missing}"
        raise forbidden(request.kind, request.name, why)


def _says(container: Frozen, demanded: str) -> bool:
    part, _, name = demanded.rpartition(".")
    return name in amounts_of(container, part or "requests")


def _hard(quota: Frozen) -> Usage:
    return amounts_in(inside(quota, "spec"), "hard")


def _used(quota: Frozen) -> Usage:
    return amounts_in(inside(quota, "status"), "used")


def _written(usage: Usage, quota: Frozen) -> Mapping[str, str]:
    return {name: _text(amount, quota, name) for name, amount in usage.items()}


def _text(amount: Fraction, quota: Frozen, name: str) -> str:
    """A figure in the family of units in which the quota limits it."""
    is_binary = str(quota["spec"]["hard"][name]).endswith("i") and amount % 1024 == 0
    return canonical(f"{amount // 1024}Ki" if is_binary else f"{amount * 1000 // 1}m")
