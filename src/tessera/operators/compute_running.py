"""The reconciler around the judgements about Computes: makes what is wanted, then tells what became of it.

A status is judged after everything was applied, by what the API server answered, so that a Compute is never called
ready by what was wanted before.
"""

from collections.abc import Coroutine, Sequence
from datetime import datetime
from typing import Any

import msgspec
import structlog

from tessera.errors import Conflict, NotFound
from tessera.kube.client import Client
from tessera.kube.event_series import ObjectReference
from tessera.kube.events import Recorder
from tessera.kube.following import Leading
from tessera.kube.kinds import NODES
from tessera.kube.objects import ObjectKey
from tessera.kube.reconciler import Again, Reconciler
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.model.catalogue import Catalogue
from tessera.model.nodes import NodeDocument
from tessera.operators.compute_children import ComputeSettings
from tessera.operators.compute_ending import Ender
from tessera.operators.compute_fitting import can_never_be_placed
from tessera.operators.compute_making import Made, Maker
from tessera.operators.compute_objects import (
    COMPUTE_DOCUMENTS,
    COMPUTES,
    GATEWAYS,
    Address,
    Compute,
    ComputeStatus,
)
from tessera.operators.compute_pods import ComputePod, is_pulling_in_vain, is_unschedulable
from tessera.operators.compute_refusals import TOLD, failed_pulls_of, first_failed_pull
from tessera.operators.compute_status import Observed, gateways_of, judge_compute, read_gateway
from tessera.operators.compute_telling import tell_compute
from tessera.operators.compute_watching import WatchedComputes
from tessera.operators.objects import keep_times, second_of
from tessera.operators.turns import Turn

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
SETTLED_S = 10.0
"""How often a Compute is looked at when nothing tells us to: a Secret that was removed is told by nobody."""
UNSETTLED_S = 2.0
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
        self._catalogue = catalogue
        self._settings = settings
        self._clock = clock
        self.computes: Reconciler[ObjectKey] = Reconciler("computes", self._reconcile)
        self.watched = WatchedComputes(client, self.computes.mark)
        self._maker = Maker(client, self.watched, settings)
        self._ender = Ender(client, self.watched)
        self._turn = Turn(leading, lambda: self.is_synced)

    @property
    def is_synced(self) -> bool:
        return self.watched.is_synced

    def works(self) -> list[Coroutine[Any, Any, None]]:
        return [self.watched.run(), self.computes.run(), self._turn.take_over(self.watched.mark_all)]

    async def _reconcile(self, key: ObjectKey) -> Again | None:
        compute = self.watched.computes.get(key)
        if compute is None:
            self._maker.forget(key)
        if compute is None or not self._turn.is_ours:
            return None
        if again := self._turn.hold_back():
            return again
        if compute.is_going:
            await self._ender.let_go(compute)
            return None
        observed = await self._observe(compute, await self._maker.make(compute))
        now = self._clock.wall()
        judged = judge_compute(compute, observed, self._settings, now)
        times = keep_times(judged.conditions, compute.status.conditions, second_of(now))
        status = msgspec.structs.replace(judged, conditions=times)
        if status != compute.status and await self._write(compute, status):
            self._tell(compute, status)
        is_settled = observed.hindrance is None and observed.pulls_failed_since is None
        return Again(SETTLED_S if is_settled else UNSETTLED_S)

    async def _observe(self, compute: Compute, made: Made) -> Observed:
        pods = self.watched.pods_of(compute)
        told = self.watched.told_of(made.stateful_set) if made.stateful_set else ()
        starts = [await self._first_failed_pull(pod) for pod in pods if is_pulling_in_vain(pod)]
        return Observed(
            stateful_set=made.stateful_set,
            service=made.service,
            pods=pods,
            events=told,
            pulls_failed_since=min((at for at in starts if at), default=None),
            is_unplaceable=await self._is_unplaceable([pod for pod in pods if is_unschedulable(pod)]),
            hindrance=made.hindrance,
            unroutable=made.unroutable,
            gateway_addresses=await self._gateway_addresses(compute),
        )

    async def _first_failed_pull(self, pod: ComputePod) -> datetime | None:
        selection = failed_pulls_of(pod.metadata.namespace or "", pod.metadata.uid or "")
        return first_failed_pull((await self._client.list(TOLD, selection)).items)

    async def _is_unplaceable(self, waiting: Sequence[ComputePod]) -> bool:
        if not waiting:
            return False
        nodes = (await self._client.list(NODES.decoded_as(NodeDocument))).items
        return any(can_never_be_placed(pod, nodes, self._catalogue) for pod in waiting)

    async def _gateway_addresses(self, compute: Compute) -> tuple[Address, ...]:
        found: list[Address] = []
        for namespace, name in gateways_of(compute):
            try:
                gateway = await self._client.get(GATEWAYS, name, namespace=namespace)
            except NotFound:
                continue
            found += read_gateway(gateway)
        return tuple(found)

    async def _write(self, compute: Compute, status: ComputeStatus) -> bool:
        """Whether it landed. If not, the Compute has changed or is gone, and that will be told."""
        seen = {"resourceVersion": compute.metadata.resource_version}
        body = {"metadata": seen, "status": msgspec.to_builtins(status)}
        try:
            await self._client.patch(COMPUTES, compute.name, body, namespace=compute.namespace, subresource="status")
        except (Conflict, NotFound):
            return False
        return True

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
