"""Which id each card of a node has, and which of its cards are joined by fast links.

Claims name cards by id and ask for cards that talk fast. Most nodes of a fleet are wired alike, so each wiring is kept
once and a row has its number. Islands are numbered within their node, by their lowest id: a claim never spans nodes.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tessera.engine.arrays import Ints, Rows
from tessera.model.devices import Device

UNKNOWN_ISLAND = 0
LARGEST = 2**31 - 1


class Wiring(NamedTuple):
    """A row for each node and a column for each card."""

    ids: Ints
    islands: Ints
    bandwidths: Ints


class Wirings:
    """Every wiring seen so far. The first is that of a node without cards."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[tuple[int, ...], ...], int] = {((), (), ()): 0}
        self._stacked: Ints = np.zeros((0, 3, 0), np.int32)

    def number_of(self, devices: Sequence[Device]) -> int:
        ids = card_ids(devices)
        bandwidths = tuple(min(max(device.bandwidth_gbps, 0), LARGEST) for device in devices)
        wiring = ids, _island_numbers(devices, ids), bandwidths
        return self._numbers.setdefault(wiring, len(self._numbers))

    def of(self, numbers: Ints | Rows, width: int) -> Wiring:
        """The wirings with these numbers, as wide as the widest node."""
        if self._stacked.shape != (len(self._numbers), 3, width):
            self._stacked = np.zeros((len(self._numbers), 3, width), np.int32)
            for number, wiring in enumerate(self._numbers):
                self._stacked[number, :, : len(wiring[0])] = wiring
        found = self._stacked[numbers]
        return Wiring(found[:, 0], found[:, 1], found[:, 2])


def card_ids(devices: Sequence[Device]) -> tuple[int, ...]:
    """The id of each card: its index, or its place among its vendor's cards where their indexes do not tell them apart.

    Ids are told apart within a vendor only.
    """
    indexes: dict[str, list[int]] = {}
    for device in devices:
        indexes.setdefault(device.vendor, []).append(device.index)
    ids = {vendor: iter(given if _tell_apart(given) else range(len(given))) for vendor, given in indexes.items()}
    return tuple(next(ids[device.vendor]) for device in devices)


def _tell_apart(indexes: Sequence[int]) -> bool:
    return len(set(indexes)) == len(indexes) and all(0 <= index <= LARGEST for index in indexes)


def _island_numbers(devices: Sequence[Device], ids: Sequence[int]) -> tuple[int, ...]:
    by_id = sorted(zip(ids, (device.island for device in devices), strict=True))
    names = dict.fromkeys(island for _, island in by_id if island)
    numbers = {"": UNKNOWN_ISLAND} | {name: number for number, name in enumerate(names, UNKNOWN_ISLAND + 1)}
    return tuple(numbers[device.island] for device in devices)
