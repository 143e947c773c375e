"""What was decided, for people and simple readers: the scheduling result and the names of the cards given.

Cards are named by their index on the node, which is what `nvidia-smi` shows.
"""

from collections.abc import Mapping

import msgspec

from tessera.errors import InvalidAnnotation
from tessera.model.allocations import Allocation, CardShare
from tessera.model.annotations.complaints import invalid
from tessera.model.annotations.limits import written_name, written_number
from tessera.model.annotations.records import MIB, read_json, record_of, whole_number, write_json

_BETWEEN = "-gpu-"


class ResultCard(msgspec.Struct, frozen=True):
    id: str
    memory_mib: int


class SchedulingResult(msgspec.Struct, frozen=True):
    node: str
    cards: tuple[ResultCard, ...] = ()


class CardName(msgspec.Struct, frozen=True):
    """`vendor` is the common word in lower case."""

    vendor: str
    index: int


def encode_result(allocation: Allocation, indexes: Mapping[str, int]) -> str:
    """One entry per share: a card that two containers use stands there twice."""
    cards = [
        {"id": str(index_of(share, indexes)), "memory": str(written_number(share.memory_mib, share.uuid, "memory"))}
        for share in allocation.shares
    ]
    return write_json({"node": allocation.node, "devices": cards}, "scheduling result")


def decode_result(text: str, where: str) -> SchedulingResult:
    result = record_of(read_json(text, where), where)
    cards = (
        ResultCard(card.text("id"), card.whole("memory", "memory", MIB)) for card in result.records("devices", "card")
    )
    return SchedulingResult(result.text("node"), tuple(cards))


def encode_card_names(allocation: Allocation, indexes: Mapping[str, int]) -> str:
    """Each card once: nvidia-gpu-0,nvidia-gpu-1."""
    names = (f"{_vendor_of(share)}{_BETWEEN}{index_of(share, indexes)}" for share in allocation.shares)
    return ",".join(dict.fromkeys(names))


def decode_card_names(text: str, where: str) -> tuple[CardName, ...]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    return tuple(_decode_card_name(name, f"{where} card {position}") for position, name in enumerate(names))


def _decode_card_name(name: str, where: str) -> CardName:
    vendor, between, index = name.rpartition(_BETWEEN)
    if not between or not vendor:
        raise invalid(where, "name", name, 'vendor and index such as "nvidia-gpu-0"')
    return CardName(vendor.lower(), whole_number(index, where, "index"))


def _vendor_of(share: CardShare) -> str:
    return written_name(share.vendor, f"card {share.uuid}", "type", ",").lower()


def index_of(share: CardShare, indexes: Mapping[str, int]) -> int:
    index = indexes.get(share.uuid)
    if index is None:
        raise InvalidAnnotation(f"card {share.uuid} has no index, expected one for every card of the allocation")
    return written_number(index, f"card {share.uuid}", "index")
