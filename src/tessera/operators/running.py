"""The reconcilers around the judgements: what a status should say is written where it says something else.

A status is written by a merge patch that names the resourceVersion of what was judged. Server-side apply would let a
judgement of an older spec land on a newer one; here it is refused, and the change that came between is judged next.
"""

from collections.abc import Coroutine
from typing import Any

import msgspec
import structlog

from tessera.errors import Conflict, NotFound
from tessera.kube.client import Client
from tessera.kube.event_series import ObjectReference
from tessera.kube.events import Recorder
from tessera.kube.following import Leading
from tessera.kube.kinds import GPU_CLAIMS, Kind
from tessera.kube.objects import ObjectKey
from tessera.kube.reconciler import Again, Reconciler
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.operators.claims import judge_claim, with_times
from tessera.operators.gangs import judge_gang
from tessera.operators.objects import CLAIMS, GANGS, Claim, ClaimStatus, Gang, GangStatus, second_of
from tessera.operators.pods import uid_of
from tessera.operators.telling import tell_claim
from tessera.operators.turns import Turn
from tessera.operators.watching import Watched

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
DEFAULT_LEASE_NAMESPACE = "default"


class Operator:
    """`works` belong in a TaskGroup of the caller. Without `leading` nobody else writes statuses."""

    def __init__(
        self,
        client: Client,
        recorder: Recorder,
        *,
        lease_namespace: str = DEFAULT_LEASE_NAMESPACE,
        leading: Leading | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._clock = clock
        self.claims: Reconciler[ObjectKey] = Reconciler("claims", self._reconcile_claim)
        self.gangs: Reconciler[ObjectKey] = Reconciler("gangs", self._reconcile_gang)
        self.watched = Watched(client, lease_namespace, self.claims.mark, self.gangs.mark)
        self._turn = Turn(leading, lambda: self.is_synced)

    @property
    def is_synced(self) -> bool:
        return self.watched.is_synced

    @property
    def leads(self) -> bool:
        return self._turn.is_ours

    def works(self) -> list[Coroutine[Any, Any, None]]:
        return [self.watched.run(), self.claims.run(), self.gangs.run(), self._turn.take_over(self.watched.mark_all)]

    async def _reconcile_claim(self, key: ObjectKey) -> Again | None:
        claim = self.watched.claims.get(key)
        if claim is None or not self.leads:
            return None
        if again := self._turn.hold_back():
            return again
        pods = self.watched.pods_of_claim(key)
        holders = {*map(uid_of, pods), claim.status.pod_uid or ""}
        judged = judge_claim(claim, pods, self.watched.leases_of(holders))
        status = with_times(judged, claim.status, second_of(self._clock.wall()))
        if status == claim.status:
            return None
        if await self._write(CLAIMS, claim, key, status):
            log.info("claim is", claim=str(key), phase=status.phase, allocated=status.allocated, pod=status.pod_name)
            self._tell(claim, status)
        return None

    async def _reconcile_gang(self, key: ObjectKey) -> Again | None:
        gang = self.watched.gangs.get(key)
        if gang is None or not self.leads:
            return None
        if again := self._turn.hold_back():
            return again
        status = judge_gang(gang, self.watched.pods_of_gang(key))
        if status != gang.status and await self._write(GANGS, gang, key, status):
            log.info("gang is", gang=str(key), phase=status.phase, members=status.members, bound=status.bound)
        return None

    async def _write(
        self, kind: Kind[Any], judged: Claim | Gang, key: ObjectKey, status: ClaimStatus | GangStatus
    ) -> bool:
        """Whether it landed. If not, the object has changed or is gone, and that will be told."""
        seen = {"resourceVersion": judged.metadata.resource_version}
        body = {"metadata": seen, "status": msgspec.to_builtins(status)}
        try:
            await self._client.patch(kind, key.name, body, namespace=key.namespace, subresource="status")
        except (Conflict, NotFound):
            return False
        return True

    def _tell(self, claim: Claim, status: ClaimStatus) -> None:
        about = ObjectReference(
            kind=GPU_CLAIMS.name,
            api_version=GPU_CLAIMS.api_version,
            name=claim.metadata.name or "",
            namespace=claim.metadata.namespace or "",
            uid=claim.metadata.uid or "",
        )
        tell = {"Normal": self._recorder.normal, "Warning": self._recorder.warning}
        for level, reason, message in tell_claim(claim.status, status):
            tell[level](about, reason, message)
