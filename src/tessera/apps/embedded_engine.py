"""The embedded engine: API server, controllers, scheduler and nodes in one process, each talking to the first alone.

They are clients like any other, each as somebody, over loopback. Their tokens are made at each start and kept nowhere.
"""

import asyncio
import secrets
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from tessera.apps.api_server import HOST, compose, keep_administrator, keep_certificate, tls_context
from tessera.apps.embedded_admission import SCHEDULER, install_admission
from tessera.apps.embedded_components import Components
from tessera.apps.embedded_doors import EmbeddedDoors
from tessera.apps.embedded_logs import ComponentLogs
from tessera.apps.embedded_machine import node_names
from tessera.apps.embedded_operators import EmbeddedOperators
from tessera.apps.embedded_pods import EmbeddedPods
from tessera.apps.embedded_scheduling import EmbeddedScheduling
from tessera.apps.serving import Listener, listen, serve_until, set_at_signals
from tessera.apps.state_directory import EngineSettings, StateDirectory
from tessera.apps.working import Work, running
from tessera.embedded.access.users import MASTERS, User
from tessera.embedded.controllers.running import CONNECTIONS, Controllers
from tessera.embedded.serving import ApiServer, Site, bootstrap
from tessera.embedded.store import Store
from tessera.errors import InvalidRequest, NotReady
from tessera.kube.access import Access
from tessera.kube.client import Client
from tessera.kube.credentials import Credential, ReadCredentials, bearer
from tessera.kube.tls import Trust
from tessera.kube.transport import Limits
from tessera.node.terms import Permitted
from tessera.scheduler.profiles import load_profiles

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
CONTROLLERS, NODES, OPERATORS = "system:kube-controller-manager", "system:tessera:nodes", "system:tessera:operators"
STOP_S = 1
READY_S = 60.0
LOOK_AGAIN_S = 0.01


class Ports:
    """Sockets that listen already, so that nobody else takes their ports: for the API server and for the webhook."""

    def __init__(self, wanted: int, before: int) -> None:
        self.api = _listen(wanted, before)
        self.webhook = listen(HOST, 0)

    @property
    def api_port(self) -> int:
        return _port(self.api)

    @property
    def webhook_url(self) -> str:
        return f"https://{HOST}:{_port(self.webhook)}"


def _listen(wanted: int, before: int) -> socket.socket:
    """Where it was before, if that is free and nothing else is wanted."""
    if wanted or not before:
        return listen(HOST, wanted)
    try:
        return listen(HOST, before)
    except InvalidRequest:
        return listen(HOST, 0)


def _port(listening: socket.socket) -> int:
    return listening.getsockname()[1]


async def run_engine(
    directory: StateDirectory, settings: EngineSettings, ports: Ports, store: Store, ready: Callable[[], None]
) -> None:
    """Until SIGTERM or SIGINT; `ready` is called once, when pods can be run."""
    logs = ComponentLogs(directory.path / "logs")
    logs.configure()
    over, closed = asyncio.Event(), asyncio.Event()
    set_at_signals(over)
    engine = await Engine.open(directory, settings, ports, store, logs)
    serving = asyncio.create_task(engine.serve_until(closed))
    try:
        async with engine.clients(), engine.working():
            await engine.until_ready(over)
            if not over.is_set():
                log.info("engine ready", port=ports.api_port)
                ready()
            await over.wait()
    finally:
        closed.set()
        await serving
        log.info("engine stopped")


class Engine:
    """Made by `open`."""

    def __init__(
        self, directory: StateDirectory, settings: EngineSettings, ports: Ports, site: Site, logs: ComponentLogs
    ) -> None:
        self._path = directory.path
        self._names = node_names(settings.nodes)
        self._ports = ports
        self._site = site
        self._authority = site.authority.encode()
        self._scheduler_client, self._node_client = self._client(SCHEDULER), self._client(NODES)
        self._controller_client, self._operator_client = self._client(CONTROLLERS), self._client(OPERATORS)
        profiles = load_profiles(Path(settings.scheduler_config)) if settings.scheduler_config else ()
        self._scheduling = EmbeddedScheduling(self._scheduler_client, profiles)
        self._controllers = Controllers(self._controller_client, self._authority)
        self._operators = EmbeddedOperators(self._operator_client, self._scheduling.world.catalogue, self._path / "mpi")
        self._pods = EmbeddedPods(
            self._node_client,
            self._scheduling.world.catalogue,
            self._names,
            self._path,
            cards=settings.cards,
            cards_file=Path(settings.cards_file) if settings.cards_file else None,
            permitted=Permitted(cores_policy=settings.cores_policy, spill_percent=settings.spill_percent),
        )
        self._components = Components(self._node_client, logs, self._names, self._pods.address_of_agent)

    @classmethod
    async def open(
        cls, directory: StateDirectory, settings: EngineSettings, ports: Ports, store: Store, logs: ComponentLogs
    ) -> "Engine":
        keep_certificate(directory.path)
        administrators = keep_administrator(directory.path, ports.api_port)
        site = compose(directory.path, store, ports.api_port, administrators)
        await bootstrap(site)
        return cls(directory, settings, ports, site, logs)

    async def serve_until(self, closed: asyncio.Event) -> None:
        tls, ports = tls_context(self._path), self._ports
        await serve_until(
            closed,
            Listener(ApiServer(self._site), HOST, 0, tls, ports.api, web_sockets=True),
            Listener(self._scheduling.app(), HOST, 0, tls, ports.webhook),
            stop_s=STOP_S,
        )

    @asynccontextmanager
    async def clients(self) -> AsyncGenerator[None]:
        async with self._scheduler_client, self._controller_client, self._operator_client, self._node_client:
            yield

    @asynccontextmanager
    async def working(self) -> AsyncGenerator[None]:
        """Everything runs for as long as the block lasts, and nothing is left of it afterwards."""
        port = str(self._ports.api_port)
        variables = {"KUBERNETES_SERVICE_HOST": HOST, "KUBERNETES_SERVICE_PORT": port}
        runtime = await self._pods.open({**variables, "KUBERNETES_SERVICE_PORT_HTTPS": port})
        self._site.nodes = EmbeddedDoors(runtime, self._pods.services, self._components)
        try:
            await self._operators.install(shows_mounts=runtime.shows_mounts)
            async with running(*self._works()):
                yield
        finally:
            await self._pods.close()

    def _works(self) -> list[Work]:
        parts = (self._scheduling, self._controllers, self._operators, self._pods, self._components)
        return [work for part in parts for work in part.works()]

    async def until_ready(self, over: asyncio.Event) -> None:
        """Or until it is over before that. Raises NotReady, if it takes too long."""
        try:
            async with asyncio.timeout(READY_S):
                catalogue = self._scheduling.world.catalogue
                await install_admission(self._scheduler_client, catalogue, self._ports.webhook_url, self._authority)
                await self._components.show()
                while not self._is_ready() and not over.is_set():
                    await asyncio.sleep(LOOK_AGAIN_S)
        except TimeoutError:
            raise NotReady(f"the engine is not ready after {READY_S:.0f} s; see {self._path / 'logs'}") from None

    def _is_ready(self) -> bool:
        return self._scheduling.decides() and self._pods.machine.is_ready() and self._scheduling.knows(self._names)

    def _client(self, user: str) -> Client:
        """As this user, who may do everything: what is forbidden to others by policy is permitted by name."""
        token = secrets.token_urlsafe()
        self._site.tokens.admit(token, User(name=user, groups=(MASTERS,)))
        access = Access(
            server=f"https://{HOST}:{self._ports.api_port}",
            credentials=ReadCredentials(lambda: Credential((bearer(token),))),
            trust=Trust(authorities=self._authority),
        )
        return Client(access, limits=Limits(connections=CONNECTIONS + len(self._names)))
