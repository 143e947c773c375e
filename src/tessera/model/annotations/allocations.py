"""Which cards the containers of a pod hold, as device lists.

A card is `UUID,Type,mem,cores:`, a container's cards are followed by `;` (HAMi), and a container without cards is an
empty slot, so that positions say which container. The flat list that the first client guide documents has no slots.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from tessera.errors import InvalidAnnotation
from tessera.model.allocations import Allocation, CardShare, ContainerShares
from tessera.model.annotations.complaints import invalid, shorten
from tessera.model.annotations.limits import written_name, written_number, written_text
from tessera.model.annotations.records import MIB, PERCENT, whole_number

_SEPARATORS = ",:;["
_NOBODY = ("", "", "0", "0")  # how old releases spelled an empty slot
_MIG_TOKEN = re.compile(r"(?P<uuid>[^\[\]]+)\[(?P<template>[^\[\]]*)-(?P<slot>[^\[\]-]*)\]")


class TakenContainer(msgspec.Struct, frozen=True):
    """The first container still to be served, and what the list says once it is."""

    position: int
    shares: ContainerShares
    rest: str


def encode_containers(containers: Iterable[ContainerShares]) -> str:
    return "".join(f"{_encode_shares(shares)};" for shares in containers)


def encode_seed_devices(allocation: Allocation) -> str:
    """All cards of a pod in one flat list, each closed by ":"."""
    return _encode_shares(allocation.shares)


def decode_seed_devices(text: str, where: str) -> tuple[CardShare, ...]:
    """All cards of a flat list; container separators are read over."""
    return tuple(share for container in decode_containers(text, where) for share in container)


def decode_containers(
    text: str, where: str, container_count: int | None = None, asking: Sequence[int] = ()
) -> tuple[ContainerShares, ...]:
    """The cards of each container, in order.

    Releases differ in how many empty slots they write. With `container_count` the list gets that length: slots without
    cards are added or dropped, never one with cards. `asking` are the positions of the containers that asked for these
    cards: where a short list has as many filled slots, these are theirs (HAMi 2.10.0 leaves out leading empty slots,
    2.8 and before those of init containers).
    """
    slots = text.split(";")
    if not slots[-1].strip():
        slots.pop()
    containers = tuple(_decode_shares(slot, f"{where} container {position}") for position, slot in enumerate(slots))
    return containers if container_count is None else _fit(containers, container_count, asking, where)


def take_container(text: str, where: str) -> TakenContainer | None:
    """Serve the first container that still waits, as an agent does when the kubelet allocates; None when all are."""
    slots = text.split(";")
    for position, slot in enumerate(slots):
        shares = _decode_shares(slot, f"{where} container {position}")
        if shares:
            rest = ";".join([*slots[:position], "", *slots[position + 1 :]])
            return TakenContainer(position, shares, rest)
    return None


def split_mig_token(token: str) -> tuple[str, str, str]:
    """UUID, template and slot of a card as HAMi 2.9 and before write it in MIG mode; the last two empty otherwise."""
    match = _MIG_TOKEN.fullmatch(token)
    return (match["uuid"].strip(), match["template"], match["slot"]) if match else (token, "", "")


def _encode_shares(shares: Iterable[CardShare]) -> str:
    return "".join(f"{_encode_share(share)}:" for share in shares)


def _encode_share(share: CardShare) -> str:
    owner = f"card {share.uuid}"
    return ",".join(
        (
            written_name(share.uuid, owner, "id", _SEPARATORS),
            written_text(share.vendor, owner, "type", _SEPARATORS),
            str(written_number(share.memory_mib, owner, "memory")),
            str(written_number(share.cores_percent, owner, "cores")),
        )
    )


def _decode_shares(slot: str, where: str) -> ContainerShares:
    """What has no comma is no card; HAMi skips it too."""
    cards = [tuple(field.strip() for field in card.split(",")) for card in slot.split(":") if "," in card]
    return tuple(
        _decode_share(fields, f"{where} card {position}") for position, fields in enumerate(cards) if fields != _NOBODY
    )


def _decode_share(fields: tuple[str, ...], where: str) -> CardShare:
    if len(fields) < 4:
        raise InvalidAnnotation(
            f'{where} is "{shorten(",".join(fields))}" with {len(fields)} fields, expected UUID, type, memory and cores'
        )
    uuid, _, _ = split_mig_token(fields[0])
    if not uuid:
        raise invalid(where, "id", fields[0], "the card's UUID")
    return CardShare(
        uuid=uuid,
        vendor=fields[1],
        memory_mib=whole_number(fields[2], where, "memory", MIB),
        cores_percent=whole_number(fields[3], where, "cores", PERCENT),
    )


def _fit(
    containers: tuple[ContainerShares, ...], count: int, asking: Sequence[int], where: str
) -> tuple[ContainerShares, ...]:
    filled = [shares for shares in containers if shares]
    if len(containers) < count and filled and len(filled) == len(asking):
        places = dict(zip(sorted(asking), filled, strict=True))
        return tuple(places.get(position, ()) for position in range(count))
    if any(containers[count:]):
        raise InvalidAnnotation(f"{where} gives cards to {len(containers)} containers, expected at most {count}")
    return (*containers[:count], *((),) * (count - len(containers)))
