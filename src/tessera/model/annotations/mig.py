"""Which hardware slices a pod holds: HAMi 2.10's allocations of MIG instances.

The scheduler writes which slice; the agent adds the three identities of the instance, all at once, when it exists.
"""

from collections.abc import Iterable

import msgspec

from tessera.errors import InvalidAnnotation
from tessera.model.annotations.cards import read_placement, write_placement
from tessera.model.annotations.limits import written_name, written_number
from tessera.model.annotations.records import Record, list_of, read_json, records_of, write_json
from tessera.model.devices import MigPlacement


class MigInstance(msgspec.Struct, frozen=True):
    uuid: str
    gpu_instance_id: int
    compute_instance_id: int


class MigAllocation(msgspec.Struct, frozen=True, kw_only=True):
    """`device` counts the cards of its container; `instance` is None until the agent has made it."""

    container: int
    device: int
    gpu_uuid: str
    profile: str
    placement: MigPlacement
    instance: MigInstance | None = None


_INSTANCE_FIELDS = ("migUUID", "gpuInstanceID", "computeInstanceID")


def decode_mig_allocations(text: str, where: str) -> tuple[MigAllocation, ...]:
    if text.strip() in ("", "null"):
        return ()
    slices = records_of(list_of(read_json(text, where), where), f"{where} slice")
    return tuple(_decode_slice(one) for one in slices)


def encode_mig_allocations(allocations: Iterable[MigAllocation]) -> str:
    return write_json([_encode_slice(allocation) for allocation in allocations], "MIG allocations")


def _decode_slice(record: Record) -> MigAllocation:
    return MigAllocation(
        container=record.whole("containerIndex", default=0),
        device=record.whole("deviceIndex", default=0),
        gpu_uuid=record.text("gpuUUID"),
        profile=record.text("profile"),
        placement=read_placement(record.record("placement")),
        instance=_decode_instance(record),
    )


def _decode_instance(record: Record) -> MigInstance | None:
    present = [name for name in _INSTANCE_FIELDS if record.values.get(name) not in (None, "")]
    if not present:
        return None
    if len(present) < len(_INSTANCE_FIELDS):
        raise InvalidAnnotation(
            f"{record.where} has only {' and '.join(present)}, expected {', '.join(_INSTANCE_FIELDS)}"
        )
    return MigInstance(record.text("migUUID"), record.whole("gpuInstanceID"), record.whole("computeInstanceID"))


def _encode_slice(allocation: MigAllocation) -> dict[str, object]:
    owner = f"MIG slice of {allocation.gpu_uuid}"
    written: dict[str, object] = {
        "containerIndex": written_number(allocation.container, owner, "container"),
        "deviceIndex": written_number(allocation.device, owner, "device"),
        "gpuUUID": written_name(allocation.gpu_uuid, owner, "card"),
        "profile": written_name(allocation.profile, owner, "profile"),
        "placement": write_placement(allocation.placement, owner),
    }
    if allocation.instance is None:
        return written
    identities = (
        written_name(allocation.instance.uuid, owner, "instance"),
        written_number(allocation.instance.gpu_instance_id, owner, "GPU instance"),
        written_number(allocation.instance.compute_instance_id, owner, "compute instance"),
    )
    return written | dict(zip(_INSTANCE_FIELDS, identities, strict=True))
