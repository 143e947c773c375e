"""A cluster and the pods that may arrive, whatever they were read from."""

import msgspec

from tessera.model.devices import Node
from tessera.model.requests import PodRequest

CARD_MILLI = 1000


class Arrival(msgspec.Struct, frozen=True):
    """A pod and its demand in thousandths of a card."""

    name: str
    request: PodRequest
    milli: int


class Scenario(msgspec.Struct, frozen=True):
    title: str
    nodes: tuple[Node, ...]
    pods: tuple[Arrival, ...]

    @property
    def capacity_milli(self) -> int:
        return sum(len(node.devices) for node in self.nodes) * CARD_MILLI
