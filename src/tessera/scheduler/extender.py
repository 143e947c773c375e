"""The extender's verbs: bytes in, bytes out. What serves them over HTTP is the app's business.

A pod that cannot be read, or a scheduler that is not ready, is told as `Error`: kube-scheduler shows it on the pod and
tries again.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from tessera.errors import BindRefused, NotReady, TesseraError
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.model.extender import (
    CHOOSE,
    BindingArgs,
    BindingResult,
    ExtenderArgs,
    FilterResult,
    HostPriority,
    read_args,
)
from tessera.model.pods import read_pod_ref
from tessera.model.requests import PodRef
from tessera.scheduler.binding import Binder
from tessera.scheduler.phases import Phases, Verdict
from tessera.scheduler.reasons import Summary, summarize

Handler = Callable[[bytes], Awaitable[bytes]]
NOT_READY = "this scheduler is still reading the cluster's state, or another one leads; ask again in a moment"


class Witness(Protocol):
    """Told what becomes of pods, and must not wait."""

    def refused(self, ref: PodRef, summary: Summary) -> None: ...
    def bound(self, ref: PodRef, node: str) -> None: ...
    def not_bound(self, ref: PodRef, why: str) -> None: ...


class Extender:
    def __init__(
        self,
        phases: Phases,
        binder: Binder,
        *,
        is_ready: Callable[[], bool],
        witness: Witness | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._phases = phases
        self._binder = binder
        self._is_ready = is_ready
        self._witness = witness
        self._clock = clock
        self._encode = msgspec.json.Encoder().encode

    @property
    def verbs(self) -> dict[str, Handler]:
        return {
            "/filter": self.filter,
            CHOOSE: self.choose,
            "/prioritize": self.prioritize,
            "/bind": self.bind,
        }

    async def filter(self, body: bytes) -> bytes:
        return self._filter(body, self._phases.filter)

    async def choose(self, body: bytes) -> bytes:
        return self._filter(body, self._phases.choose)

    def _filter(self, body: bytes, phase: Callable[[object, Sequence[str], float], Verdict]) -> bytes:
        try:
            self._require_ready()
            args = read_args(body, ExtenderArgs)
            verdict = phase(args.pod, args.names(), self._clock.monotonic_s())
        except TesseraError as error:
            return self._encode(FilterResult(error=str(error)))
        if self._witness and not verdict.passed:
            sentences = (*verdict.failed.values(), *verdict.hopeless.values())
            self._witness.refused(read_pod_ref(args.pod), summarize(sentences))
        whole = args.whole_nodes()
        result = FilterResult(
            nodes={"items": [whole[name] for name in verdict.passed if name in whole]} if whole else None,
            node_names=verdict.passed,
            failed_nodes=verdict.failed,
            failed_and_unresolvable_nodes=verdict.hopeless,
        )
        return self._encode(result)

    async def prioritize(self, body: bytes) -> bytes:
        """Scores have no place for an error, so NotReady is for the server to tell; kube-scheduler goes on without."""
        self._require_ready()
        args = read_args(body, ExtenderArgs)
        names = args.names()
        scores = self._phases.score(args.pod, names, self._clock.monotonic_s())
        return self._encode(list(map(HostPriority, names, scores)))

    async def bind(self, body: bytes) -> bytes:
        try:
            self._require_ready()
            await self._bind(read_args(body, BindingArgs))
        except TesseraError as error:
            return self._encode(BindingResult(error=str(error)))
        return self._encode(BindingResult())

    async def _bind(self, args: BindingArgs) -> None:
        ref = PodRef(args.pod_namespace, args.pod_name, args.pod_uid)
        try:
            await self._binder.bind(args)
        except BindRefused as error:
            if self._witness:
                self._witness.not_bound(ref, str(error))
            raise
        if self._witness:
            self._witness.bound(ref, args.node)

    def _require_ready(self) -> None:
        if not self._is_ready():
            raise NotReady(NOT_READY)
