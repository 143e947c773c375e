"""Everything of the engine that is on nodes: the nodes, their cards, the pods that run there, and ways to Services."""

import socket
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tessera.apps.api_server import RUNTIME
from tessera.apps.embedded_components import NOT_COMPONENTS
from tessera.apps.embedded_machine import Machine
from tessera.apps.embedded_node import Around, EmbeddedNode
from tessera.apps.embedded_pages import serve_figures
from tessera.apps.working import Work
from tessera.embedded.controllers.objects import SERVICES, SLICES
from tessera.embedded.controllers.watching import Watching
from tessera.embedded.documents import Frozen
from tessera.embedded.doors.service_fronts import ServiceFronts
from tessera.embedded.doors.services import Services
from tessera.embedded.runtime.node_loop import KubeSources, NodeLoop
from tessera.embedded.runtime.runtime import Runtime, Wiring
from tessera.embedded.runtime.sources import Additions
from tessera.kube.caching import Change
from tessera.kube.client import Client
from tessera.kube.events import Recorder
from tessera.kube.informer import Informer
from tessera.kube.kinds import PODS
from tessera.kube.objects import Document
from tessera.model.catalogue import Catalogue
from tessera.node.terms import NOTHING_MORE, Permitted
from tessera.vendors.backends import CardSources, find_cards
from tessera.vendors.simulated_driver import driver_for_processes, find_libraries

BY_UID = "uid"
COMPONENT = "kubelet"


class EmbeddedPods:
    """`open` before `works`, and `close` after them. `cards` and `cards_file` describe simulated ones."""

    def __init__(
        self,
        client: Client,
        catalogue: Catalogue,
        names: Sequence[str],
        directory: Path,
        *,
        cards: str = "",
        cards_file: Path | None = None,
        permitted: Permitted = NOTHING_MORE,
    ) -> None:
        self._client = client
        self._directory = directory
        self._informer = Informer(client, PODS, NOT_COMPONENTS, indexes={BY_UID: _uid_of})
        self._recorder = Recorder(client, component=COMPONENT, host=socket.gethostname())
        self._loop = NodeLoop(client, self._informer, self._recorder, names)
        self._runtime: Runtime | None = None
        around = Around(
            pods_known=self._informer.synced, find_pod=self._find_pod, alive=self._alive, pod_of=self._pod_of
        )
        libraries = find_libraries() if cards or cards_file else None

        def sources_of(name: str) -> CardSources:
            driver = driver_for_processes(libraries, directory / "nodes" / name / "sim") if libraries else None
            return find_cards(name, catalogue, plan=cards, plan_file=cards_file, driver=driver)

        self._nodes = {
            name: EmbeddedNode(client, name, catalogue, sources_of(name), directory / "nodes" / name, around, permitted)
            for name in names
        }
        self._informer.subscribe(self._notice)
        self.machine = Machine(client, tuple(self._nodes.values()))
        self._watching = Watching(client)
        self.services = Services(self._watching.follow(SERVICES), self._watching.follow(SLICES))

    async def open(self, variables: Mapping[str, str]) -> Runtime:
        """Whatever a former engine left running here is ended."""
        wiring = Wiring(
            sources=KubeSources(self._client),
            changed=self._loop.changed,
            hear=self._loop.hear,
            prepare=self._prepare,
            names=self.services.hosts,
            variables=variables,
        )
        self._runtime = await Runtime.open(self._directory / RUNTIME, wiring)
        for name in self._nodes:
            self.address_of_agent(name)
        return self._runtime

    def works(self) -> list[Work]:
        assert self._runtime is not None, "open comes first"
        fronts = ServiceFronts(self.services, self._recorder, self._runtime.refresh_names)
        own = [self._informer.run(), self._recorder.run(), self._loop.run(self._runtime)]
        figures = {self.address_of_agent(name): node.figures.registry for name, node in self._nodes.items()}
        own += [self._watching.run(), fronts.run(), serve_figures(figures)]
        return [*own, *self.machine.works(), *(work for node in self._nodes.values() for work in node.works())]

    def address_of_agent(self, node: str) -> str:
        """Of the pod that stands for what a node has of us. The first that are taken, so the same at each start."""
        assert self._runtime is not None, "open comes first"
        return self._runtime.take_address(f"agent of {node}")

    async def close(self) -> None:
        if self._runtime is not None:
            await self._runtime.close()

    async def _prepare(self, pod: Frozen, container: str) -> Additions:
        return await self._nodes[pod["spec"]["nodeName"]].prepare(pod, container)

    def _notice(self, change: Change[Document]) -> None:
        """Whoever has ended gives back what its node tells of it, and whoever was given other limits gets them."""
        pod = change.after or change.before or {}
        if node := self._nodes.get(pod.get("spec", {}).get("nodeName", "")):
            node.pod_changed(change.after)

    def _find_pod(self, uid: str) -> Document | None:
        return next(iter(self._informer.find(BY_UID, uid)), None)

    def _alive(self, uids: Collection[str]) -> set[str]:
        runtime = self._runtime
        return {uid for uid in uids if runtime is not None and not runtime.is_over(uid)}

    def _pod_of(self, pid: int) -> str | None:
        return self._runtime.pod_of(pid) if self._runtime else None


def _uid_of(pod: Document) -> tuple[str, ...]:
    return (pod["metadata"]["uid"],)
