"""Which cards of a node a claim gets, on many rows at once.

For each row a few sets of cards are tried: the best of each island, and the best whatever their islands. What the claim
insists on strikes sets out. Of the others the one wins that meets its wishes best; among equals the one that leaves
whole islands and long runs of ids free, and then the one with the lowest ids.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tessera.engine.arrays import Bools, Longs, Rows
from tessera.engine.lineup import Lineup, are_among, line_up, runs_in, topology_of
from tessera.engine.wiring import UNKNOWN_ISLAND
from tessera.model.requests import ClaimPolicy, ClaimRequest, TopologyMode

if TYPE_CHECKING:
    from tessera.engine.trial import Cards

_MOST = 511  # more than any node has cards; figures up to it are told apart in one number
_STEP = _MOST + 1


class Choice(NamedTuple):
    """The cards of each row, where `found`. The more `wishes`, the better the claim is served there."""

    picked: Bools
    found: Bools
    wishes: Longs


class _Set(NamedTuple):
    """Cards that could be given. `roomy` is how many there were to choose from, `broken` how long a run they break."""

    picked: Bools
    roomy: Longs
    broken: Longs


def pick_claimed(claim: ClaimRequest, cards: "Cards", able: Bools) -> Choice:
    """The best cards for the claim on each row, of those that will do."""
    lineup = line_up(claim, cards, _unpinned(claim, cards, able))
    liked = lineup.able & _liked(claim, cards, lineup)
    best = _Best(claim, lineup, liked)
    for pool in lineup.pools(claim):
        for candidate in _sets(claim, lineup, pool, liked):
            best.consider(candidate)
    return Choice(lineup.in_columns(best.picked), best.merit >= 0, best.wishes)


def _unpinned(claim: ClaimRequest, cards: "Cards", able: Bools) -> Bools:
    """Without the cards that the pod's pin rules out."""
    if not claim.pinned_ids:
        return able
    return able & are_among(cards.fleet.wirings(cards.rows).ids, claim.pinned_ids)


def _liked(claim: ClaimRequest, cards: "Cards", lineup: Lineup) -> Bools:
    """Cards to take first: those the claim names, or else those that others share already, if it shares too."""
    if claim.policy is ClaimPolicy.PREFER_IDS:
        return are_among(lineup.ids, claim.prefer_ids)
    if claim.is_exclusive:
        return np.zeros_like(lineup.able)
    return np.take_along_axis(~cards.idle(), lineup.order, axis=1)


def _sets(claim: ClaimRequest, lineup: Lineup, pool: Bools, liked: Bools) -> Iterator[_Set]:
    topology = topology_of(claim)
    if topology is not TopologyMode.IGNORE:
        for island in lineup.islands_of(pool & lineup.fast):
            yield _of_one_part(claim, lineup, island, liked)
    if topology is TopologyMode.REQUIRED:
        return
    if claim.policy is ClaimPolicy.SPREAD:
        yield _spread(claim, lineup, pool, liked)
        return
    for part in lineup.parts_of(pool):
        yield _of_one_part(claim, lineup, part, liked)
    if claim.policy is ClaimPolicy.CONTIGUOUS:
        yield _run(claim.card.count, lineup, pool, liked)._replace(roomy=np.full(len(pool), _MOST))
    else:
        yield _of_few_islands(claim.card.count, lineup, pool, liked)


def _of_one_part(claim: ClaimRequest, lineup: Lineup, part: Bools, liked: Bools) -> _Set:
    if claim.policy is ClaimPolicy.CONTIGUOUS:
        return _run(claim.card.count, lineup, part, liked)
    return _best_fit(np.full(len(part), claim.card.count), lineup, part, liked)


def _run(count: int, lineup: Lineup, part: Bools, liked: Bools) -> _Set:
    """Adjacent ids: with as many liked cards as can be, then in the shortest run that is long enough."""
    runs, width = runs_in(part, lineup.ids), part.shape[1]
    liked_before = np.cumsum(np.pad(part & liked, ((0, 0), (1, count - 1))), axis=1)
    within = liked_before[:, count:] - liked_before[:, :width]
    key = np.where(runs.ahead >= count, (_MOST - within) * _STEP + runs.length, _STEP * _STEP)
    start = key.argmin(axis=1)[:, None]
    found = np.take_along_axis(runs.ahead, start, axis=1) >= count
    length = np.take_along_axis(runs.length, start, axis=1)[:, 0]
    return _Set(found & _places(start, np.int64(count), width), np.count_nonzero(part, axis=1), length)


def _best_fit(count: Longs, lineup: Lineup, part: Bools, liked: Bools) -> _Set:
    """Liked cards first; then the shortest run that is long enough, or else the shortest runs."""
    wanted = part & liked
    plenty = (np.count_nonzero(wanted, axis=1) >= count)[:, None]
    taken, rest = wanted & ~plenty, np.where(plenty, wanted, part & ~liked)
    left = (count - np.count_nonzero(taken, axis=1))[:, None]
    runs = runs_in(rest, lineup.ids)
    start = np.where(rest & (runs.ahead >= left), runs.length, _MOST).argmin(axis=1)[:, None]
    fits = np.take_along_axis(rest & (runs.ahead >= left), start, axis=1)
    run = _places(start, left, part.shape[1])
    scattered = rest & (_ranks(np.where(rest, runs.length, _MOST)) < left)
    broken = np.where(fits, np.take_along_axis(runs.length, start, axis=1), _MOST)[:, 0]
    return _Set(taken | np.where(fits, run, scattered), np.count_nonzero(part, axis=1), broken)


def _of_few_islands(count: int, lineup: Lineup, pool: Bools, liked: Bools) -> _Set:
    """Liked cards first. The island that is just large enough; while none is, the largest as a whole."""
    picked = np.zeros_like(pool)
    for among in (pool & liked, pool & ~liked) if liked.any() else (pool,):
        left = np.minimum(count - np.count_nonzero(picked, axis=1), np.count_nonzero(among, axis=1))
        while left.any():
            part = _nearest_part(left, lineup.parts_of(among & ~picked))
            now = np.minimum(left, np.count_nonzero(part, axis=1))
            picked |= _best_fit(now, lineup, part, liked).picked
            left = left - now
    most = np.full(len(pool), _MOST)
    return _Set(picked, most, most)


def _nearest_part(count: Longs, parts: list[Bools]) -> Bools:
    """For each row the smallest part that has so many cards, or else the largest."""
    sizes = np.stack([np.count_nonzero(part, axis=1) for part in parts])
    lacking = sizes < count
    nearest: Rows = np.where(lacking, 2 * _STEP - sizes, sizes).argmin(axis=0)
    return np.stack(parts)[nearest, np.arange(len(count))]


def _spread(claim: ClaimRequest, lineup: Lineup, pool: Bools, liked: Bools) -> _Set:
    """One card of each island in turn; of islands the smallest first, of their cards the liked and the least joined."""
    turn = np.full(pool.shape, _MOST)
    roomy = np.full(pool.shape, _MOST)
    for part in lineup.parts_of(pool):
        key = np.where(liked, 0, _STEP) + runs_in(part, lineup.ids).length
        turn = np.where(part, _ranks(np.where(part, key, 2 * _STEP)), turn)
        roomy = np.where(part, np.count_nonzero(part, axis=1)[:, None], roomy)
    picked = pool & (_ranks(np.where(pool, turn * _STEP + roomy, _STEP * _STEP)) < claim.card.count)
    most = np.full(len(pool), _MOST)
    return _Set(picked, most, most)


class _Best:
    """The best set of each row so far. Merit is wishes first and thrift after them, in one number; -1 is no set."""

    def __init__(self, claim: ClaimRequest, lineup: Lineup, liked: Bools) -> None:
        self._claim = claim
        self._lineup = lineup
        self._liked = liked
        self.picked = np.zeros_like(lineup.able)
        self.wishes: Longs = np.zeros(len(lineup.able), np.int64)
        self.merit: Longs = np.full(len(lineup.able), -1, np.int64)

    def consider(self, candidate: _Set) -> None:
        claim, picked = self._claim, candidate.picked
        together = self._are_together(picked)
        liked = np.count_nonzero(picked & self._liked, axis=1)
        wishes = self._wishes(picked, together, liked)
        merit = wishes * 2 + together
        for figure in (liked, _MOST - candidate.roomy, _MOST - candidate.broken, _MOST - picked.argmax(axis=1)):
            merit = merit * _STEP + figure
        better = (np.count_nonzero(picked, axis=1) == claim.card.count) & (merit > self.merit)
        self.picked = np.where(better[:, None], picked, self.picked)
        self.wishes = np.where(better, wishes, self.wishes)
        self.merit = np.where(better, merit, self.merit)

    def _wishes(self, picked: Bools, together: Bools, liked: Longs) -> Longs:
        claim = self._claim
        joined = together & (self._lineup.fast | ~picked).all(axis=1)
        preferred = joined.astype(np.int64) * (topology_of(claim) is TopologyMode.PREFERRED)
        match claim.policy:
            case ClaimPolicy.SPREAD:
                return preferred * _STEP + self._count_islands(picked)
            case ClaimPolicy.PREFER_IDS:
                return preferred * _STEP + liked
            case ClaimPolicy.CONTIGUOUS:
                return preferred * _STEP + together
            case ClaimPolicy.ANY:
                return preferred

    def _are_together(self, picked: Bools) -> Bools:
        """Whether they are several cards of one known island."""
        islands = self._lineup.islands
        lowest, highest = np.where(picked, islands, _STEP).min(axis=1), np.where(picked, islands, 0).max(axis=1)
        return (lowest == highest) & (lowest != UNKNOWN_ISLAND) & (self._claim.card.count > 1)

    def _count_islands(self, picked: Bools) -> Longs:
        counted = np.zeros(len(picked), np.int64)
        for part in self._lineup.parts_of(picked):
            counted += part.any(axis=1)
        return counted


def _places(start: Longs, count: Longs | np.int64, width: int) -> Bools:
    places = np.arange(width)
    return (places >= start) & (places < start + count)


def _ranks(keys: Longs) -> Longs:
    """Each place's position if its row were sorted; equal keys from the left."""
    return np.argsort(np.argsort(keys, axis=1, kind="stable"), axis=1, kind="stable")
