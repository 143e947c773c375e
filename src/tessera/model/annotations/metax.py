"""What MetaX adds: how well groups of whole cards lie, and what users of shared ones want."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

import msgspec

from tessera.errors import InvalidAnnotation
from tessera.model.annotations.complaints import invalid, shorten
from tessera.model.annotations.records import read_json, record_of
from tessera.model.annotations.selectors import decode_flag

TOPOLOGY_LOSSES = "metax-tech.com/gpu.topology.losses"
TOPOLOGY_SCORES = "metax-tech.com/gpu.topology.scores"
QOS_POLICY = "metax-tech.com/sgpu-qos-policy"
TOPOLOGY_AWARE = "metax-tech.com/sgpu-topology-aware"
APP_CLASS = "metax-tech.com/sgpu-app-class"

WordT = TypeVar("WordT", bound=StrEnum)


class QosPolicy(StrEnum):
    BEST_EFFORT = "best-effort"
    FIXED_SHARE = "fixed-share"
    BURST_SHARE = "burst-share"


class AppClass(StrEnum):
    ONLINE = "online"
    OFFLINE = "offline"


class SharingWishes(msgspec.Struct, frozen=True, kw_only=True):
    """None where the pod does not say."""

    qos: QosPolicy | None = None
    app_class: AppClass | None = None
    topology_aware: bool = False


def decode_topology(text: str, where: str) -> dict[int, int]:
    """The loss or the score of a group, by how many cards it has."""
    if text.strip() in ("", "null"):
        return {}
    figures = record_of(read_json(text, where), where)
    return {_group_size(size, where): figures.whole(size, f"figure of {shorten(size)}") for size in figures.values}


def read_wishes(annotations: Mapping[str, str], where: str) -> SharingWishes:
    return SharingWishes(
        qos=_one_of(QosPolicy, annotations, QOS_POLICY, where),
        app_class=_one_of(AppClass, annotations, APP_CLASS, where),
        topology_aware=decode_flag(annotations.get(TOPOLOGY_AWARE, ""), f"{where}: {TOPOLOGY_AWARE}"),
    )


def _group_size(text: str, where: str) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdecimal() and 1 <= len(digits) <= 4 and int(digits)):
        raise invalid(where, "group", text, 'a number of cards such as "4"')
    return int(digits)


def _one_of(words: type[WordT], annotations: Mapping[str, str], key: str, where: str) -> WordT | None:
    text = annotations.get(key, "").strip()
    if not text:
        return None
    if text not in tuple(words):
        raise InvalidAnnotation(f'{where}: {key} is "{shorten(text)}", expected {", ".join(words)}')
    return words(text)
