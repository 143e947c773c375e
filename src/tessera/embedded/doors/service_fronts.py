"""The addresses of Services, listened at and passed on to the pods behind them; and their names, told to all pods.

All of 127/8 is this machine, so a Service can have an address of its own as pods have. There is one network for all,
which makes one rule: nothing listens for a Service before a pod of it does. A pod that listens at every address would
otherwise find its port taken, by the very Service that leads to it. Where it came first and the port is the same, it
answers at the Service's address by itself.
"""

import asyncio
import errno
from collections.abc import Callable

import structlog

from tessera.embedded.doors.backends import Backend, Front, fronts_of
from tessera.embedded.doors.relaying import connect, relay
from tessera.embedded.doors.services import Services
from tessera.kube.event_series import ObjectReference
from tessera.kube.events import Recorder
from tessera.kube.objects import ObjectKey
from tessera.kube.reconciler import Again, Reconciler

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
LOOK_AGAIN_S = 0.2
TRY_AGAIN_S = 10.0


class ServiceFronts:
    """`refresh_names` makes pods look up their names anew."""

    def __init__(self, services: Services, recorder: Recorder, refresh_names: Callable[[], None]) -> None:
        self._services = services
        self._recorder = recorder
        self._refresh_names = refresh_names
        self._open: dict[ObjectKey, dict[Front, asyncio.Server]] = {}
        self._relays: set[asyncio.Task[None]] = set()
        self._turn = 0
        self._reconciler: Reconciler[ObjectKey] = Reconciler("service fronts", self._reconcile)

    async def run(self) -> None:
        """Until it is cancelled."""
        self._services.watch(self._reconciler.mark)
        try:
            await self._reconciler.run()
        finally:
            for server in [server for servers in self._open.values() for server in servers.values()]:
                server.close()
            relays = list(self._relays)
            for task in relays:
                task.cancel()
            await asyncio.gather(*relays, return_exceptions=True)

    async def _reconcile(self, key: ObjectKey) -> Again | None:
        if self._services.note_names(key):
            self._refresh_names()
        service = self._services.get(key)
        fronts = fronts_of(service) if service else []
        wanted = [front for front in fronts if self._services.backends(key, front.name)]
        servers = self._open.setdefault(key, {})
        for front in [front for front in servers if front not in wanted]:
            servers.pop(front).close()
        waits_s = [await self._listen(key, front) for front in wanted if front not in servers]
        if not servers:
            del self._open[key]
        return Again(min(waits_s)) if any(waits_s) else None

    async def _listen(self, key: ObjectKey, front: Front) -> float:
        """How many seconds later to try again; 0, if there is nothing more to do."""
        backends = self._services.backends(key, front.name)
        if not await _anybody_listens(backends):
            return LOOK_AGAIN_S

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._serve(key, front, reader, writer)

        try:
            self._open[key][front] = await asyncio.start_server(serve, front.address, front.port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and any(one.port == front.port for one in backends):
                return 0.0
            self._complain(key, front, error)
            return TRY_AGAIN_S
        log.info("service listened for", service=str(key), address=front.address, port=front.port)
        return 0.0

    async def _serve(
        self, key: ObjectKey, front: Front, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._relays.add(task)
        try:
            peer = await connect(self._in_turn(self._services.backends(key, front.name)))
            if peer is not None:
                await relay((reader, writer), peer)
        finally:
            writer.close()
            self._relays.discard(task)

    def _in_turn(self, backends: list[Backend]) -> list[Backend]:
        """Another one first each time."""
        self._turn += 1
        first = self._turn % len(backends) if backends else 0
        return backends[first:] + backends[:first]

    def _complain(self, key: ObjectKey, front: Front, error: OSError) -> None:
        service = self._services.get(key)
        why = error.strerror or type(error).__name__
        log.warning("service not listened for", service=str(key), address=front.address, port=front.port, error=why)
        hint = "; ports below 1024 need root" if error.errno == errno.EACCES else ""
        message = (
            f"Cannot listen at {front.address}:{front.port}: {why}{hint}; its pods are reached by their own addresses"
        )
        uid = service.metadata.uid if service else ""
        about = ObjectReference(kind="Service", name=key.name, namespace=key.namespace, uid=uid)
        self._recorder.warning(about, "PortNotOpened", message)


async def _anybody_listens(backends: list[Backend]) -> bool:
    peer = await connect(backends)
    if peer is not None:
        peer[1].transport.abort()
    return peer is not None
