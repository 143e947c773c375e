"""The shell of StatefulSets: caches in, pods and a status out.

Names are numbers here, so that no pod can be made twice, and none is removed but the one that was seen.
"""

from collections.abc import Iterable

from tessera.embedded.controllers import stateful_sets
from tessera.embedded.controllers.claiming import Claimant, claim
from tessera.embedded.controllers.marking import mark_controllers, mark_suitors
from tessera.embedded.controllers.objects import STATEFUL_SETS, StatefulSet
from tessera.embedded.controllers.pod_making import RETRIES
from tessera.embedded.controllers.pods import PODS
from tessera.embedded.controllers.replica_sets import next_available_s
from tessera.embedded.controllers.watching import CONTROLLER, NAMESPACE, UNMANAGED, Watching
from tessera.embedded.controllers.writes import carry_out, put_status
from tessera.kube.client import Client
from tessera.kube.objects import ObjectKey
from tessera.kube.reconciler import Again, Reconciler
from tessera.kube.timing import SYSTEM_CLOCK, Clock


class StatefulSets:
    """`run` belongs in a TaskGroup of the caller, beside that of `watching`."""

    def __init__(self, client: Client, watching: Watching, clock: Clock = SYSTEM_CLOCK) -> None:
        self._client = client
        self._clock = clock
        self._sets = watching.follow(STATEFUL_SETS)
        self._pods = watching.follow(PODS)
        self._reconciler: Reconciler[ObjectKey] = Reconciler("stateful sets", self._reconcile, backoff=RETRIES)
        self._sets.subscribe(lambda change: self._reconciler.mark(change.key))
        self._pods.subscribe(mark_controllers(STATEFUL_SETS, self._reconciler.mark))
        self._pods.subscribe(mark_suitors(self._claimants, self._reconciler.mark))

    async def run(self) -> None:
        await self._sets.synced()
        await self._pods.synced()
        await self._reconciler.run()

    async def _reconcile(self, key: ObjectKey) -> Again | None:
        one = self._sets.get(key)
        if one is None:
            return None
        managed = self._pods.find(CONTROLLER, one.metadata.uid)
        pods, claims = claim(_claimant(one), PODS, managed, self._pods.find(UNMANAGED, key.namespace))
        if claims:
            await carry_out(self._client, claims)
            return None
        now = self._clock.wall()
        status = stateful_sets.status_of(one, pods, now)
        await carry_out(self._client, put_status(STATEFUL_SETS, one.metadata, one.status, status))
        await carry_out(self._client, stateful_sets.plan(one, pods, now))
        wait_s = next_available_s(pods, one.spec.min_ready_seconds, now)
        return Again(wait_s) if wait_s else None

    def _claimants(self, namespace: str) -> Iterable[Claimant]:
        return map(_claimant, self._sets.find(NAMESPACE, namespace))


def _claimant(stateful_set: StatefulSet) -> Claimant:
    return Claimant(STATEFUL_SETS, stateful_set.metadata, stateful_set.spec.selector)
