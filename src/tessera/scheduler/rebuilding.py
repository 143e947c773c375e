"""A ledger made anew from what the API shows, and where another does not agree with it. Pure.

What is promised and not yet in the API counts for neither side: reservations, pods that drain, and pods whose cards
stay taken although their annotations no longer name them.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from tessera.engine.ledger import HOST_CEILING, Holding, Ledger, State
from tessera.errors import InvalidInput
from tessera.kube.pods import Pod
from tessera.scheduler.nodes import CachedNode
from tessera.scheduler.reading import Reader, put_pod

HOST = "host"
Figures = tuple[int, int, int]
"""Of a card what is free: slots, MiB, percent of cores. Of the host: milli CPUs, bytes, places for pods."""


class Difference(NamedTuple):
    """`card` is a UUID, or `host`. None, where one of the two does not know the card."""

    node: str
    card: str
    ours: Figures | None
    theirs: Figures | None


class Rebuilt:
    """What the API shows, as a ledger. `unread` are the UIDs of pods that are there and do not decode."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.ledger = Ledger()
        self.without_cards: set[str] = set()
        self.unread: set[str] = set()

    def put_nodes(self, nodes: Iterable[CachedNode]) -> None:
        for node in nodes:
            with suppress(InvalidInput):
                self._reader.put_node(self.ledger, node)

    def put_pods(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            bound = self._reader.bound_pod(pod)
            if bound is not None:
                put_pod(self.ledger, bound)
                if bound.allocation is None:
                    self.without_cards.add(bound.ref.uid)


def compare_node(ours: Ledger, rebuilt: Rebuilt, node: str) -> list[Difference]:
    """Where the two do not agree about one node."""
    mine, theirs = _settled_figures(ours, node, rebuilt), _figures(rebuilt.ledger, node)
    return [
        Difference(node, card, mine.get(card), theirs.get(card))
        for card in sorted({*mine, *theirs})
        if mine.get(card) != theirs.get(card)
    ]


def _figures(ledger: Ledger, node: str) -> dict[str, Figures]:
    fleet = ledger.fleet
    row = fleet.row_of.get(node)
    if row is None:
        return {}
    columns = (fleet.free_slots[row].tolist(), fleet.free_memory[row].tolist(), fleet.free_cores[row].tolist())
    cards: dict[str, Figures] = dict(zip(fleet.uuids[row], zip(*columns, strict=True), strict=False))
    host = (int(fleet.cpu_free[row]), int(fleet.memory_free[row]), int(fleet.pods_free[row]))
    return {HOST: host, **cards}


def _settled_figures(ledger: Ledger, node: str, rebuilt: Rebuilt) -> dict[str, Figures]:
    """What would be free if only that were promised which the list can show."""
    figures = _figures(ledger, node)
    for holding in ledger.holdings_on(node) if figures else ():
        is_there = holding.ref.uid in rebuilt.without_cards
        is_settled = holding.state is State.BOUND and holding.ref.uid not in rebuilt.unread
        if is_there or not is_settled:
            for card, charge in holding.charges().items():
                if card in figures:
                    figures[card] = _plus(figures[card], charge)
        if not is_there and not is_settled:
            figures[HOST] = _plus(figures[HOST], _host_charge(holding))
    return figures


def _host_charge(holding: Holding) -> Figures:
    host = holding.request.host
    return min(host.cpu_milli, HOST_CEILING), min(host.memory_bytes, HOST_CEILING), 1


def _plus(one: Figures, other: Figures) -> Figures:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]
