"""The cards of some rows in the order of their ids, and the runs of adjacent ids among them.

Columns have the order in which nodes report their cards. A claim speaks of ids, so its cards are lined up by id first
and put back into their columns at the end.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tessera.engine.arrays import Bools, Ints, Longs, Rows
from tessera.engine.wiring import LARGEST, UNKNOWN_ISLAND
from tessera.model.requests import ClaimRequest, TopologyMode

if TYPE_CHECKING:
    from tessera.engine.trial import Cards


class Lineup(NamedTuple):
    """`able` are the cards that will do. Those of one known island that are `fast` are joined as the claim wishes."""

    order: Rows
    ids: Ints
    able: Bools
    islands: Ints
    bandwidths: Ints
    fast: Bools
    numa: Ints

    def pools(self, claim: ClaimRequest) -> list[Bools]:
        """The sets of cards within one of which a claim has to stay: all that will do, or those of each NUMA node."""
        if claim.card.count > self.able.shape[1] or not self.able.any():
            return []
        if not claim.card.selector.same_numa or claim.card.count == 1:
            return [self.able]
        return [self.able & (self.numa == node) for node in np.unique(self.numa[self.able])]

    def islands_of(self, pool: Bools) -> list[Bools]:
        """The pool cut into its known islands."""
        return [pool & (self.islands == island) for island in self._numbers(pool) if island != UNKNOWN_ISLAND]

    def parts_of(self, pool: Bools) -> list[Bools]:
        """The same, and the cards of which no island is known."""
        return [pool & (self.islands == island) for island in self._numbers(pool)]

    def _numbers(self, pool: Bools) -> list[int]:
        return np.unique(self.islands[pool]).tolist()

    def in_columns(self, chosen: Bools) -> Bools:
        """What was chosen by place in the line, by column."""
        columns = np.zeros_like(chosen)
        np.put_along_axis(columns, self.order, chosen, axis=1)
        return columns


def line_up(claim: ClaimRequest, cards: "Cards", able: Bools) -> Lineup:
    wiring = cards.fleet.wirings(cards.rows)
    order = np.argsort(np.where(able, wiring.ids, LARGEST), axis=1, kind="stable")

    def lined(figures: Ints) -> Ints:
        return np.take_along_axis(figures, order, axis=1)

    bandwidths = lined(wiring.bandwidths)
    return Lineup(
        order=order,
        ids=lined(wiring.ids),
        able=np.take_along_axis(able, order, axis=1),
        islands=lined(wiring.islands),
        bandwidths=bandwidths,
        fast=bandwidths >= claim.min_bandwidth_gbps,
        numa=lined(cards.fleet.numa[cards.rows]),
    )


def are_among(ids: Ints, wanted: Sequence[int]) -> Bools:
    """Which ids are among those that somebody wrote down, be they as large as they like."""
    return np.isin(ids, [one for one in wanted if one <= LARGEST])


def topology_of(claim: ClaimRequest) -> TopologyMode:
    """One card alone meets any wish for fast links."""
    return claim.topology if claim.card.count > 1 else TopologyMode.IGNORE


class Runs(NamedTuple):
    """For each place in the line, how many cards its run has from there on, and as a whole. Zero outside of runs."""

    ahead: Longs
    length: Longs


def runs_in(chosen: Bools, ids: Ints) -> Runs:
    """Cards with adjacent ids stand side by side, as no other card has an id between them."""
    places: Longs = np.arange(chosen.shape[1], dtype=np.int64)
    joined = np.zeros_like(chosen)
    joined[:, 1:] = chosen[:, 1:] & chosen[:, :-1] & (ids[:, 1:] - ids[:, :-1] == 1)
    first = np.maximum.accumulate(np.where(joined, 0, places), axis=1)
    is_last = np.ones_like(chosen)
    is_last[:, :-1] = ~joined[:, 1:]
    last = np.minimum.accumulate(np.where(is_last, places, len(places))[:, ::-1], axis=1)[:, ::-1]
    return Runs((last - places + 1) * chosen, (last - first + 1) * chosen)
