"""The extender's verbs: bytes in, bytes out. What serves them over HTTP is the app's business.

A pod that cannot be read, or a scheduler that is not ready, is told as `Error`: kube-scheduler shows it on the pod and
tries again.
"""

from collections.abc import Awaitable, Callable

import msgspec

from tessera.errors import NotReady, TesseraError
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.model.extender import (
    BindingArgs,
    BindingResult,
    ExtenderArgs,
    FilterResult,
    HostPriority,
    read_args,
)
from tessera.scheduler.binding import Binder
from tessera.scheduler.phases import Phases

Handler = Callable[[bytes], Awaitable[bytes]]


class Extender:
    def __init__(
        self, phases: Phases, binder: Binder, *, is_ready: Callable[[], bool], clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._phases = phases
        self._binder = binder
        self._is_ready = is_ready
        self._clock = clock
        self._encode = msgspec.json.Encoder().encode

    @property
    def verbs(self) -> dict[str, Handler]:
        return {"/filter": self.filter, "/prioritize": self.prioritize, "/bind": self.bind}

    async def filter(self, body: bytes) -> bytes:
        try:
            self._require_ready()
            args = read_args(body, ExtenderArgs)
            verdict = self._phases.filter(args.pod, args.names(), self._clock.monotonic_s())
        except TesseraError as error:
            return self._encode(FilterResult(error=str(error)))
        whole = args.whole_nodes()
        result = FilterResult(
            nodes={"items": [whole[name] for name in verdict.passed]} if whole else None,
            node_names=verdict.passed,
            failed_nodes=verdict.failed,
            failed_and_unresolvable_nodes=verdict.hopeless,
        )
        return self._encode(result)

    async def prioritize(self, body: bytes) -> bytes:
        args = read_args(body, ExtenderArgs)
        names = args.names()
        scores = self._phases.score(args.pod, names, self._clock.monotonic_s())
        return self._encode([HostPriority(host=name, score=score) for name, score in zip(names, scores, strict=True)])

    async def bind(self, body: bytes) -> bytes:
        try:
            self._require_ready()
            await self._binder.bind(read_args(body, BindingArgs))
        except TesseraError as error:
            return self._encode(BindingResult(error=str(error)))
        return self._encode(BindingResult())

    def _require_ready(self) -> None:
        if not self._is_ready():
            raise NotReady("the scheduler is still reading the cluster's state; it answers in a moment")
