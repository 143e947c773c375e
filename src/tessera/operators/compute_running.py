"""The reconciler around the judgements about Computes: makes what is wanted, then tells what became of it.

A status is judged after everything was applied, by what the API server answered, so that a Compute is never called
ready by what was wanted before.
"""

from collections.abc import Coroutine
from datetime import datetime
from typing import Any

import msgspec
import structlog

from tessera.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound
from tessera.kube.client import Client
from tessera.kube.event_series import ObjectReference
from tessera.kube.events import Recorder
from tessera.kube.following import Leading
from tessera.kube.objects import ObjectKey
from tessera.kube.reconciler import Again, Reconciler
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.model.catalogue import Catalogue
from tessera.operators.compute_asking import Asking
from tessera.operators.compute_children import ComputeSettings
from tessera.operators.compute_ending import Ender
from tessera.operators.compute_making import Made, Maker
from tessera.operators.compute_objects import COMPUTE_DOCUMENTS, COMPUTES, Address, Compute, ComputeStatus
from tessera.operators.compute_patience import Pace, Pulls, Restarts
from tessera.operators.compute_pods import Trouble, is_long_unschedulable, waits_for_volumes
from tessera.operators.compute_status import Observed, judge_compute, judge_deletion
from tessera.operators.compute_telling import tell_compute
from tessera.operators.compute_watching import WatchedComputes
from tessera.operators.objects import keep_times, second_of
from tessera.operators.turns import LOOK_AGAIN_S, Turn, TurnOver

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
DEFAULT_SETTINGS = ComputeSettings()


class ComputeOperator:
    """`works` belong in a TaskGroup of the caller. Without `leading` nobody else looks after Computes."""

    def __init__(
        self,
        client: Client,
        recorder: Recorder,
        catalogue: Catalogue,
        *,
        settings: ComputeSettings = DEFAULT_SETTINGS,
        leading: Leading | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._settings = settings
        self._clock = clock
        self.computes: Reconciler[ObjectKey] = Reconciler("computes", self._reconcile)
        self.watched = WatchedComputes(client, self.computes.mark)
        self._turn = Turn(leading, lambda: self.is_synced)
        self._maker = Maker(client, self.watched, settings, self._turn)
        self._ender = Ender(client, self.watched, self._turn)
        self._asking = Asking(client, catalogue, clock)
        self._pulls = Pulls()
        self._restarts = Restarts()
        self._pace = Pace()

    @property
    def is_synced(self) -> bool:
        return self.watched.is_synced

    def works(self) -> list[Coroutine[Any, Any, None]]:
        return [self.watched.run(), self.computes.run(), self._turn.take_over(self.watched.mark_all)]

    async def _reconcile(self, key: ObjectKey) -> Again | None:
        compute = self.watched.computes.get(key)
        if compute is None:
            self._forget(key)
        if compute is None or not self._turn.is_ours:
            return None
        if again := self._turn.hold_back():
            return again
        try:
            return await (self._end(compute) if compute.is_going else self._look_after(compute))
        except TurnOver:
            return Again(LOOK_AGAIN_S)

    def _forget(self, key: ObjectKey) -> None:
        for memory in (self._maker, self._pulls, self._restarts, self._pace):
            memory.forget(key)

    async def _end(self, compute: Compute) -> None:
        """It is told before it is done, but nothing waits for the telling."""
        try:
            told = await self._tell_status(compute, judge_deletion(compute))
        except (BadRequest, Forbidden, Invalid) as error:
            log.warning("deletion not told", compute=str(compute.key), error=str(error))
            told = compute
        if told is not None:
            await self._ender.let_go(told)

    async def _look_after(self, compute: Compute) -> Again:
        made = await self._maker.make(compute)
        observed = await self._observe(compute, made, self._clock.wall())
        status = judge_compute(compute, observed, self._settings, self._clock.wall())
        await self._tell_status(compute, status)
        return Again(self._pace.wait_s(compute.key, status))

    async def _observe(self, compute: Compute, made: Made, now: datetime) -> Observed:
        pods = self.watched.pods_of(made.stateful_set) if made.stateful_set else ()
        homeless = [pod for pod in pods if is_long_unschedulable(pod, self._settings.patience_s, now)]
        unstarted = [pod for pod in pods if waits_for_volumes(pod)]
        addresses, unroutable = await self._look_at_route(compute, made)
        return Observed(
            stateful_set=made.stateful_set,
            service=made.service,
            pods=pods,
            events=self.watched.told_of(made.stateful_set) if made.stateful_set else (),
            pulls_failed_since=self._pulls.failed_since(compute, pods, now),
            calm_restarts=self._restarts.count_calm(compute.key, pods, now),
            is_unplaceable=await self._asking.is_unplaceable(homeless, now),
            volume_trouble=await self._asking.volume_trouble(compute, unstarted, now),
            hindrance=made.hindrance,
            token_trouble=made.token_trouble,
            unroutable=unroutable,
            gateway_addresses=addresses,
        )

    async def _look_at_route(self, compute: Compute, made: Made) -> tuple[tuple[Address, ...], Trouble | None]:
        if compute.spec.route is None:
            return (), None
        if made.route is None:
            return (), made.unroutable or Trouble("RoutePending", "the GRPCRoute has not been made yet")
        addresses, unroutable = await self._asking.look_at_gateways(made.route)
        return addresses, made.unroutable or unroutable

    async def _tell_status(self, compute: Compute, judged: ComputeStatus) -> Compute | None:
        """The Compute with that status. None, if it has changed or is gone meanwhile: that will be told."""
        times = keep_times(judged.conditions, compute.status.conditions, second_of(self._clock.wall()))
        status = msgspec.structs.replace(judged, conditions=times)
        if status == compute.status:
            return compute
        seen = {"resourceVersion": compute.metadata.resource_version}
        body = {"metadata": seen, "status": msgspec.to_builtins(status)}
        try:
            told = await self._turn.pen(self._client).patch(
                COMPUTES, compute.name, body, namespace=compute.namespace, subresource="status"
            )
        except (Conflict, NotFound):
            return None
        self._tell(compute, status)
        return told

    def _tell(self, compute: Compute, status: ComputeStatus) -> None:
        about = ObjectReference(
            kind=COMPUTE_DOCUMENTS.name,
            api_version=COMPUTE_DOCUMENTS.api_version,
            name=compute.name,
            namespace=compute.namespace,
            uid=compute.metadata.uid or "",
        )
        tell = {"Normal": self._recorder.normal, "Warning": self._recorder.warning}
        for level, reason, message in tell_compute(compute.status, status):
            log.info("compute is", compute=str(compute.key), reason=reason)
            tell[level](about, reason, message)
