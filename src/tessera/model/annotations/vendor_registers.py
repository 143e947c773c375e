"""Node registers that vendors' own plugins write: MetaX shared GPUs and Enflame's partitions (DRS).

Both name fewer things than HAMi does. MetaX has HAMi's fields under other names; Enflame names neither cards nor their
memory, so these follow from the node's name and from the profiles into which its cards can be cut.
"""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from tessera.errors import InvalidAnnotation
from tessera.model.annotations.cards import omit_empty, read_card, write_card
from tessera.model.annotations.complaints import invalid, shorten
from tessera.model.annotations.records import Record
from tessera.model.devices import Device, MigProfile

_METAX_NAMES = {
    "uuid": "id",
    "model": "type",
    "totalDevCount": "count",
    "totalCompute": "devcore",
    "totalVRam": "devmem",
    "numa": "numa",
    "healthy": "health",
}
_PROFILE = re.compile(r"(?P<slices>[0-9]{1,4})g\.(?P<memory_gib>[0-9]{1,6})gb")
_MIB_PER_GIB = 1024


def read_metax_card(card: Record, vendor: str, position: int) -> Device:
    values = {name: card.values.get(theirs) for theirs, name in _METAX_NAMES.items()}
    device = read_card(Record({**values, "index": position}, card.where), vendor)
    zone = card.whole("linkZone", default=0)
    return replace(device, island=str(zone) if zone else "")


def write_metax_card(device: Device) -> dict[str, object]:
    fields = write_card(device)
    if device.island and (device.island != device.island.lstrip("0") or not re.fullmatch(r"[0-9]{1,9}", device.island)):
        raise invalid(f"card {device.uuid}", "island", device.island, 'the number of a link zone such as "1"')
    written = {theirs: fields[name] for theirs, name in _METAX_NAMES.items()}
    return omit_empty({**written, "linkZone": int(device.island or 0)})


def read_enflame_card(card: Record, vendor: str, node: str, profiles: tuple[MigProfile, ...], position: int) -> Device:
    index = card.whole("index", default=position)
    return Device(
        uuid=_enflame_uuid(node, index),
        index=index,
        vendor=vendor,
        model=vendor,
        slots=card.whole("capacity", "slots"),
        memory_mib=max((profile.memory_mib for profile in profiles), default=0),
        mig_profiles=profiles,
    )


def read_enflame_profiles(register: Record) -> tuple[MigProfile, ...]:
    """The profiles in the order of their ids; names of another form are left out."""
    profiles = register.record("profiles")
    ids = {name: profiles.text(name, f"id of {shorten(name)}", default="") for name in profiles.values}
    in_order = sorted(ids, key=lambda name: (len(ids[name]), ids[name], name))
    sizes = {name: match for name in in_order if (match := _PROFILE.fullmatch(name))}
    whole_card = max((int(match["slices"]) for match in sizes.values()), default=0) or 1
    return tuple(
        MigProfile(
            name=name,
            memory_mib=int(match["memory_gib"]) * _MIB_PER_GIB,
            cores_percent=int(match["slices"]) * 100 // whole_card,
            slices=int(match["slices"]),
        )
        for name, match in sizes.items()
    )


def write_enflame_register(devices: Sequence[Device], node: str) -> dict[str, object]:
    """One set of profiles for all cards; refuses a card that would read back differently."""
    profiles = devices[0].mig_profiles if devices else ()
    register: dict[str, object] = {
        "devices": [{"index": str(card.index), "minor": str(card.index), "capacity": card.slots} for card in devices],
        "profiles": {profile.name: str(position) for position, profile in enumerate(profiles)},
    }
    read_profiles = read_enflame_profiles(Record(register, "enflame register"))
    for position, card in enumerate(devices):
        as_read = Record({"index": card.index, "capacity": card.slots}, f"card {card.uuid}")
        if read_enflame_card(as_read, card.vendor, node, read_profiles, position) != card:
            raise InvalidAnnotation(
                f"card {card.uuid} has something that an enflame register cannot say, expected a healthy card named "
                f"{_enflame_uuid(node, card.index)} with the memory of its largest profile"
            )
    return register


def is_metax(card: Record) -> bool:
    return "uuid" in card.values and "id" not in card.values


def _enflame_uuid(node: str, index: int) -> str:
    return f"{node}-enflame-drs-{index}"
