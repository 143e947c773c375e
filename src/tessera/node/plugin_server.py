"""A device plugin at its socket, registered with the kubelet for as long as both live.

A kubelet that starts removes every socket it finds and forgets every plugin. So the kubelet's own socket is watched,
and ours; when either is another one than before, we listen anew and register again.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio
import structlog

from tessera.errors import KubeletFailed
from tessera.kube.timing import SYSTEM_CLOCK, Backoff, Clock
from tessera.node.kubelet import Kubelet
from tessera.node.plugin import OPTIONS, TilePlugin

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
LOOK_AGAIN_S = 0.1
HURRY_S = 0.02
"""While no kubelet listens: a pod that one finds at its start is refused for good if we have not registered by then."""
DEAF_S = 5.0
"""A kubelet that registered us and listens to nobody has given us up."""


class PluginServer:
    """`run` belongs in a TaskGroup of the caller."""

    def __init__(self, plugin: TilePlugin, kubelet: Kubelet, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._plugin = plugin
        self._kubelet = kubelet
        self._clock = clock
        self._backoff = Backoff(first_s=0.5, most_s=5.0)
        self._resource = plugin.kind.resource
        self._socket = kubelet.plugins / f"tessera-{self._resource.replace('/', '_')}.sock"
        self.is_registered = False

    @property
    def is_heard(self) -> bool:
        """The kubelet knows our tiles: from now on it does not turn pods away for want of them."""
        return self.is_registered and self._plugin.listeners > 0

    async def run(self) -> None:
        failures = 0
        while True:
            kubelet = self._kubelet.incarnation()
            if kubelet is None:
                await self._clock.sleep(HURRY_S)
                continue
            try:
                await self._serve(kubelet)
                failures = 0
            except (KubeletFailed, OSError, RuntimeError) as error:
                failures += 1
                log.warning(
                    "device plugin not registered", resource=self._resource, error=str(error), failures=failures
                )
                await self._rest(self._backoff.wait_s(failures), kubelet)

    async def _rest(self, seconds: float, kubelet: tuple[int, int]) -> None:
        """A kubelet that has started anew is not made to wait for what went wrong with the last one."""
        until_s = self._clock.monotonic_s() + seconds
        while self._clock.monotonic_s() < until_s and self._kubelet.incarnation() == kubelet:
            await self._clock.sleep(HURRY_S)

    async def _serve(self, kubelet: tuple[int, int]) -> None:
        """Until the kubelet is another one, or our socket is gone."""
        async with self._listening():
            await self._kubelet.register(self._socket.name, self._resource, OPTIONS)
            log.info("device plugin registered", resource=self._resource)
            self.is_registered = True
            ours = _identity(self._socket)
            heard_s = self._clock.monotonic_s()
            while ours is not None and self._kubelet.incarnation() == kubelet and _identity(self._socket) == ours:
                now_s = self._clock.monotonic_s()
                heard_s = now_s if self._plugin.listeners else heard_s
                if now_s - heard_s > DEAF_S:
                    raise KubeletFailed("the kubelet does not listen to us any more; see the kubelet's log")
                await self._clock.sleep(LOOK_AGAIN_S if self._plugin.listeners else HURRY_S)
            log.info("kubelet started anew", resource=self._resource)

    @asynccontextmanager
    async def _listening(self) -> AsyncGenerator[None]:
        self._socket.unlink(missing_ok=True)
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((self._plugin.handler(),))
        server.add_insecure_port(f"unix:{self._socket}")
        await server.start()
        try:
            yield
        finally:
            self.is_registered = False
            await asyncio.shield(server.stop(None))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
