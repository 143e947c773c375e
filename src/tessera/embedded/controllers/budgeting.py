"""The shell of PodDisruptionBudgets: pods and their controllers in, a status out."""

from tessera.embedded.controllers import budgets
from tessera.embedded.controllers.objects import BUDGETS, REPLICA_SETS, STATEFUL_SETS, Budget
from tessera.embedded.controllers.pods import PODS, Pod
from tessera.embedded.controllers.watching import NAMESPACE, Watching
from tessera.embedded.controllers.writes import carry_out, put_status
from tessera.embedded.resources.label_selectors import matches
from tessera.kube.caching import Change
from tessera.kube.client import Client
from tessera.kube.objects import ObjectKey
from tessera.kube.reconciler import Again, Reconciler
from tessera.kube.timing import SYSTEM_CLOCK, Clock


class Budgets:
    """`run` belongs in a TaskGroup of the caller, beside that of `watching`."""

    def __init__(self, client: Client, watching: Watching, clock: Clock = SYSTEM_CLOCK) -> None:
        self._client = client
        self._clock = clock
        self._budgets = watching.follow(BUDGETS)
        self._pods = watching.follow(PODS)
        self._scaled = (watching.follow(REPLICA_SETS), watching.follow(STATEFUL_SETS))
        self._reconciler: Reconciler[ObjectKey] = Reconciler("disruption budgets", self._reconcile)
        self._budgets.subscribe(lambda change: self._reconciler.mark(change.key))
        self._pods.subscribe(self._notice_pod)
        for scaled in self._scaled:
            scaled.subscribe(lambda change: self._mark_all_in(change.key.namespace))

    async def run(self) -> None:
        for informer in (self._budgets, self._pods, *self._scaled):
            await informer.synced()
        await self._reconciler.run()

    async def _reconcile(self, key: ObjectKey) -> Again | None:
        budget = self._budgets.get(key)
        if budget is None or budget.metadata.is_going:
            return None
        pods = [pod for pod in self._pods.find(NAMESPACE, key.namespace) if _selects(budget, pod)]
        scales = {
            one.metadata.uid: one.spec.replicas
            for scaled in self._scaled
            for one in scaled.find(NAMESPACE, key.namespace)
        }
        now = self._clock.wall()
        status = budgets.status_of(budget, pods, scales, now)
        await carry_out(self._client, put_status(BUDGETS, budget.metadata, budget.status, status))
        wait_s = budgets.look_again_s(status, now)
        return Again(wait_s) if wait_s else None

    def _notice_pod(self, change: Change[Pod]) -> None:
        states = [pod for pod in (change.before, change.after) if pod is not None]
        for budget in self._budgets.find(NAMESPACE, change.key.namespace):
            if any(_selects(budget, pod) for pod in states):
                self._reconciler.mark(budget.metadata.key)

    def _mark_all_in(self, namespace: str) -> None:
        for budget in self._budgets.find(NAMESPACE, namespace):
            self._reconciler.mark(budget.metadata.key)


def _selects(budget: Budget, pod: Pod) -> bool:
    return matches(budget.spec.selector, pod.metadata.labels)
