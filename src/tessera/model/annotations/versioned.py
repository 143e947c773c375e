"""Our own annotations, for what the old forms cannot say.

A node's inventory tells islands, modes, networks and hardware profiles of all its vendors' cards; a pod's allocation
names its containers. Both carry a version: fields may be added within one, a change of meaning takes the next.
"""

from collections.abc import Iterable, Sequence

from tessera.errors import InvalidAnnotation
from tessera.model.allocations import Allocation, CardShare, ContainerShares
from tessera.model.annotations.cards import read_profile, read_uuid, write_card
from tessera.model.annotations.complaints import shorten
from tessera.model.annotations.limits import written_name, written_number, written_once, written_text
from tessera.model.annotations.records import MIB, PERCENT, Record, read_json, record_of, write_json
from tessera.model.devices import DEFAULT_MODE, Device

VERSION = 1


def encode_inventory(devices: Sequence[Device]) -> str:
    written_once((device.uuid for device in devices), "card")
    return write_json({"v": VERSION, "devices": [_encode_device(device) for device in devices]}, "inventory")


def decode_inventory(text: str, where: str) -> tuple[Device, ...]:
    devices = tuple(_decode_device(card) for card in _read_version(text, where).records("devices", "card"))
    try:
        written_once((device.uuid for device in devices), "card")
    except InvalidAnnotation as error:
        raise InvalidAnnotation(f"{where}: {error}") from None
    return devices


def encode_allocation(allocation: Allocation, container_names: Sequence[str]) -> str:
    if len(container_names) != len(allocation.containers):
        raise InvalidAnnotation(
            f"{len(container_names)} names are given for {len(allocation.containers)} containers, expected as many"
        )
    named = zip(container_names, allocation.containers, strict=True)
    containers = [{"name": name, "cards": [_encode_share(share) for share in shares]} for name, shares in named]
    return write_json({"v": VERSION, "node": allocation.node, "containers": containers}, "allocation")


def decode_allocation(text: str, where: str) -> tuple[Allocation, tuple[str, ...]]:
    """The allocation and the names of its containers."""
    record = _read_version(text, where)
    containers = record.records("containers", "container")
    shares = tuple(_decode_shares(container.records("cards", "card")) for container in containers)
    return Allocation(record.text("node"), shares), tuple(container.text("name") for container in containers)


def _read_version(text: str, where: str) -> Record:
    record = record_of(read_json(text, where), where)
    if record.values.get("v") != VERSION:
        raise InvalidAnnotation(
            f'{where} has version "{shorten(record.values.get("v"))}", expected {VERSION}; '
            "it was written by another release, upgrade the older side"
        )
    return record


def _encode_device(device: Device) -> dict[str, object]:
    owner = f"card {device.uuid}"
    fields = write_card(device)
    return {
        "id": fields["id"],
        "index": fields["index"],
        "vendor": written_name(device.vendor, owner, "vendor"),
        "model": device.model,
        "slots": fields["count"],
        "memory": fields["devmem"],
        "cores": fields["devcore"],
        "numa": fields["numa"],
        "island": written_text(device.island, owner, "island"),
        "bandwidth": written_number(device.bandwidth_gbps, owner, "bandwidth"),
        "healthy": device.healthy,
        "mode": fields["mode"],
        "network_id": device.network_id,
        "profiles": fields["migProfiles"],
    }


def _decode_device(card: Record) -> Device:
    return Device(
        uuid=read_uuid(card, "id"),
        index=card.whole("index"),
        vendor=card.text("vendor"),
        model=card.text("model"),
        slots=card.whole("slots"),
        memory_mib=card.whole("memory", expected=MIB),
        cores_percent=card.whole("cores", expected=PERCENT),
        numa=card.whole("numa", default=0),
        island=card.text("island", default=""),
        bandwidth_gbps=card.whole("bandwidth", default=0),
        healthy=card.flag("healthy"),
        mode=card.text("mode", default=DEFAULT_MODE),
        network_id=card.whole("network_id", default=0),
        mig_profiles=tuple(read_profile(profile) for profile in card.records("profiles", "profile")),
    )


def _encode_share(share: CardShare) -> dict[str, object]:
    owner = f"card {share.uuid}"
    return {
        "id": written_name(share.uuid, owner, "id"),
        "vendor": share.vendor,
        "memory": written_number(share.memory_mib, owner, "memory"),
        "cores": written_number(share.cores_percent, owner, "cores"),
    }


def _decode_shares(cards: Iterable[Record]) -> ContainerShares:
    return tuple(
        CardShare(
            uuid=read_uuid(card, "id"),
            vendor=card.text("vendor"),
            memory_mib=card.whole("memory", expected=MIB),
            cores_percent=card.whole("cores", expected=PERCENT),
        )
        for card in cards
    )
