"""The shell of ReplicaSets: caches in, pods and a status out."""

import random
from collections.abc import Iterable

from tessera.embedded.controllers import replica_sets
from tessera.embedded.controllers.claiming import Claimant, claim
from tessera.embedded.controllers.marking import mark_controllers, mark_suitors
from tessera.embedded.controllers.objects import REPLICA_SETS, ReplicaSet
from tessera.embedded.controllers.pod_making import RETRIES, PodMaking
from tessera.embedded.controllers.pods import PODS, suffixes
from tessera.embedded.controllers.watching import CONTROLLER, NAMESPACE, UNMANAGED, Watching
from tessera.embedded.controllers.writes import carry_out, put_status
from tessera.kube.client import Client
from tessera.kube.objects import ObjectKey
from tessera.kube.reconciler import Again, Reconciler
from tessera.kube.timing import SYSTEM_CLOCK, Clock


class ReplicaSets:
    """`run` belongs in a TaskGroup of the caller, beside that of `watching`."""

    def __init__(self, client: Client, watching: Watching, clock: Clock = SYSTEM_CLOCK) -> None:
        self._client = client
        self._clock = clock
        self._sets = watching.follow(REPLICA_SETS)
        self._pods = watching.follow(PODS)
        self._making = PodMaking(client, self._pods)
        self._suffixes = suffixes(random.Random())
        self._reconciler: Reconciler[ObjectKey] = Reconciler("replica sets", self._reconcile, backoff=RETRIES)
        self._sets.subscribe(lambda change: self._reconciler.mark(change.key))
        self._pods.subscribe(mark_controllers(REPLICA_SETS, self._reconciler.mark))
        self._pods.subscribe(mark_suitors(self._claimants, self._reconciler.mark))

    async def run(self) -> None:
        await self._sets.synced()
        await self._pods.synced()
        await self._reconciler.run()

    async def _reconcile(self, key: ObjectKey) -> Again | None:
        replica_set = self._sets.get(key)
        if replica_set is None:
            return None
        if wait_s := self._making.wait_s(key):
            return Again(wait_s)
        managed = self._pods.find(CONTROLLER, replica_set.metadata.uid)
        pods, claims = claim(_claimant(replica_set), PODS, managed, self._pods.find(UNMANAGED, key.namespace))
        if claims:
            await carry_out(self._client, claims)
            return None
        wanted = replica_sets.plan(replica_set, pods, self._suffixes)
        refusal = await self._making.make(key, wanted.make)
        await self._making.remove(key, wanted.remove)
        now = self._clock.wall()
        status = replica_sets.status_of(replica_set, pods, refusal.message if refusal else None, now)
        await carry_out(self._client, put_status(REPLICA_SETS, replica_set.metadata, replica_set.status, status))
        if refusal is not None:
            raise refusal
        wait_s = replica_sets.next_available_s(pods, replica_set.spec.min_ready_seconds, now)
        return Again(wait_s) if wait_s else None

    def _claimants(self, namespace: str) -> Iterable[Claimant]:
        return map(_claimant, self._sets.find(NAMESPACE, namespace))


def _claimant(replica_set: ReplicaSet) -> Claimant:
    return Claimant(REPLICA_SETS, replica_set.metadata, replica_set.spec.selector)
