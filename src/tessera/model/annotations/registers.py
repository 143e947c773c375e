"""Node registers: the cards of a node, as its agent reports them.

The form is found out from the text. A card that cannot be read never hides the others of its node: `read_register`
returns what is good and says what is not; `decode_register` refuses at the first complaint.

What a form has no field for is not written (index and mode in the seven-field form, islands nearly everywhere: see
`versioned`); what it has a field for is written exactly, or refused.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Literal, cast

import msgspec
from msgspec.structs import replace

from tessera.errors import InvalidAnnotation
from tessera.model.annotations.cards import omit_empty, read_card, write_card
from tessera.model.annotations.complaints import invalid, missing, shorten
from tessera.model.annotations.limits import written_once
from tessera.model.annotations.records import Record, list_of, read_json, record_of, write_json
from tessera.model.annotations.vendor_registers import (
    is_metax,
    read_enflame_card,
    read_enflame_profiles,
    read_metax_card,
    write_enflame_register,
    write_metax_card,
)
from tessera.model.devices import Device, MigProfile


class RegisterFormat(StrEnum):
    SEED = "seed"  # id,count,devmem,devcore,type,numa,health:
    HAMI = "hami"  # … ,index,mode: as HAMi 2.5 to 2.7
    JSON = "json"  # as HAMi 2.8 and later
    VOLCANO = "volcano"  # id,count,mem,type,health,mode:
    METAX = "metax"
    ENFLAME = "enflame"


CoresCount = Literal["percent", "units"]  # what a register's devcore counts


class RegisterReading(msgspec.Struct, frozen=True):
    devices: tuple[Device, ...] = ()
    complaints: tuple[str, ...] = ()


_SEED_FIELDS = ("id", "count", "devmem", "devcore", "type", "numa", "health")
_TEXT_FIELDS: dict[RegisterFormat, tuple[str, ...]] = {
    RegisterFormat.SEED: _SEED_FIELDS,
    RegisterFormat.HAMI: (*_SEED_FIELDS, "index", "mode"),
    RegisterFormat.VOLCANO: ("id", "count", "devmem", "type", "health", "mode"),
}
_FIELDS_BY_COUNT = {len(fields): fields for fields in _TEXT_FIELDS.values()}
_TEXT_SEPARATORS = ",:"
_UNTOLD = {"devcore": "100"}  # of a card whose form has no such field

NO_UNITS: Mapping[str, int] = {}
Outcome = Device | InvalidAnnotation
CardReader = Callable[[object, str, int], Device]


def decode_register(
    text: str, *, vendor: str, where: str, node: str = "", cores: CoresCount = "percent"
) -> tuple[Device, ...]:
    """All cards of a register, or the first thing that is wrong with it.

    `where` names object and key for sentences; `node` names the cards of a form that does not (Enflame). Where `cores`
    are units (AMD's compute units) a card has 100 percent of them, however many they are.
    """
    devices: list[Device] = []
    for outcome in _distinct(_outcomes(text, vendor, where, node), where):
        if isinstance(outcome, InvalidAnnotation):
            raise outcome
        devices.append(_in_percent(outcome, cores))
    return tuple(devices)


def read_register(
    text: str, *, vendor: str, where: str, node: str = "", cores: CoresCount = "percent"
) -> RegisterReading:
    """The readable cards of a register, and a sentence for each of the others."""
    outcomes = list(_distinct(_outcomes(text, vendor, where, node), where))
    return RegisterReading(
        tuple(_in_percent(outcome, cores) for outcome in outcomes if isinstance(outcome, Device)),
        tuple(str(outcome) for outcome in outcomes if isinstance(outcome, InvalidAnnotation)),
    )


def encode_register(
    devices: Sequence[Device],
    form: RegisterFormat = RegisterFormat.SEED,
    *,
    node: str = "",
    units: Mapping[str, int] = NO_UNITS,
) -> str:
    """`node` is needed for Enflame's form only, which names cards after it.

    `units` are the compute units of cards by UUID, for a vendor whose register counts those and not percent.
    """
    written_once((device.uuid for device in devices), "card")
    devices = [replace(card, cores_percent=units.get(card.uuid, card.cores_percent)) for card in devices]
    match form:
        case RegisterFormat.JSON:
            return write_json([omit_empty(write_card(device)) for device in devices], "register")
        case RegisterFormat.METAX:
            return write_json([write_metax_card(device) for device in devices], "register")
        case RegisterFormat.ENFLAME:
            return write_json(write_enflame_register(devices, node), "register")
        case _:
            return "".join(_text_of(device, _TEXT_FIELDS[form]) for device in devices)


def _in_percent(device: Device, cores: CoresCount) -> Device:
    return device if cores == "percent" else replace(device, cores_percent=100)


def _outcomes(text: str, vendor: str, where: str, node: str) -> Iterator[Outcome]:
    """Each card in its turn, or why it cannot be read."""
    try:
        entries, read = _open(text.strip(), vendor, where, node)
    except InvalidAnnotation as error:
        yield error
        return
    for position, entry in enumerate(entries):
        try:
            yield read(entry, f"{where} card {position}", position)
        except InvalidAnnotation as error:
            yield error


def _open(text: str, vendor: str, where: str, node: str) -> tuple[Sequence[object], CardReader]:
    """The entries of a register and what reads one of them."""
    if text in ("", "null"):  # Go writes an empty list as null
        return (), partial(_read_json_card, vendor)
    if not text.startswith(("[", "{")):
        return [entry for entry in text.split(":") if entry.strip()], partial(_read_text_card, vendor)
    register = read_json(text, where)
    if not isinstance(register, dict):
        return list_of(register, where), partial(_read_json_card, vendor)
    capacity = record_of(cast(object, register), where)
    if "devices" not in capacity.values:
        raise missing(where, "devices", "a list of cards")
    return capacity.items("devices"), partial(_read_capacity_card, vendor, node, read_enflame_profiles(capacity))


def _read_text_card(vendor: str, entry: object, where: str, position: int) -> Device:
    values = [value.strip() for value in str(entry).split(",")]
    fields = _FIELDS_BY_COUNT.get(len(values))
    if fields is None:
        raise InvalidAnnotation(f'{where} is "{shorten(entry)}" with {len(values)} fields, expected 7, 9 or 6')
    return read_card(Record({**_UNTOLD, "index": position, **dict(zip(fields, values, strict=True))}, where), vendor)


def _read_json_card(vendor: str, entry: object, where: str, position: int) -> Device:
    card = record_of(entry, where)
    return read_metax_card(card, vendor, position) if is_metax(card) else read_card(card, vendor)


def _read_capacity_card(
    vendor: str, node: str, profiles: tuple[MigProfile, ...], entry: object, where: str, position: int
) -> Device:
    return read_enflame_card(record_of(entry, where), vendor, node, profiles, position)


def _distinct(outcomes: Iterator[Outcome], where: str) -> Iterator[Outcome]:
    """A second card with the UUID of a first is a complaint: one of the two is not there."""
    seen: set[str] = set()
    for position, outcome in enumerate(outcomes):
        if isinstance(outcome, Device) and outcome.uuid in seen:
            yield invalid(f"{where} card {position}", "id", outcome.uuid, "a UUID that no other card of the node has")
            continue
        if isinstance(outcome, Device):
            seen.add(outcome.uuid)
        yield outcome


def _text_of(device: Device, fields: tuple[str, ...]) -> str:
    if device.uuid.startswith(("[", "{")):
        raise invalid(f"card {device.uuid}", "id", device.uuid, "a text that does not look like JSON")
    values = write_card(device, _TEXT_SEPARATORS)
    texts = (
        "true" if value is True else "false" if value is False else str(value) for value in map(values.get, fields)
    )
    return f"{','.join(texts)}:"
