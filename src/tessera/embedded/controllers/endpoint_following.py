"""The shell of EndpointSlices: Services and pods in, slices out."""

from tessera.embedded.controllers import endpoints
from tessera.embedded.controllers.marking import mark_controllers
from tessera.embedded.controllers.objects import SERVICES, SLICES, Service
from tessera.embedded.controllers.pods import PODS, Pod
from tessera.embedded.controllers.watching import CONTROLLER, NAMESPACE, Watching
from tessera.embedded.controllers.writes import carry_out
from tessera.embedded.resources.label_selectors import matches
from tessera.kube.caching import Change
from tessera.kube.client import Client
from tessera.kube.objects import ObjectKey
from tessera.kube.reconciler import Reconciler


class EndpointSlices:
    """`run` belongs in a TaskGroup of the caller, beside that of `watching`."""

    def __init__(self, client: Client, watching: Watching) -> None:
        self._client = client
        self._services = watching.follow(SERVICES)
        self._slices = watching.follow(SLICES)
        self._pods = watching.follow(PODS)
        self._reconciler: Reconciler[ObjectKey] = Reconciler("endpoint slices", self._reconcile)
        self._services.subscribe(lambda change: self._reconciler.mark(change.key))
        self._slices.subscribe(mark_controllers(SERVICES, self._reconciler.mark))
        self._pods.subscribe(self._notice_pod)

    async def run(self) -> None:
        for informer in (self._services, self._slices, self._pods):
            await informer.synced()
        await self._reconciler.run()

    async def _reconcile(self, key: ObjectKey) -> None:
        service = self._services.get(key)
        if service is None or not endpoints.selects(service):
            return
        pods = [pod for pod in self._pods.find(NAMESPACE, key.namespace) if _selects(service, pod)]
        slices = self._slices.find(CONTROLLER, service.metadata.uid)
        await carry_out(self._client, endpoints.plan(service, pods, slices))

    def _notice_pod(self, change: Change[Pod]) -> None:
        states = [pod for pod in (change.before, change.after) if pod is not None]
        for service in self._services.find(NAMESPACE, change.key.namespace):
            if endpoints.selects(service) and any(_selects(service, pod) for pod in states):
                self._reconciler.mark(service.metadata.key)


def _selects(service: Service, pod: Pod) -> bool:
    return matches({"matchLabels": service.spec.selector}, pod.metadata.labels)
