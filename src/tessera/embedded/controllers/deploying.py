"""The shell of Deployments: caches in, ReplicaSets and a status out."""

from collections.abc import Iterable

from tessera.embedded.controllers import deployments
from tessera.embedded.controllers.claiming import Claimant, claim
from tessera.embedded.controllers.marking import mark_controllers, mark_suitors
from tessera.embedded.controllers.objects import DEPLOYMENTS, REPLICA_SETS, Deployment, ReplicaSet
from tessera.embedded.controllers.pods import ENDED, PODS, Pod
from tessera.embedded.controllers.watching import CONTROLLER, NAMESPACE, UNMANAGED, Watching
from tessera.embedded.controllers.writes import carry_out
from tessera.kube.caching import Change
from tessera.kube.client import Client
from tessera.kube.objects import ObjectKey
from tessera.kube.reconciler import Again, Reconciler
from tessera.kube.timing import SYSTEM_CLOCK, Clock


class Deployments:
    """`run` belongs in a TaskGroup of the caller, beside that of `watching`."""

    def __init__(self, client: Client, watching: Watching, clock: Clock = SYSTEM_CLOCK) -> None:
        self._client = client
        self._clock = clock
        self._deployments = watching.follow(DEPLOYMENTS)
        self._sets = watching.follow(REPLICA_SETS)
        self._pods = watching.follow(PODS)
        self._reconciler: Reconciler[ObjectKey] = Reconciler("deployments", self._reconcile)
        self._deployments.subscribe(lambda change: self._reconciler.mark(change.key))
        self._sets.subscribe(mark_controllers(DEPLOYMENTS, self._reconciler.mark))
        self._sets.subscribe(mark_suitors(self._claimants, self._reconciler.mark))
        self._pods.subscribe(self._notice_pod)

    async def run(self) -> None:
        for informer in (self._deployments, self._sets, self._pods):
            await informer.synced()
        await self._reconciler.run()

    async def _reconcile(self, key: ObjectKey) -> Again | None:
        deployment = self._deployments.get(key)
        if deployment is None:
            return None
        managed = self._sets.find(CONTROLLER, deployment.metadata.uid)
        unmanaged = self._sets.find(UNMANAGED, key.namespace)
        sets, claims = claim(_claimant(deployment), REPLICA_SETS, managed, unmanaged)
        if claims:
            await carry_out(self._client, claims)
            return None
        new = deployments.find_new(deployment, sets)
        old_pods = sum(self._remaining_pods(one) for one in sets if one is not new)
        plan = deployments.plan(deployment, sets, old_pods, self._clock.wall())
        await carry_out(self._client, plan.writes)
        return Again(plan.again_s) if plan.again_s else None

    def _remaining_pods(self, replica_set: ReplicaSet) -> int:
        pods = self._pods.find(CONTROLLER, replica_set.metadata.uid)
        return sum(pod.status.phase not in ENDED for pod in pods)

    def _notice_pod(self, change: Change[Pod]) -> None:
        """The last pod of an old ReplicaSet that goes may be what a new one waits for."""
        gone = change.before if change.after is None else None
        controller = gone.metadata.controller if gone else None
        replica_set = self._sets.get(ObjectKey(change.key.namespace, controller.name)) if controller else None
        owner = replica_set.metadata.controller if replica_set else None
        if owner is not None and owner.kind == DEPLOYMENTS.name:
            self._reconciler.mark(ObjectKey(change.key.namespace, owner.name))

    def _claimants(self, namespace: str) -> Iterable[Claimant]:
        return map(_claimant, self._deployments.find(NAMESPACE, namespace))


def _claimant(deployment: Deployment) -> Claimant:
    return Claimant(DEPLOYMENTS, deployment.metadata, deployment.spec.selector)
