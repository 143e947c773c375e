"""A cluster and the pods that may arrive, whatever they were read from."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from tessera.errors import InvalidTrace
from tessera.model.devices import Node
from tessera.model.requests import PodRequest

CARD_MILLI = 1000


class Arrival(msgspec.Struct, frozen=True):
    """A pod and its demand in thousandths of a card."""

    name: str
    request: PodRequest
    milli: int


class Scenario(msgspec.Struct, frozen=True):
    """`notes` are sentences on what was read but cannot be used."""

    title: str
    nodes: tuple[Node, ...]
    pods: tuple[Arrival, ...]
    notes: tuple[str, ...] = ()

    @property
    def capacity_milli(self) -> int:
        return sum(len(node.devices) for node in self.nodes) * CARD_MILLI


def refuse_twins(file: Path, nodes: Sequence[Node]) -> None:
    seen: set[str] = set()
    for node in nodes:
        if node.name in seen:
            raise InvalidTrace(f'{file}: the node "{node.name}" is listed twice, expected each name once')
        seen.add(node.name)


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
