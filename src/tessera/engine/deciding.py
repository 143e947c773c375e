"""Filter, score and choose: one decision over all nodes.

What a request would do on a row depends on the row alone, so verdicts and figures are kept per request and looked at
again only for rows that changed since. Same state, same pod, same answer: equal scores go to the lowest node name.
How well a node meets the wishes of a claim counts before anything that the node policy says.
"""

from collections import OrderedDict
from typing import NamedTuple

import numpy as np

from tessera.engine.arrays import Bools, Doubles, Floats, Longs, Rows
from tessera.engine.demand import Demand, Demands
from tessera.engine.explaining import explain
from tessera.engine.hosting import Admission
from tessera.engine.ledger import Ledger
from tessera.engine.policies import PolicyBook
from tessera.engine.sentences import Sentences
from tessera.engine.trial import THE_POD, Trial, try_pod
from tessera.model.allocations import Allocation, CardShare, ContainerShares
from tessera.model.refusals import Refusal
from tessera.model.requests import PodRequest

CACHE_BYTES = 96 * 2**20


class Outlook:
    """What is known of one request on every row."""

    __slots__ = ("epoch", "figures", "fits", "layout", "seen", "wishes")

    def __init__(self, rows: int, figures: int, layout: int, epoch: tuple[int, int], *, has_claim: bool) -> None:
        self.fits: Bools = np.zeros(rows, np.bool_)
        self.figures: Floats = np.zeros((rows, figures), np.float32)
        self.wishes: Longs = np.zeros(rows if has_claim else 0, np.int64)
        self.layout = layout
        self.epoch = epoch
        self.seen = -1

    @property
    def bytes(self) -> int:
        return self.fits.nbytes + self.figures.nbytes + self.wishes.nbytes


class Candidates(NamedTuple):
    """The rows that can take the pod, with their scores."""

    rows: Rows
    scores: Floats | Doubles


class Decider:
    def __init__(self, ledger: Ledger, policies: PolicyBook, *, cache_bytes: int = CACHE_BYTES) -> None:
        self._ledger = ledger
        self._fleet = ledger.fleet
        self._policies = policies
        self._demands = Demands(ledger.fleet)
        self._admission = Admission(ledger.fleet)
        self._sentences = Sentences(ledger.fleet)
        self._outlooks: OrderedDict[PodRequest, Outlook] = OrderedDict()
        self._cache_left = cache_bytes

    def candidates(self, request: PodRequest) -> Candidates:
        """Every node that can take the pod now, and how good it would be there."""
        outlook = self._outlook(request)
        score = self._policies.nodes(request.policy).settle(outlook.figures, request)
        rows = outlook.fits.nonzero()[0]
        if len(outlook.wishes):
            return Candidates(rows, wishes_first(outlook.wishes[rows], score[rows]))
        return Candidates(rows, score[rows])

    def choose(self, request: PodRequest) -> Allocation | None:
        """The best node and its cards, or None where no node can take the pod."""
        rows, scores = self.candidates(request)
        if not len(rows):
            return None
        best = rows[scores == scores.max()]
        row = int(best[self._fleet.name_rank[best].argmin()]) if len(best) > 1 else int(best[0])
        return self.allocate(request, row)

    def allocate(self, request: PodRequest, row: int) -> Allocation | None:
        """The cards that the pod would get on this row, or None where it does not fit."""
        trial = self._try(request, np.array([row]))
        if not trial.fits[0]:
            return None
        containers: list[ContainerShares] = [() for _ in request.containers]
        claimed: ContainerShares = ()
        for container, demand, picked in trial.picks:
            columns = np.flatnonzero(picked[0])
            if container == THE_POD:
                ids = self._fleet.wirings(trial.before.rows).ids[0]
                claimed = self._shares(demand, row, columns[ids[columns].argsort()])
            else:
                containers[container] += self._shares(demand, row, columns)
        return Allocation(self._fleet.names[row], tuple(containers), claimed)

    def _shares(self, demand: Demand, row: int, columns: Rows) -> ContainerShares:
        uuids, kinds = self._fleet.uuids[row], self._fleet.kind[row]
        return tuple(
            CardShare(
                uuid=uuids[column],
                vendor=demand.request.vendor,
                memory_mib=int(demand.memory[kinds[column]]),
                cores_percent=int(demand.cores[kinds[column]]),
            )
            for column in map(int, columns)
        )

    def fits(self, request: PodRequest) -> Bools:
        """For every row, whether the pod could be there now. Not to be changed: it is what is remembered."""
        return self._outlook(request).fits

    def refusals(self, request: PodRequest) -> list[Refusal]:
        """Why each node that cannot take the pod cannot, by node name."""
        rows = (self._fleet.alive & ~self.fits(request)).nonzero()[0]
        return sorted(self._explain(request, rows), key=lambda refusal: refusal.where)

    def sentences(self, request: PodRequest, rows: Rows) -> list[str]:
        """Why each of these rows cannot take the pod, which is known of them."""
        return self._sentences.of(request, rows, lambda unknown: self._explain(request, unknown))

    def _explain(self, request: PodRequest, rows: Rows) -> list[Refusal]:
        policy = self._policies.cards(request.policy)
        return explain(request, self._fleet, rows, demands=self._demands, policy=policy)

    def observe(self, request: PodRequest) -> None:
        """A pod has arrived: policies that learn take note."""
        self._policies.observe(request)

    def _outlook(self, request: PodRequest) -> Outlook:
        fleet, policy = self._fleet, self._policies.nodes(request.policy)
        epoch, outlook = (policy.epoch, self._policies.cards(request.policy).epoch), self._outlooks.get(request)
        if outlook is None or outlook.layout != fleet.layout or outlook.epoch != epoch:
            self._forget(request)
            has_claim = request.claim is not None
            outlook = Outlook(len(fleet.alive), policy.figures, fleet.layout, epoch, has_claim=has_claim)
            self._remember(request, outlook)
        self._outlooks.move_to_end(request)
        if outlook.seen != fleet.sequence:
            rows = (fleet.changed_at > outlook.seen).nonzero()[0]
            trial = self._try(request, rows)
            outlook.fits[rows] = trial.fits
            outlook.figures[rows] = policy.score(trial)
            if trial.wishes is not None:
                outlook.wishes[rows] = trial.wishes
            outlook.seen = fleet.sequence
        return outlook

    def _try(self, request: PodRequest, rows: Rows) -> Trial:
        return try_pod(
            request,
            self._fleet,
            rows,
            admitted=self._admission.admitted(request.host, rows),
            demands=self._demands,
            policy=self._policies.cards(request.policy),
        )

    def _remember(self, request: PodRequest, outlook: Outlook) -> None:
        self._cache_left -= outlook.bytes
        while self._cache_left < 0 and self._outlooks:
            self._forget(next(iter(self._outlooks)))
        self._outlooks[request] = outlook

    def _forget(self, request: PodRequest) -> None:
        outlook = self._outlooks.pop(request, None)
        if outlook is not None:
            self._cache_left += outlook.bytes


def wishes_first(wishes: Longs, scores: Floats) -> Doubles:
    """Scores of which every one with more wishes met is above every one with fewer; among equals as they were."""
    if not len(scores):
        return scores.astype(np.float64)
    level = np.unique(wishes, return_inverse=True)[1]
    above = scores.astype(np.float64) - scores.min()
    return 2.0 * level + above / max(float(above.max()), 1e-30)
