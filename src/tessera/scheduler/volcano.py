"""Volcano's side of the extender: the same decisions, for a scheduler that binds by itself.

Volcano asks node by node whether a task fits and how good the nodes are, and says where it put the task. It does not
ask us to bind. So the cards are held when it says so, and are the first choice for the pod once it is on its node
(`late`). A hold is a guess as an offer is: a task that is never bound frees it after a while.
"""

from collections.abc import Callable

import msgspec
import numpy as np

from tessera.engine.quota import check_request
from tessera.errors import NotReady, TesseraError
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.model.pods import read_pod_ref
from tessera.model.refusals import render
from tessera.model.requests import PodRequest
from tessera.model.volcano import (
    ERROR,
    UNSCHEDULABLE,
    EventRequest,
    EventResponse,
    PredicateRequest,
    PredicateResponse,
    PrioritizeRequest,
    PrioritizeResponse,
    Task,
    read_message,
)
from tessera.scheduler.extender import NOT_READY, Handler
from tessera.scheduler.phases import Phases
from tessera.scheduler.world import World

HOLD_S = 30.0
"""A session ends and its binds are sent within seconds; a pod that is on its node waits a little for its cards."""
LEVELS_PER_POINT = 10.0
"""Volcano's own plugins give a node up to a hundred points."""
INDIFFERENT = {
    "onSessionOpen": b"{}",
    "onSessionClose": b"{}",
    "preemptable": b'{"status":0,"victims":null}',
    "reclaimable": b'{"status":0,"victims":null}',
    "jobEnqueueable": b'{"status":0}',
    "jobReady": b'{"status":true}',
    "queueOverused": b'{"overused":false}',
}
"""What we have no opinion about; Volcano may be configured to ask all the same."""


class Volcano:
    """A message that is not Volcano's is the server's to refuse; a pod that cannot be read is told in the answer."""

    def __init__(
        self, world: World, phases: Phases, *, is_ready: Callable[[], bool], clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._world = world
        self._phases = phases
        self._is_ready = is_ready
        self._clock = clock
        self._encode = msgspec.json.Encoder().encode

    @property
    def verbs(self) -> dict[str, Handler]:
        return {
            "predicate": self.predicate,
            "prioritize": self.prioritize,
            "allocateFunc": self.allocate,
            "deallocateFunc": self.deallocate,
            **{verb: _always(answer) for verb, answer in INDIFFERENT.items()},
        }

    async def predicate(self, body: bytes) -> bytes:
        asked = read_message(body, PredicateRequest)
        try:
            self._require_ready()
            why_not = self._why_not(asked.task, asked.node.name)
        except TesseraError as error:
            return self._encode(PredicateResponse(status=str(error), code=ERROR))
        return self._encode(PredicateResponse(status=why_not, code=UNSCHEDULABLE) if why_not else PredicateResponse())

    async def prioritize(self, body: bytes) -> bytes:
        asked = read_message(body, PrioritizeRequest)
        names = [node.name for node in asked.nodes]
        try:
            self._require_ready()
            levels = self._phases.score(asked.task.pod, names, self._clock.monotonic_s())
        except TesseraError as error:
            return self._encode(PrioritizeResponse(error_message=str(error)))
        scores = {name: level / LEVELS_PER_POINT for name, level in zip(names, levels, strict=True)}
        return self._encode(PrioritizeResponse(node_score=scores))

    async def allocate(self, body: bytes) -> bytes:
        task = read_message(body, EventRequest).task
        try:
            self._require_ready()
            self._hold(task)
        except TesseraError as error:
            return self._encode(EventResponse(error_message=str(error)))
        return self._encode(EventResponse())

    async def deallocate(self, body: bytes) -> bytes:
        task = read_message(body, EventRequest).task
        try:
            self._phases.offers.withdraw(read_pod_ref(task.pod).uid)
        except TesseraError as error:
            return self._encode(EventResponse(error_message=str(error)))
        return self._encode(EventResponse())

    def _why_not(self, task: Task, node: str) -> str:
        """Empty, if the node could take the task."""
        request = self._world.request_of(task.pod)
        if not request.wants_devices:
            return ""
        ref, offers = read_pod_ref(task.pod), self._phases.offers
        offers.expire(self._clock.monotonic_s())
        with offers.set_aside(lambda offer: offer.ref.uid == ref.uid):  # its own hold does not stand in its way
            over = check_request(self._world.ledger, ref.namespace, request, self._world.limits_of(ref.namespace))
            return self._refusal_of(request, node) if over is None else render(over)

    def _refusal_of(self, request: PodRequest, node: str) -> str:
        row = self._world.ledger.fleet.row_of.get(node)
        if row is None:
            return self._world.why_unknown(node)
        decider = self._world.decider
        return "" if decider.fits(request)[row] else decider.sentences(request, np.array([row]))[0]

    def _hold(self, task: Task) -> None:
        ref, request = read_pod_ref(task.pod), self._world.request_of(task.pod)
        offers, row = self._phases.offers, self._world.ledger.fleet.row_of.get(task.node_name)
        offers.withdraw(ref.uid)
        if not request.wants_devices or row is None:
            return
        allocation = self._world.decider.allocate(request, row)
        if allocation is not None:
            offers.make(ref, request, allocation, self._clock.monotonic_s(), last_s=HOLD_S)

    def _require_ready(self) -> None:
        if not self._is_ready():
            raise NotReady(NOT_READY)


def _always(answer: bytes) -> Handler:
    async def indifferent(_: bytes) -> bytes:
        return answer

    return indifferent
