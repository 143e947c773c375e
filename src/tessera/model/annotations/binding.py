"""All that a bind writes on a pod, and how an allocation is read back from it.

One write carries node and devices. The set for a container with eight cards stays within 2,048 bytes, keys included.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from hashlib import sha256

import msgspec

from tessera.errors import InvalidAnnotation
from tessera.model.allocations import Allocation, CardShare, ContainerShares
from tessera.model.annotations import keys
from tessera.model.annotations.allocations import (
    decode_containers,
    decode_seed_devices,
    encode_containers,
    encode_seed_devices,
)
from tessera.model.annotations.claims import claim_marks, read_claimed
from tessera.model.annotations.complaints import missing, shorten
from tessera.model.annotations.records import whole_number
from tessera.model.annotations.results import encode_card_names, encode_result

_LONGEST_LABEL = 63
_DIGEST = 10
_LATEST = 2**53 - 1


class BindPhase(StrEnum):
    ALLOCATING = "allocating"
    SUCCESS = "success"
    FAILED = "failed"


class AllocationKeys(msgspec.Struct, frozen=True):
    """Where a vendor's device lists stand; `to_allocate` is empty for a vendor that has none.

    `aliases` are where others write them (Volcano), read in their order when ours say nothing.
    """

    to_allocate: str
    allocated: str
    aliases: tuple[str, ...] = ()


class BindOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a bind writes beside the default set: HAMi's own components wait for a phase and its time."""

    bind_phase: str = ""
    bind_time: bool = False
    label: bool = True


class BindState(msgspec.Struct, frozen=True, kw_only=True):
    """How far a bind has come; None and empty where the pod does not say."""

    phase: BindPhase | None = None
    decided_at: int | None = None
    bound_at: int | None = None


DEFAULT_OPTIONS = BindOptions()
NO_POSITIONS: Mapping[str, Sequence[int]] = {}


def bind_marks(
    allocation: Allocation,
    indexes: Mapping[str, int],
    keys_by_vendor: Mapping[str, AllocationKeys],
    unix_seconds: int,
    options: BindOptions = DEFAULT_OPTIONS,
) -> tuple[dict[str, str], dict[str, str]]:
    """The annotations and labels of a pod that gets these cards. `indexes` gives each card's index on its node."""
    annotations = {
        keys.VGPU_NODE: allocation.node,
        keys.VGPU_TIME: str(unix_seconds),
        keys.DEVICES_TO_ALLOCATE: encode_seed_devices(allocation),
        keys.SCHEDULING_RESULT: encode_result(allocation, indexes),
        keys.DEVICE_ALLOCATED: encode_card_names(allocation, indexes),
    }
    for vendor in dict.fromkeys(share.vendor for shares in allocation.containers for share in shares):
        annotations |= _vendor_lists(allocation, vendor, keys_by_vendor)
    if allocation.claimed:
        annotations |= claim_marks(allocation, indexes)
    if options.bind_phase:
        annotations[keys.BIND_PHASE] = options.bind_phase
    if options.bind_time:
        annotations[keys.BIND_TIME] = str(unix_seconds)
    return annotations, {keys.VGPU_NODE: node_label(allocation.node)} if options.label else {}


def read_allocation(
    annotations: Mapping[str, str],
    keys_by_vendor: Mapping[str, AllocationKeys],
    container_count: int,
    where: str,
    *,
    asking: Mapping[str, Sequence[int]] = NO_POSITIONS,
    node: str = "",
) -> Allocation | None:
    """What a pod holds by its annotations, or None if they give it no card.

    Of each vendor the list of what was allocated counts, else that of what is to be; failing all vendors, the flat
    list, when one container alone asked. `asking` are the positions of the containers that asked, by vendor.
    `node` is where the pod runs, if it does; otherwise the annotations say it.
    """
    by_vendor = [
        _read_vendor(annotations, vendor, keys_by_vendor, container_count, where, asking.get(vendor, ()))
        for vendor in _one_per_key(keys_by_vendor)
    ]
    containers = tuple(tuple(share for shares in slot for share in shares) for slot in zip(*by_vendor, strict=True))
    claimed = read_claimed(annotations, where)
    if not any(containers) and not claimed:
        containers = _read_flat(annotations, container_count, where, asking)
    if not any(containers) and not claimed:
        return None
    return Allocation(node or _node_of(annotations, where), containers, claimed)


def read_bind_state(annotations: Mapping[str, str], where: str) -> BindState:
    """Phase and times as HAMi's components or Volcano's note them, the times in Unix seconds."""
    phase, phase_key = _first_said(annotations, keys.BIND_PHASE, keys.VOLCANO_BIND_PHASE)
    if phase and phase not in tuple(BindPhase):
        raise InvalidAnnotation(f'{where}: {phase_key} is "{shorten(phase)}", expected {", ".join(BindPhase)}')
    return BindState(
        phase=BindPhase(phase) if phase else None,
        decided_at=_read_seconds(annotations, where, keys.VGPU_TIME, keys.VOLCANO_TIME),
        bound_at=_read_seconds(annotations, where, keys.BIND_TIME, keys.VOLCANO_BIND_TIME),
    )


def node_label(node: str) -> str:
    """A node's name as a label value, which has 63 characters at most; a longer one ends in a digest of the whole."""
    if len(node) <= _LONGEST_LABEL:
        return node
    return f"{node[: _LONGEST_LABEL - _DIGEST - 1]}-{sha256(node.encode()).hexdigest()[:_DIGEST]}"


def _vendor_lists(allocation: Allocation, vendor: str, keys_by_vendor: Mapping[str, AllocationKeys]) -> dict[str, str]:
    names = keys_by_vendor.get(vendor)
    if names is None:
        raise InvalidAnnotation(
            f"no annotation keys are known for cards of type {vendor}, expected them in the catalogue"
        )
    text = encode_containers(allocation.of_vendor(vendor).containers)
    return {key: text for key in (names.to_allocate, names.allocated) if key}


def _read_vendor(
    annotations: Mapping[str, str],
    vendor: str,
    keys_by_vendor: Mapping[str, AllocationKeys],
    container_count: int,
    where: str,
    asking: Sequence[int],
) -> tuple[ContainerShares, ...]:
    names = keys_by_vendor[vendor]
    for key in (names.allocated, names.to_allocate, *names.aliases):
        containers = decode_containers(annotations.get(key, ""), f"{where}: {key}", container_count, asking)
        if any(containers):
            return tuple(tuple(_of_known_vendor(shares, vendor, keys_by_vendor)) for shares in containers)
    return ((),) * container_count


def _of_known_vendor(
    shares: ContainerShares, vendor: str, keys_by_vendor: Mapping[str, AllocationKeys]
) -> Iterable[CardShare]:
    """A type that is no vendor's common word (old releases wrote models) means the vendor whose key this is."""
    for share in shares:
        yield share if share.vendor in keys_by_vendor else msgspec.structs.replace(share, vendor=vendor)


def _read_flat(
    annotations: Mapping[str, str], container_count: int, where: str, asking: Mapping[str, Sequence[int]]
) -> tuple[ContainerShares, ...]:
    text = annotations.get(keys.DEVICES_TO_ALLOCATE, "")
    positions = {position for of_vendor in asking.values() for position in of_vendor}
    shares = decode_seed_devices(text, f"{where}: {keys.DEVICES_TO_ALLOCATE}") if len(positions) == 1 else ()
    return tuple(shares if position in positions else () for position in range(container_count))


def _one_per_key(keys_by_vendor: Mapping[str, AllocationKeys]) -> list[str]:
    """Vendors that share their lists are read once."""
    return list({names.allocated: vendor for vendor, names in reversed(list(keys_by_vendor.items()))}.values())[::-1]


def _node_of(annotations: Mapping[str, str], where: str) -> str:
    node, _ = _first_said(annotations, keys.VGPU_NODE, keys.VOLCANO_NODE)
    if node:
        return node
    raise missing(where, keys.VGPU_NODE, "the name of the node whose cards it holds")


def _read_seconds(annotations: Mapping[str, str], where: str, *names: str) -> int | None:
    text, key = _first_said(annotations, *names)
    return whole_number(text, where, key, "seconds since 1970", _LATEST) if text else None


def _first_said(annotations: Mapping[str, str], *names: str) -> tuple[str, str]:
    """The first of these annotations that says something, and its key."""
    said = ((annotations.get(key, "").strip(), key) for key in names)
    return next(((text, key) for text, key in said if text), ("", ""))
