"""The shell of ReplicaSets: caches in, pods and a status out."""

import random

from tessera.embedded.controllers import replica_sets
from tessera.embedded.controllers.claiming import Claimant
from tessera.embedded.controllers.managing import Managing
from tessera.embedded.controllers.objects import REPLICA_SETS, ReplicaSet
from tessera.embedded.controllers.pod_making import RETRIES, PodMaking
from tessera.embedded.controllers.pods import PODS, suffixes
from tessera.embedded.controllers.watching import Watching
from tessera.embedded.controllers.writes import carry_out, put_status
from tessera.kube.client import Client
from tessera.kube.events import Recorder
from tessera.kube.objects import ObjectKey
from tessera.kube.reconciler import Again
from tessera.kube.timing import SYSTEM_CLOCK, Clock


class ReplicaSets:
    """`run` belongs in a TaskGroup of the caller, beside that of `watching`."""

    def __init__(self, client: Client, watching: Watching, recorder: Recorder, clock: Clock = SYSTEM_CLOCK) -> None:
        self._client = client
        self._clock = clock
        kinds = (REPLICA_SETS, PODS)
        self._managing = Managing(client, watching, kinds, _claimant, self._reconcile, backoff=RETRIES)
        self._making = PodMaking(client, REPLICA_SETS, self._managing.things, recorder)
        self._suffixes = suffixes(random.Random())
        self.run = self._managing.run

    async def _reconcile(self, key: ObjectKey) -> Again | None:
        replica_set = self._managing.owners.get(key)
        if replica_set is None:
            return None
        if wait_s := self._making.wait_s(key):
            return Again(wait_s)
        pods = await self._managing.claimed_by(replica_set)
        if pods is None:
            return None
        wanted = replica_sets.plan(replica_set, pods, self._suffixes)
        refusal = await self._making.make(replica_set.metadata, wanted.make)
        await self._making.remove(key, wanted.remove)
        now = self._clock.wall()
        status = replica_sets.status_of(replica_set, pods, refusal.message if refusal else None, now)
        await carry_out(self._client, put_status(REPLICA_SETS, replica_set.metadata, replica_set.status, status))
        if refusal is not None:
            raise refusal
        wait_s = replica_sets.next_available_s(pods, replica_set.spec.min_ready_seconds, now)
        return Again(wait_s) if wait_s else None


def _claimant(replica_set: ReplicaSet) -> Claimant:
    return Claimant(REPLICA_SETS, replica_set.metadata, replica_set.spec.selector)
