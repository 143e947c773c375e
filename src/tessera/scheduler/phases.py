"""Filter and Score, as kube-scheduler asks for them: of these nodes, which could take the pod, and how good is each?

Nothing is written to the API. Filter keeps every node that could take the pod, so that preferences of the pod and other
scorers still count; Score tells them apart so finely that the policy's choice is not left to chance. Choose is both at
once, for pods that have no preferences.
"""

from collections.abc import Callable, Sequence
from itertools import compress, repeat

import numpy as np

from tessera.engine.arrays import Bools, Floats, Longs, Rows
from tessera.engine.ledger import State
from tessera.engine.quota import check_request
from tessera.errors import ClaimUnmet, InvalidInput
from tessera.kube.pods import Pod
from tessera.model.extender import MAX_SCORE
from tessera.model.pods import read_pod_ref
from tessera.model.refusals import Refusal, render
from tessera.model.requests import PodRef, PodRequest
from tessera.scheduler.gangs import Gangs
from tessera.scheduler.offers import Offers
from tessera.scheduler.world import World

MOST_SEEN = 100_000
UNKNOWN = -1


class Verdict:
    """`passed` in the order in which they were named; a sentence for each node that did not pass."""

    __slots__ = ("failed", "hopeless", "passed")

    def __init__(self, passed: list[str], failed: dict[str, str], hopeless: dict[str, str] | None = None) -> None:
        self.passed = passed
        self.failed = failed
        self.hopeless = hopeless or {}


class Phases:
    def __init__(self, world: World) -> None:
        self._world = world
        self._fleet = world.ledger.fleet
        self.offers = Offers(world.ledger)
        self.offers.freed = lambda: world.freed()
        self.gangs = Gangs(world, self.offers, self._is_within_quota)
        self._seen: dict[str, None] = {}
        self.refused: Callable[[PodRef, PodRequest | None], None] = lambda _, __: None
        """Told of pods that no node can take; without a request, if it must be read anew when there is room."""

    def filter(self, pod: object, names: Sequence[str], now_s: float) -> Verdict:
        ref = read_pod_ref(pod)
        asked = self._ask(ref, pod, names, now_s)
        return self._filter(ref, asked, names, now_s) if isinstance(asked, PodRequest) else asked

    def _filter(self, ref: PodRef, request: PodRequest, names: Sequence[str], now_s: float) -> Verdict:
        if not request.wants_devices:
            return Verdict(list(names), {})
        self._begin(ref, request, now_s)
        return self._refused_by_quota(ref, request, names) or self._judge(ref, request, names)

    def _ask(self, ref: PodRef, pod: object, names: Sequence[str], now_s: float) -> PodRequest | Verdict:
        """What the pod asks for; or the verdict, if its claim cannot be had, or its gang says where it goes."""
        try:
            request = self._world.request_of(pod)
        except ClaimUnmet as unmet:
            self.refused(ref, None)
            return Verdict([], {}, dict.fromkeys(names, str(unmet)))
        gate = self.gangs.gate(pod, names, now_s)
        if gate is None:
            return request
        self._notice(ref, request)
        if gate.node:
            return Verdict([gate.node], {})
        self.refused(ref, None)
        return Verdict([], {}, dict.fromkeys(names, gate.why))

    def choose(self, pod: object, names: Sequence[str], now_s: float) -> Verdict:
        """Filter, and where our scores would decide alone only the node that they are for.

        kube-scheduler takes it as it is: a thousand nodes are not scored to find what is known.
        """
        ref = read_pod_ref(pod)
        asked = self._ask(ref, pod, names, now_s)
        if not isinstance(asked, PodRequest):
            return asked
        if asked.wants_devices and self._world.steering.is_ours(pod):
            self._begin(ref, asked, now_s)
            best = self._best_within_quota(ref, asked, names, now_s)
            if best is not None:
                return best
        return self._filter(ref, asked, names, now_s)

    def place(self, pod: object, names: Sequence[str], now_s: float) -> Verdict:
        """The best node alone, whatever the pod prefers and whether it wants cards or not.

        For who does as it is told: an offer is as good as a bind, and stands in the way of others.
        """
        ref = read_pod_ref(pod)
        asked = self._ask(ref, pod, names, now_s)
        if not isinstance(asked, PodRequest):
            return asked
        self._begin(ref, asked, now_s)
        best = self._best_within_quota(ref, asked, names, now_s)
        if best is not None:
            return best
        return self._refused_by_quota(ref, asked, names) or self._explain(asked, names, self._rows_of(names))

    def _best_within_quota(
        self, ref: PodRef, request: PodRequest, names: Sequence[str], now_s: float
    ) -> Verdict | None:
        """The best node, offered to the pod. None, where there is none for it."""
        if self._over_quota(ref.namespace, request) is not None:
            return None
        best = self._best(request, self._rows_of(names))
        if best is None:
            return None
        self._offer(ref, request, best, now_s)
        return Verdict([self._fleet.names[best]], {})

    def _begin(self, ref: PodRef, request: PodRequest, now_s: float) -> None:
        """What was offered to the pod before is over."""
        self._notice(ref, request)
        self.offers.expire(now_s)
        self.offers.withdraw(ref.uid)

    def _refused_by_quota(self, ref: PodRef, request: PodRequest, names: Sequence[str]) -> Verdict | None:
        """None, if the namespace may take what the pod asks for."""
        over = self._over_quota(ref.namespace, request)
        if over is None:
            return None
        self._refuse(ref, request)
        return Verdict([], {}, dict.fromkeys(names, render(over)))

    def is_bound(self, pod: object) -> bool:
        """Whether it has its node, also where the watch has not told yet."""
        held = self._world.ledger.holding(read_pod_ref(pod).uid)
        return held is not None and held.state is State.BOUND

    def could_be_placed(self, namespace: str, request: PodRequest) -> bool:
        """Whether some node would take the pod now."""
        return bool(self._world.decider.fits(request).any()) and self._is_within_quota(namespace, request)

    def could_go(self, pod: Pod, now_s: float) -> bool:
        """The same of a pod with a claim or a gang, which may ask for something else than before."""
        try:
            request = self._world.request_of(pod)
        except InvalidInput:
            return False
        gate = self.gangs.gate(pod, None, now_s)
        if gate is not None:
            return bool(gate.node)
        return self.could_be_placed(pod.metadata.namespace or "", request)

    def _is_within_quota(self, namespace: str, request: PodRequest) -> bool:
        return self._over_quota(namespace, request) is None

    def _over_quota(self, namespace: str, request: PodRequest) -> Refusal | None:
        limits = self._world.limits_of(namespace)
        if check_request(self._world.ledger, namespace, request, limits) is None:
            return None
        with self.offers.set_aside(lambda offer: offer.ref.namespace == namespace):
            return check_request(self._world.ledger, namespace, request, limits)

    def score(self, pod: object, names: Sequence[str], now_s: float) -> list[int]:
        """One score for each name. The best is offered to the pod; ties go to it, not to chance.

        Pods without cards are scored too: they should be where they take no CPU from cards that are free.
        """
        ref, request = read_pod_ref(pod), self._world.request_of(pod)
        if self.gangs.promised_node(ref.uid):
            return [0 for _ in names]
        self._begin(ref, request, now_s)
        rows = self._rows_of(names)
        levels, best = self._levels(request, rows)
        if best is not None:
            self._offer(ref, request, best, now_s)
        return levels.tolist()

    def _judge(self, ref: PodRef, request: PodRequest, names: Sequence[str]) -> Verdict:
        rows = self._rows_of(names)
        known = rows != UNKNOWN
        passing = known.copy()
        passing[known] = self._world.decider.fits(request)[rows[known]]
        if not passing.any():
            passing = self._passing_without_offers(request, names, rows)
        if not passing.any():
            self._refuse(ref, request)
        verdict = self._explain(request, _chosen(names, ~passing), rows[~passing])
        return Verdict(_chosen(names, passing), verdict.failed)

    def _refuse(self, ref: PodRef, request: PodRequest) -> None:
        """A claim may be another one by the time that there is room."""
        self.refused(ref, None if request.claim else request)

    def _explain(self, request: PodRequest, names: Sequence[str], rows: Rows) -> Verdict:
        """A sentence for each of these nodes, none of which takes the pod."""
        known = rows != UNKNOWN
        sentences = self._world.decider.sentences(request, rows[known])
        failed = dict(zip(_chosen(names, known), sentences, strict=True))
        failed |= {name: self._world.why_unknown(name) for name in _chosen(names, ~known)}
        return Verdict([], failed)

    def _rows_of(self, names: Sequence[str]) -> Rows:
        """The row of each node, UNKNOWN for one that has none."""
        return np.fromiter(map(self._fleet.row_of.get, names, repeat(UNKNOWN)), np.intp, len(names))

    def _passing_without_offers(self, request: PodRequest, names: Sequence[str], rows: Rows) -> Bools:
        """Where nothing else is left, offers do not count: they are guesses, and must not make a pod wait."""
        crowded = self.offers.nodes()
        passing = np.zeros(len(rows), bool)
        for position, (name, row) in enumerate(zip(names, rows.tolist(), strict=True)):
            passing[position] = name in crowded and self._fits_without_offers(request, name, row)
        return passing

    def _fits_without_offers(self, request: PodRequest, name: str, row: int) -> bool:
        with self.offers.set_aside(lambda offer: offer.allocation.node == name):
            return self._world.decider.allocate(request, row) is not None

    def _levels(self, request: PodRequest, rows: Rows) -> tuple[Longs, int | None]:
        """Scores stretched over the whole range, the best alone at its top; nodes that only just do not fit get 0."""
        levels = np.zeros(len(rows), np.int64)
        found = self._scores(request, rows)
        fitting = np.isfinite(found).nonzero()[0]
        if not len(fitting):
            return levels, None
        among = found[fitting]
        low, high = float(among.min()), float(among.max())
        spread = (among - low) / (high - low) if high > low else np.ones(len(among))
        levels[fitting] = 1 + np.floor(spread * (MAX_SCORE - 2)).astype(np.int64)
        best = self._first_of(rows, found == high)
        levels[best] = MAX_SCORE
        return levels, int(rows[best])

    def _best(self, request: PodRequest, rows: Rows) -> int | None:
        """The row of the best of these nodes, None where the pod fits on none."""
        found = self._scores(request, rows)
        high = found.max(initial=-np.inf)
        return int(rows[self._first_of(rows, found == high)]) if np.isfinite(high) else None

    def _scores(self, request: PodRequest, rows: Rows) -> Floats:
        """One for each of these rows, minus infinity where the pod does not fit."""
        scores = np.full(len(self._fleet.alive) + 1, -np.inf)  # the last is for rows that are UNKNOWN
        candidates = self._world.decider.candidates(request)
        scores[candidates.rows] = candidates.scores
        return scores[rows]

    def _first_of(self, rows: Rows, ties: Bools) -> int:
        """The place of the row whose node comes first by name."""
        places = ties.nonzero()[0]
        return int(places[self._fleet.name_rank[rows[places]].argmin()])

    def _offer(self, ref: PodRef, request: PodRequest, row: int, now_s: float) -> None:
        allocation = self._world.decider.allocate(request, row)
        if allocation is not None:
            self.offers.make(ref, request, allocation, now_s)

    def _notice(self, ref: PodRef, request: PodRequest) -> None:
        """Let policies learn from each pod once, however often it is tried."""
        if ref.uid in self._seen:
            return
        if len(self._seen) >= MOST_SEEN:
            self._seen.clear()
        self._seen[ref.uid] = None
        self._world.decider.observe(request)


def _chosen(names: Sequence[str], which: Bools) -> list[str]:
    return list(compress(names, which.tolist()))
