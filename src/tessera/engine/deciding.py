"""Filter, score and choose: one decision over all nodes.

What a request would do on a row depends on the row alone, so verdicts and figures are kept per request and looked at
again only for rows that changed since. Same state, same pod, same answer: equal scores go to the lowest node name.
"""

from collections import OrderedDict
from typing import NamedTuple

import numpy as np

from tessera.engine.arrays import Bools, Floats, Rows
from tessera.engine.demand import Demands
from tessera.engine.explaining import explain
from tessera.engine.hosting import Admission
from tessera.engine.ledger import Ledger
from tessera.engine.policies import PolicyBook
from tessera.engine.sentences import Sentences
from tessera.engine.trial import Trial, try_pod
from tessera.model.allocations import Allocation, CardShare
from tessera.model.refusals import Refusal
from tessera.model.requests import PodRequest

CACHE_BYTES = 96 * 2**20


class Outlook:
    """What is known of one request on every row."""

    __slots__ = ("epoch", "figures", "fits", "layout", "seen")

    def __init__(self, rows: int, figures: int, layout: int, epoch: tuple[int, int]) -> None:
        self.fits: Bools = np.zeros(rows, np.bool_)
        self.figures: Floats = np.zeros((rows, figures), np.float32)
        self.layout = layout
        self.epoch = epoch
        self.seen = -1

    @property
    def bytes(self) -> int:
        return self.fits.nbytes + self.figures.nbytes


class Candidates(NamedTuple):
    """The rows that can take the pod, with their scores."""

    rows: Rows
    scores: Floats


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
        uuids, kinds = self._fleet.uuids[row], trial.before.kind[0]
        containers: list[list[CardShare]] = [[] for _ in request.containers]
        for container, demand, picked in trial.picks:
            for column in np.flatnonzero(picked[0]):
                share = CardShare(
                    uuid=uuids[column],
                    vendor=demand.request.vendor,
                    memory_mib=int(demand.memory[kinds[column]]),
                    cores_percent=demand.request.cores_percent,
                )
                containers[container].append(share)
        return Allocation(self._fleet.names[row], tuple(map(tuple, containers)))

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
            outlook = self._remember(request, Outlook(len(fleet.alive), policy.figures, fleet.layout, epoch))
        self._outlooks.move_to_end(request)
        if outlook.seen != fleet.sequence:
            rows = (fleet.changed_at > outlook.seen).nonzero()[0]
            trial = self._try(request, rows)
            outlook.fits[rows] = trial.fits
            outlook.figures[rows] = policy.score(trial)
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

    def _remember(self, request: PodRequest, outlook: Outlook) -> Outlook:
        self._cache_left -= outlook.bytes
        while self._cache_left < 0 and self._outlooks:
            self._forget(next(iter(self._outlooks)))
        self._outlooks[request] = outlook
        return outlook

    def _forget(self, request: PodRequest) -> None:
        outlook = self._outlooks.pop(request, None)
        if outlook is not None:
            self._cache_left += outlook.bytes
