"""The shell of Deployments: caches in, ReplicaSets and a status out."""

from tessera.embedded.controllers import deployments
from tessera.embedded.controllers.claiming import Claimant
from tessera.embedded.controllers.managing import Managing
from tessera.embedded.controllers.objects import DEPLOYMENTS, REPLICA_SETS, Deployment, ReplicaSet
from tessera.embedded.controllers.pods import ENDED, PODS, Pod
from tessera.embedded.controllers.watching import CONTROLLER, Watching
from tessera.embedded.controllers.writes import carry_out
from tessera.kube.caching import Change
from tessera.kube.client import Client
from tessera.kube.objects import ObjectKey
from tessera.kube.reconciler import Again
from tessera.kube.timing import SYSTEM_CLOCK, Clock


class Deployments:
    """`run` belongs in a TaskGroup of the caller, beside that of `watching`."""

    def __init__(self, client: Client, watching: Watching, clock: Clock = SYSTEM_CLOCK) -> None:
        self._client = client
        self._clock = clock
        self._managing = Managing(client, watching, (DEPLOYMENTS, REPLICA_SETS), _claimant, self._reconcile)
        self._pods = watching.follow(PODS)
        self._pods.subscribe(self._notice_pod)

    async def run(self) -> None:
        await self._pods.synced()
        await self._managing.run()

    async def _reconcile(self, key: ObjectKey) -> Again | None:
        deployment = self._managing.owners.get(key)
        if deployment is None:
            return None
        sets = await self._managing.claimed_by(deployment)
        if sets is None:
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
        replica_set = (
            self._managing.things.get(ObjectKey(change.key.namespace, controller.name)) if controller else None
        )
        owner = replica_set.metadata.controller if replica_set else None
        if owner is not None and owner.kind == DEPLOYMENTS.name:
            self._managing.mark(ObjectKey(change.key.namespace, owner.name))


def _claimant(deployment: Deployment) -> Claimant:
    return Claimant(DEPLOYMENTS, deployment.metadata, deployment.spec.selector)
