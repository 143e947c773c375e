"""One card of a node register, from and to the fields that peers give it.

The names are those of HAMi's JSON form; the text forms have the same fields without their names. HAMi omits zero values
when it writes JSON, so a card without `health` is an unhealthy one.
"""

from collections.abc import Mapping

from tessera.model.annotations.complaints import invalid
from tessera.model.annotations.limits import written_name, written_number, written_text
from tessera.model.annotations.records import COUNT, MIB, PERCENT, Record
from tessera.model.devices import DEFAULT_MODE, Device, MigPlacement, MigProfile

_ID = "the card's UUID"
_NO_NUMA = (-1, "-1")  # what sysfs says where a card belongs to no NUMA node


def read_card(card: Record, vendor: str) -> Device:
    return Device(
        uuid=read_uuid(card, "id"),
        index=card.whole("index", default=0),
        vendor=vendor,
        model=card.text("type", default=""),
        slots=card.whole("count", "slots", default=0),
        memory_mib=card.whole("devmem", "memory", MIB, default=0),
        cores_percent=card.whole("devcore", "cores", PERCENT, default=0),
        numa=0 if card.values.get("numa") in _NO_NUMA else card.whole("numa", default=0),
        healthy=card.flag("health", default=False),
        mode=card.text("mode", default="").strip() or DEFAULT_MODE,
        mig_profiles=tuple(read_profile(profile) for profile in card.records("migProfiles")),
        network_id=card.record("custominfo").whole("NetworkID", default=0),
    )


def read_uuid(card: Record, key: str) -> str:
    uuid = card.text(key, "id").strip()
    if not uuid:
        raise invalid(card.where, "id", uuid, _ID)
    return uuid


def write_card(device: Device, separators: str = "") -> dict[str, object]:
    """Every field under its name, in HAMi's order; refuses what a reader would get back differently."""
    owner = f"card {device.uuid}"
    return {
        "id": written_name(device.uuid, owner, "id", separators),
        "index": written_number(device.index, owner, "index"),
        "count": written_number(device.slots, owner, "slots"),
        "devmem": written_number(device.memory_mib, owner, "memory"),
        "devcore": written_number(device.cores_percent, owner, "cores"),
        "type": written_text(device.model, owner, "type", separators),
        "numa": written_number(device.numa, owner, "numa"),
        "mode": written_name(device.mode, owner, "mode", separators),
        "migProfiles": [write_profile(profile, owner) for profile in device.mig_profiles],
        "health": device.healthy,
        "custominfo": omit_empty({"NetworkID": written_number(device.network_id, owner, "network")}),
    }


def omit_empty(fields: Mapping[str, object]) -> dict[str, object]:
    """Go's omitempty: zero, false, empty texts, lists and objects are not written."""
    return {name: value for name, value in fields.items() if value}


def read_profile(profile: Record) -> MigProfile:
    return MigProfile(
        name=profile.text("name", default=""),
        memory_mib=profile.whole("memoryMB", "memory", MIB, default=0),
        cores_percent=profile.whole("core", "cores", PERCENT, default=0),
        slices=profile.whole("sliceCount", "slices", COUNT, default=0),
        placements=tuple(read_placement(placement) for placement in profile.records("placements")),
    )


def write_profile(profile: MigProfile, owner: str) -> dict[str, object]:
    return {
        "name": profile.name,
        "memoryMB": written_number(profile.memory_mib, owner, "profile memory"),
        "core": written_number(profile.cores_percent, owner, "profile cores"),
        "sliceCount": written_number(profile.slices, owner, "profile slices"),
        "placements": [write_placement(placement, owner) for placement in profile.placements],
    }


def read_placement(placement: Record) -> MigPlacement:
    return MigPlacement(placement.whole("start", default=0), placement.whole("size", default=0))


def write_placement(placement: MigPlacement, owner: str) -> dict[str, int]:
    return {
        "start": written_number(placement.start, owner, "placement start"),
        "size": written_number(placement.size, owner, "placement size"),
    }
