"""ResourceQuota objects, as JSON gives them, read into how much of each vendor's cards a namespace may hold.

Keys are a vendor's resources behind `limits.` or `requests.`, figures are in the units of the resource. Kubernetes
lets several quotas hold at once, so the smallest figure counts. Keys that are no vendor's are left to Kubernetes.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from tessera.errors import InvalidInput, InvalidQuantity
from tessera.model.catalogue import Catalogue, ResourceRole, Vendor
from tessera.model.mismatches import explain_mismatch, show
from tessera.model.quantities import bytes_of, count_of

_PREFIXES = ("limits.", "requests.")
_FIELDS: dict[ResourceRole, str] = {"count": "cards", "memory": "memory_mib", "cores": "cores_percent"}
_MIB = 2**20


class Limits(NamedTuple):
    """What one namespace may hold of one vendor's cards; None where nothing is said."""

    cards: int | None = None
    memory_mib: int | None = None
    cores_percent: int | None = None


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    pass


class _Metadata(_Part, frozen=True, kw_only=True):
    name: str | None = None
    namespace: str | None = None


class _Spec(_Part, frozen=True, kw_only=True, rename="camel"):
    """With scopes it counts some of the namespace's pods only, which we do not do: Kubernetes itself keeps to it."""

    hard: dict[str, Any] | None = None
    scopes: list[Any] | None = None
    scope_selector: dict[str, Any] | None = None


class _Document(_Part, frozen=True, kw_only=True):
    metadata: _Metadata | None = None
    spec: _Spec | None = None


class QuotaReading(NamedTuple):
    """By vendor; one of which the quotas say nothing is not there. `complaints` are about figures that mean nothing."""

    limits: dict[str, Limits]
    complaints: tuple[str, ...] = ()


def read_quotas(quotas: Iterable[object], vendors: Catalogue) -> QuotaReading:
    """What the quotas of one namespace leave it. A figure that cannot be read lets nothing through.

    Whoever wrote it wanted a bound; to guess none would be the one wrong guess that nobody notices.
    """
    limits: dict[str, Limits] = {}
    complaints: list[str] = []
    for quota in quotas:
        for vendor, field, limit in _read_quota(quota, vendors, complaints):
            known = limits.get(vendor, Limits())
            before: int | None = getattr(known, field)
            limits[vendor] = known._replace(**{field: limit if before is None else min(before, limit)})
    return QuotaReading(limits, tuple(complaints))


def _read_quota(quota: object, vendors: Catalogue, complaints: list[str]) -> Iterator[tuple[str, str, int]]:
    try:
        document = msgspec.convert(quota, _Document)
    except msgspec.ValidationError as error:
        complaints.append(f"resource quota: {explain_mismatch(error, quota)}")
        return
    head = document.metadata or _Metadata()
    where = f"resource quota {head.namespace or 'default'}/{head.name or '(unnamed)'}"
    spec = document.spec or _Spec()
    hard = None if spec.scopes or spec.scope_selector else spec.hard
    for key, value in sorted((hard or {}).items()):
        prefix = next((prefix for prefix in _PREFIXES if key.startswith(prefix)), None)
        use = vendors.by_resource(key.removeprefix(prefix)) if prefix else None
        if use is None or use.role not in _FIELDS:
            continue
        try:
            limit = _read_limit(use.vendor, use.role, value, f"{where}: {key}")
        except InvalidInput as error:
            complaints.append(f"{error}; until then it allows nothing")
            limit = 0
        yield use.vendor.name, _FIELDS[use.role], limit


def _read_limit(vendor: Vendor, role: ResourceRole, value: object, where: str) -> int:
    if role == "memory" and vendor.memory_takes_bytes and _has_unit(value):
        return _counted(value, where, 'a quantity such as "64Gi"', as_bytes=True) // _MIB
    if role == "memory":
        unit = vendor.memory_unit_mib
        of_what = "MiB" if unit == 1 else f"{unit} MiB units"
        return _counted(value, where, f'a whole number of {of_what} such as "64000", without a unit') * unit
    whole = _counted(value, where, 'a whole number such as "8"')
    return whole if role == "count" else whole * 100 // vendor.cores_per_card


def _has_unit(value: object) -> bool:
    return isinstance(value, str) and any(character.isalpha() for character in value)


def _counted(value: object, where: str, expected: str, *, as_bytes: bool = False) -> int:
    """A binary unit is a size and not a count; the decimal ones are how the API server shortens large counts."""
    is_size = isinstance(value, str) and value.strip().endswith("i")
    try:
        if isinstance(value, str | int | float) and (as_bytes or not is_size):
            return bytes_of(value) if as_bytes else count_of(value)
    except InvalidQuantity:
        pass
    raise InvalidQuantity(f"{where} is {show(value)}, expected {expected}")
