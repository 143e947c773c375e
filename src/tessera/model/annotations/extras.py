"""The annotations that vendors' own plugins want beside the device lists.

Each vendor has a row of keys; each key a form, which says how it is written from a grant and what of it is read back.
A new vendor is a row, a new spelling a form.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tessera.model.allocations import Allocation, CardShare
from tessera.model.annotations.cards import omit_empty
from tessera.model.annotations.complaints import invalid
from tessera.model.annotations.records import (
    MIB,
    PERCENT,
    Record,
    list_of,
    read_json,
    record_of,
    records_of,
    truth,
    whole_number,
    write_json,
)
from tessera.model.annotations.results import index_of

_NS_PER_SECOND = 1_000_000_000
_LATEST_NS = 2**63 - 1
_MLU_UNIT_MIB = 256
_SLICES = re.compile(r"([0-9]{1,4})g\.")
_ASCEND = "Ascend"


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """What one vendor's plugin is told about one pod. `templates` are by container position, where cards are cut."""

    allocation: Allocation
    indexes: Mapping[str, int]
    unix_ns: int
    container_names: tuple[str, ...] = ()
    templates: Mapping[int, str] = {}
    template_ids: Mapping[str, str] = {}
    core_ids: tuple[int, ...] = ()  # AWS: the NeuronCores, when cores and not whole devices were asked for

    @property
    def cards(self) -> list[tuple[int, CardShare]]:
        """Each card with the position of its container."""
        return [(position, share) for position, shares in enumerate(self.allocation.containers) for share in shares]

    @property
    def card_indexes(self) -> list[int]:
        return [index_of(share, self.indexes) for _, share in self.cards]

    @property
    def first_slices(self) -> int:
        return slices_of(self.templates.get(self.cards[0][0], ""))


class NotedCard(msgspec.Struct, frozen=True, kw_only=True):
    """One card as a plugin's annotation has it; which fields are set depends on the vendor."""

    uuid: str = ""
    index: int = 0
    container: int = 0
    container_name: str = ""
    memory_mib: int = 0
    cores_percent: int = 0
    template: str = ""
    slices: int = 0


class Notes(msgspec.Struct, frozen=True, kw_only=True):
    """What a vendor's extra annotations say; None and empty where they say nothing."""

    node: str = ""
    assigned: bool | None = None
    unix_ns: int | None = None
    indexes: tuple[int, ...] = ()
    count: int | None = None
    resource: str = ""
    cards: tuple[NotedCard, ...] = ()


class Form(msgspec.Struct, frozen=True):
    """`field` is the field of `Notes` that `read` gives; `write` gives None where nothing is to be said."""

    field: str
    write: Callable[[Grant], str | None]
    read: Callable[[str, str], object]


def encode_extras(vendor: str, grant: Grant) -> dict[str, str]:
    """The extra annotations of a pod's cards of one vendor; none for a vendor without any."""
    of_vendor = msgspec.structs.replace(grant, allocation=grant.allocation.of_vendor(vendor))
    if not of_vendor.cards:
        return {}
    written = {key: form.write(of_vendor) for key, form in _forms_of(vendor).items()}
    return {key: text for key, text in written.items() if text is not None}


def decode_extras(vendor: str, annotations: Mapping[str, str], where: str) -> Notes:
    said: dict[str, Any] = {}
    for key, form in _forms_of(vendor).items():
        if key in annotations:
            said[form.field] = form.read(annotations[key], f"{where}: {key}")
    return Notes(**said)


def extra_keys(vendor: str) -> tuple[str, ...]:
    """Every annotation that `encode_extras` may write for the vendor."""
    return tuple(_forms_of(vendor))


def slices_of(template: str) -> int:
    """How many slices a profile such as "3g.20gb" takes; 1 where its name does not tell."""
    match = _SLICES.match(template)
    return int(match[1]) if match else 1


def _joined(numbers: list[int] | tuple[int, ...]) -> str:
    return ",".join(str(number) for number in numbers)


def _read_indexes(text: str, where: str) -> tuple[int, ...]:
    return tuple(whole_number(part, where, "index") for part in text.split(",") if part.strip())


def _read_nanoseconds(text: str, where: str) -> int:
    return whole_number(text, where, "time", "nanoseconds since 1970", _LATEST_NS)


def _read_seconds(text: str, where: str) -> int:
    return whole_number(text, where, "time", "seconds since 1970", _LATEST_NS // _NS_PER_SECOND) * _NS_PER_SECOND


def _write_ascend(grant: Grant) -> str:
    cards = (
        {
            "UUID": card.uuid,
            "temp": grant.templates.get(position, ""),
            "memory": card.memory_mib,
            "core": card.cores_percent,
        }
        for position, card in grant.cards
    )
    return write_json([omit_empty(card) for card in cards], "Ascend cards")


def _read_ascend(text: str, where: str) -> tuple[NotedCard, ...]:
    return tuple(
        NotedCard(uuid=card.text("UUID"), template=card.text("temp", default=""), **_amounts(card, "memory", "core"))
        for card in records_of(list_of(read_json(text, where), where), f"{where} card")
    )


def _write_metax(grant: Grant) -> str:
    containers = [
        [omit_empty({"uuid": c.uuid, "compute": c.cores_percent, "vRam": c.memory_mib}) for c in shares]
        for shares in grant.allocation.containers
    ]
    return write_json(containers, "MetaX cards")


def _read_metax(text: str, where: str) -> tuple[NotedCard, ...]:
    return tuple(
        NotedCard(uuid=card.text("uuid"), container=position, **_amounts(card, "vRam", "compute"))
        for position, cards in enumerate(list_of(read_json(text, where), where))
        for card in records_of(
            list_of(cards, f"{where} container {position}") if cards is not None else [],
            f"{where} container {position} card",
        )
    )


def _write_mlu_profile(grant: Grant) -> str:
    """The first card only: the plugin's own limit."""
    _, card = grant.cards[0]
    return f"{grant.card_indexes[0]}_{card.cores_percent}_{card.memory_mib // _MLU_UNIT_MIB}"


def _read_mlu_profile(text: str, where: str) -> tuple[NotedCard, ...]:
    parts = text.strip().split("_")
    if len(parts) != 3:
        raise invalid(where, "profile", text, 'index, cores and memory such as "0_30_16"')
    index, cores, units = (whole_number(part, where, "profile") for part in parts)
    return (NotedCard(index=index, cores_percent=cores, memory_mib=units * _MLU_UNIT_MIB),)


def _write_enflame(grant: Grant) -> str:
    """One entry per container that has cards, for the first of them."""
    assigned: dict[str, object] = {}
    for position, template in ((position, grant.templates.get(position, "")) for position, _ in grant.cards):
        profile = omit_empty({"profileID": grant.template_ids.get(template, ""), "profileName": template})
        assigned[_container_name(grant, position)] = {"allocated": False, "request": slices_of(template), **profile}
    return write_json(assigned, "Enflame containers")


def _read_enflame(text: str, where: str) -> tuple[NotedCard, ...]:
    containers = record_of(read_json(text, where), where)
    return tuple(
        NotedCard(
            container_name=name,
            slices=containers.record(name).whole("request", default=0),
            template=containers.record(name).text("profileName", default=""),
        )
        for name in containers.values
    )


def _container_name(grant: Grant, position: int) -> str:
    return grant.container_names[position] if position < len(grant.container_names) else str(position)


def _amounts(card: Record, memory: str, cores: str) -> dict[str, Any]:
    return {
        "memory_mib": card.whole(memory, "memory", MIB, default=0),
        "cores_percent": card.whole(cores, "cores", PERCENT, default=0),
    }


def _read_text(text: str, _where: str) -> str:
    return text.strip()


_NODE = Form("node", lambda grant: grant.allocation.node, _read_text)
_UNASSIGNED = Form("assigned", lambda _: "false", lambda text, where: truth(text, where, "value"))
_NANOSECONDS = Form("unix_ns", lambda grant: str(grant.unix_ns), _read_nanoseconds)
_SECONDS = Form("unix_ns", lambda grant: str(grant.unix_ns // _NS_PER_SECOND), _read_seconds)
_INDEXES = Form("indexes", lambda grant: _joined(grant.card_indexes), _read_indexes)
_FIRST_INDEX = Form("indexes", lambda grant: str(grant.card_indexes[0]), _read_indexes)
_CORE_IDS = Form("indexes", lambda grant: _joined(grant.core_ids or grant.card_indexes), _read_indexes)
_CORE_RESOURCE = Form("resource", lambda grant: "aws.amazon.com/neuroncore" if grant.core_ids else None, _read_text)
_SEVERAL = Form(
    "count",
    lambda grant: str(len(grant.cards)) if len(grant.cards) > 1 else None,
    lambda text, where: whole_number(text, where, "count"),
)
_SLICE_COUNT = Form(
    "count", lambda grant: str(grant.first_slices), lambda text, where: whole_number(text, where, "size")
)

_FORMS: dict[str, dict[str, Form]] = {
    "MLU": {
        "CAMBRICON_DSMLU_ASSIGNED": _UNASSIGNED,
        "CAMBRICON_DSMLU_PROFILE": Form("cards", _write_mlu_profile, _read_mlu_profile),
    },
    "Mthreads": {
        "mthreads.com/gpu-index": _INDEXES,
        "mthreads.com/predicate-node": _NODE,
        "mthreads.com/predicate-time": _NANOSECONDS,
        "mthreads.com/request-gpu-num": _SEVERAL,
    },
    "Metax-SGPU": {
        "metax-tech.com/gpu-devices-allocated": Form("cards", _write_metax, _read_metax),
        "metax-tech.com/predicate-time": _NANOSECONDS,
    },
    "kunlun": {"BAIDU_COM_DEVICE_IDX": _INDEXES},
    "AWSNeuron": {
        "AWS_NEURON_IDS": _CORE_IDS,
        "NEURON_ALLOC_TIME": _NANOSECONDS,
        "NEURON_ALLOCATED": _UNASSIGNED,
        "NEURON_RESOURCE_TYPE": _CORE_RESOURCE,
        "aws.amazon.com/predicate-node": _NODE,
    },
    "Enflame": {
        "enflame.com/gcu-assigned": _UNASSIGNED,
        "enflame.com/gcu-assigned-id": _FIRST_INDEX,
        "enflame.com/gcu-assigned-index": _FIRST_INDEX,
        "enflame.com/gcu-assigned-minor": _FIRST_INDEX,
        "enflame.com/gcu-assigned-time": _NANOSECONDS,
        "enflame.com/gcu-request-size": _SLICE_COUNT,
        "assigned-containers": Form("cards", _write_enflame, _read_enflame),
    },
}


def _forms_of(vendor: str) -> Mapping[str, Form]:
    if vendor.startswith(_ASCEND):
        return {f"huawei.com/{vendor}": Form("cards", _write_ascend, _read_ascend), "predicate-time": _SECONDS}
    return _FORMS.get(vendor, {})
