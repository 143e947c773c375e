"""`python -m kpu.torch.server`: puts the parts together, listens, and stops in good order."""

import asyncio
import logging
import signal
import sys
from collections.abc import Sequence

import grpc

from kpu.errors import KpuError
from kpu.machine import keep_freed_memory
from kpu.sharing.allowance import Allowance
from kpu.sharing.door import open_door
from kpu.sharing.limits import Limits
from kpu.sharing.reception import bypass_finder, greet_handler
from kpu.sharing.rooms import IDLE_SECONDS, WarmRooms
from kpu.tensors import the_torch
from kpu.torch.access import TokenGate
from kpu.torch.calls import Calls
from kpu.torch.health import Health
from kpu.torch.hook_threads import HookThreads
from kpu.torch.hooks import load_hooks
from kpu.torch.logs import facts, set_up_logging
from kpu.torch.memory import Bounds, Memory
from kpu.torch.metrics import ANY_ADDRESS, Metrics, serve_metrics
from kpu.torch.service import SERVICE, TensorService
from kpu.torch.settings import Settings, SettingsError, read_settings, refuse_what_is_no_certificate
from kpu.wire.splitting import LARGEST_MESSAGE_BYTES

log = logging.getLogger("kpu.torch.server")

READ_AHEAD_BYTES = 4 << 20
LOOK_SECONDS = 0.05
QUIET_SECONDS = 1.0
"""After so long without a call nobody is waited for: what a call said last is on its way by then."""


class TensorServer:
    """A server and everything it is made of."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.memory = Memory(
            Bounds(settings.memory_bytes, settings.store_bytes, settings.max_tensors, settings.wait_seconds)
        )
        self.metrics = Metrics(self._gauges)
        self.calls = Calls(self.memory, self.metrics, settings.idle_seconds)
        hooks = load_hooks(settings.hooks)
        hooks.received = self.memory.kept
        self._hook_threads = HookThreads(settings.hook_seconds)
        self.service = TensorService(
            self.calls, hooks, self._hook_threads, settings.limits, settings.max_tensors, settings.chunk_bytes
        )
        self.rooms = WarmRooms(Allowance(settings.memory_bytes // 8, self.memory.total))
        self.service.room = self.rooms.make
        self.health = Health(SERVICE)
        self.door = open_door(settings.shared_socket, Limits.of_memory(settings.memory_bytes), self.memory.total)
        self.memory.part_with_idle = self._part_with_idle
        if self.door is not None:
            self.service.find_bypass = bypass_finder(self.door)
        sharing = (greet_handler(self.door),) if self.door is not None else ()
        self._grpc = grpc.aio.server(
            handlers=(self.service.handler(), self.health.handler(), *sharing),
            interceptors=(TokenGate(settings.token),) if settings.token else (),
            options=_options(settings),
        )
        self._metrics_server: asyncio.Server | None = None

    async def start(self) -> int:
        """Listen; returns the port."""
        settings = self.settings
        port = self._bind(settings.host)
        if settings.metrics_port is not None:
            self._metrics_server = await serve_metrics(self.metrics, settings.host, settings.metrics_port)
            log.info("serving metrics %s", facts(metrics_port=self._metrics_server.sockets[0].getsockname()[1]))
        await self._grpc.start()
        self.health.set_serving(True)
        if settings.token is None:
            log.warning("no token is set, everybody who reaches this port may call")
        return port

    async def stop(self) -> None:
        """Say that no more calls are wanted, give those under way their grace, and be gone.

        Whoever kills the server while a call goes on shall find nothing left of it.
        """
        if self.door is not None:
            self.door.hide()
        await self.health.tell_that_it_stops()
        stopping = asyncio.create_task(self._grpc.stop(self.settings.grace_seconds))
        await self._wait_for_calls(stopping)
        await self._grpc.stop(None)
        await stopping
        self._hook_threads.close()
        if self.door is not None:
            self.door.close()
        if self._metrics_server is not None:
            self._metrics_server.close()

    async def air_rooms(self) -> None:
        """Give back what memory nobody uses any more, for as long as the server runs."""
        while True:
            await asyncio.sleep(IDLE_SECONDS)
            self.rooms.expire()

    async def _wait_for_calls(self, stopping: asyncio.Task[None]) -> None:
        """Until they have ended, or their grace has. gRPC would wait as well for who connects and says nothing."""
        quiet_seconds = 0.0
        while quiet_seconds < QUIET_SECONDS and not stopping.done():
            await asyncio.wait({stopping}, timeout=LOOK_SECONDS)
            quiet_seconds = 0.0 if self.calls.in_flight else quiet_seconds + LOOK_SECONDS

    def _bind(self, host: str) -> int:
        address = f"[{host}]" if ":" in host and not host.startswith("[") else host
        try:
            return self._add_port(f"{address}:{self.settings.port}")
        except RuntimeError:
            if host.strip("[]") != ANY_ADDRESS:
                raise
            return self._add_port(f"0.0.0.0:{self.settings.port}")

    def _add_port(self, address: str) -> int:
        if self.settings.tls is None:
            return self._grpc.add_insecure_port(address)
        certificate, key = (path.read_bytes() for path in self.settings.tls)
        try:
            return self._grpc.add_secure_port(address, grpc.ssl_server_credentials([(key, certificate)]))
        except RuntimeError:
            refuse_what_is_no_certificate(*self.settings.tls)
            raise

    def _part_with_idle(self) -> None:
        self.rooms.clear()
        if self.door is not None:
            self.door.part_with_idle()

    def _gauges(self) -> dict[str, float]:
        return {
            "kpu_calls_in_flight": self.calls.in_flight,
            "kpu_stored_tensors": len(self.memory.kept),
            "kpu_stored_bytes": self.memory.kept_bytes,
            "kpu_evicted_tensors_total": self.memory.evicted_tensors,
            "kpu_under_way_bytes": self.memory.under_way_bytes,
            "kpu_memory_limit_bytes": self.settings.memory_bytes,
        }


async def serve(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT. Torch takes seconds to load, and nobody is to be kept waiting for it later."""
    torch = the_torch()
    server = TensorServer(settings)
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    port = await server.start()
    log.info(
        "serving tensors %s",
        facts(host=settings.host, port=port, torch=torch and torch.__version__, memory_bytes=settings.memory_bytes),
    )
    airing = asyncio.create_task(server.air_rooms())
    await stopping.wait()
    airing.cancel()
    log.info("stopping %s", facts(in_flight=server.calls.in_flight, grace_s=settings.grace_seconds))
    await server.stop()


def main(arguments: Sequence[str] | None = None) -> None:
    try:
        settings = read_settings(sys.argv[1:] if arguments is None else arguments)
        set_up_logging(settings.log_level)
        keep_freed_memory()
        asyncio.run(serve(settings))
    except (SettingsError, KpuError, OSError, RuntimeError, ImportError, AttributeError, ValueError) as error:
        sys.exit(f"kpu.torch.server: {error}")


def _options(settings: Settings) -> list[tuple[str, int]]:
    keepalive_ms = int(settings.keepalive_seconds * 1000)
    return [
        ("grpc.max_receive_message_length", LARGEST_MESSAGE_BYTES),
        ("grpc.max_send_message_length", -1),
        # gRPC would read ahead as much as the network carries, also for a call that waits for room.
        ("grpc.http2.lookahead_bytes", READ_AHEAD_BYTES),
        ("grpc.http2.bdp_probe", 0),
        ("grpc.so_reuseport", 0),  # a second server on the port is told, and does not share it
        ("grpc.keepalive_time_ms", keepalive_ms),
        ("grpc.keepalive_timeout_ms", max(1000, keepalive_ms // 2)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 1000),
    ]


if __name__ == "__main__":
    main()
