"""An API server with a node that runs pods, in the test's own process; kubectl comes from outside."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tessera.apps.api_server import HOST, RUNTIME, compose, keep_administrator, keep_certificate, tls_context
from tessera.apps.serving import Listener, listen, serve_until
from tessera.apps.working import running
from tessera.embedded.access import User
from tessera.embedded.controllers.collecting import Collector
from tessera.embedded.controllers.endpoint_following import EndpointSlices
from tessera.embedded.controllers.objects import SERVICES, SLICES
from tessera.embedded.controllers.watching import Watching
from tessera.embedded.doors.connecting import Connections
from tessera.embedded.doors.service_fronts import ServiceFronts
from tessera.embedded.doors.services import Services
from tessera.embedded.runtime.node_loop import KubeSources, NodeLoop
from tessera.embedded.runtime.runtime import Runtime, Wiring
from tessera.embedded.serving import ApiServer, Site, bootstrap
from tessera.embedded.store import Store
from tessera.kube.access import find_access
from tessera.kube.client import Client, Deletion
from tessera.kube.events import Recorder
from tessera.kube.informer import Informer
from tessera.kube.kinds import PODS, Selection, kind_of
from tessera.kube.watching import ObjectEvent
from testbed.building import Programs
from tests.embedded.runtime.node import QUICK

NODE = "node-a"
ROLES = kind_of("rbac.authorization.k8s.io", "v1", "roles", "Role")
BINDINGS = kind_of("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
PATIENCE_S = 30.0
Object = dict[str, Any]


class Done(NamedTuple):
    code: int
    printed: str
    complaints: str


class Engine:
    def __init__(self, site: Site, client: Client, kubeconfig: Path) -> None:
        self._site = site
        self.client = client
        self.kubeconfig = kubeconfig
        self.port = int(site.address.rpartition(":")[2])
        self._program = str(Programs()["kubectl"])

    async def start(self, *what: str | Object, name: str = "worker", labels: Object | None = None, **spec: Any) -> None:
        containers = [container(one) if isinstance(one, str) else one for one in what]
        placed = {"nodeName": NODE, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
        body = {"metadata": {"name": name, "labels": labels or {}}, "spec": placed | {"containers": containers} | spec}
        await self.client.create(PODS, body, namespace="default")

    async def wait(self, condition: Callable[[Object], Any], name: str = "worker") -> Object:
        """The pod's status as it is when the condition first holds."""
        selection = Selection(namespace="default", fields=f"metadata.name={name}")
        async with asyncio.timeout(PATIENCE_S), self.client.watch(PODS, selection, initial_events=True) as events:
            async for event in events:
                if isinstance(event, ObjectEvent) and condition(status := event.object["status"]):
                    return status
        raise AssertionError("the watch ended")

    async def kubectl(self, *arguments: str, input: bytes | None = None) -> Done:
        process = await self.open_kubectl(*arguments)
        async with asyncio.timeout(PATIENCE_S):
            printed, complaints = await process.communicate(input)
        return Done(process.returncode or 0, printed.decode(), complaints.decode())

    async def open_kubectl(self, *arguments: str) -> asyncio.subprocess.Process:
        pipe, environment = asyncio.subprocess.PIPE, {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        return await asyncio.create_subprocess_exec(
            self._program, *arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
        )

    def admit(self, user: str) -> str:
        """A token of somebody who may do nothing yet."""
        token = secrets.token_urlsafe()
        self._site.tokens.admit(token, User(name=user))
        return token

    async def grant(self, user: str, rules: list[Object]) -> None:
        """These and no others."""
        subjects = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}]
        reference = {"kind": "Role", "apiGroup": "rbac.authorization.k8s.io", "name": user}
        for kind, more in ((ROLES, {"rules": rules}), (BINDINGS, {"subjects": subjects, "roleRef": reference})):
            body = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": user}, **more}
            await self.client.apply(kind, user, body, manager="tests", namespace="default")

    async def clean(self) -> None:
        await self.client.delete_collection(PODS, Selection(namespace="default"), how=Deletion(grace_s=0))
        for one in (await self.client.list(SERVICES, Selection(namespace="default"))).items:
            if one.metadata.name != "kubernetes":
                await self.client.delete(SERVICES, one.metadata.name, namespace="default")


def container(script: str, **more: Any) -> Object:
    return {"name": "main", "image": "tessera.local/machine", "command": ["sh", "-c", script], **more}


@asynccontextmanager
async def running_engine(directory: Path) -> AsyncIterator[Engine]:
    listening = listen(HOST, 0)
    port = listening.getsockname()[1]
    keep_certificate(directory)
    store, over = Store.open(directory / "state.db"), asyncio.Event()
    site = compose(directory, store, port, keep_administrator(directory, port))
    await bootstrap(site)
    listener = Listener(ApiServer(site), HOST, 0, tls_context(directory), listening, web_sockets=True)
    serving = asyncio.ensure_future(serve_until(over, listener, stop_s=1))
    kubeconfig = directory / "kubeconfig"
    try:
        async with Client(find_access(kubeconfig)) as client:
            pods, recorder = Informer(client, PODS), Recorder(client, component="tests", host=NODE)
            watching = Watching(client)
            slices = EndpointSlices(client, watching)
            services = Services(watching.follow(SERVICES), watching.follow(SLICES))
            loop = NodeLoop(client, pods, recorder, [NODE])
            wiring = Wiring(sources=KubeSources(client), changed=loop.changed, hear=loop.hear, names=services.hosts)
            runtime = await Runtime.open(directory / RUNTIME, wiring, settings=QUICK)
            fronts = ServiceFronts(services, recorder, runtime.refresh_names)
            site.nodes = Connections(runtime, services)
            works = (pods.run(), recorder.run(), watching.run(), slices.run(), fronts.run(), loop.run(runtime))
            collector = Collector(client, watching)
            try:
                async with running(*works, *collector.works()):
                    yield Engine(site, client, kubeconfig)
            finally:
                await runtime.close()
    finally:
        over.set()
        await serving
        store.close()
