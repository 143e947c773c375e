"""The device plugin of one kind of tiles: what the kubelet calls.

`Allocate` answers by the tiles alone, so it never has to guess which pod it is for; `PreStartContainer` decides.
"""

from collections.abc import AsyncIterator, Callable, Mapping

import grpc
import structlog

from tessera.errors import TesseraError
from tessera.node.early import EarlyStarter
from tessera.node.kubelet import PLUGIN_API
from tessera.node.news import News
from tessera.node.protocols.device_plugin_pb2 import (
    AllocateRequest,
    AllocateResponse,
    CDIDevice,
    ContainerAllocateResponse,
    Device,
    DevicePluginOptions,
    DeviceSpec,
    Empty,
    ListAndWatchResponse,
    Mount,
    PreferredAllocationRequest,
    PreferredAllocationResponse,
    PreStartContainerRequest,
    PreStartContainerResponse,
)
from tessera.node.rpc import Context, stream, unary
from tessera.node.starting import Starter
from tessera.node.tile_store import TileStore
from tessera.node.tiles import TileKind, cdi_name, mount_point

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
OPTIONS = DevicePluginOptions(pre_start_required=True)
_HEALTH = {True: "Healthy", False: "Unhealthy"}
Health = Callable[[], Mapping[str, bool]]


class TilePlugin:
    """`health` gives every tile and whether it is healthy, `news` tells when that may have changed."""

    def __init__(self, kind: TileKind, starter: Starter, store: TileStore, health: Health, news: News) -> None:
        self.kind = kind
        self._starter = starter
        self._store = store
        self._health = health
        self._news = news
        self.listeners = 0
        """How many hear of our tiles: the kubelet, once it has registered us and while its stream stands."""

    async def options(self, _: Empty, __: Context) -> DevicePluginOptions:
        return OPTIONS

    async def list_and_watch(self, _: Empty, __: Context) -> AsyncIterator[ListAndWatchResponse]:
        told: Mapping[str, bool] | None = None
        self.listeners += 1
        try:
            while True:
                changed = self._news.upcoming()
                health = self._health()
                if health != told:
                    told = health
                    ill = sum(not healthy for healthy in health.values())
                    log.info("tiles told", resource=self.kind.resource, tiles=len(health), unhealthy=ill)
                    yield _describe(health)
                await changed.wait()
        finally:
            self.listeners -= 1

    async def allocate(self, request: AllocateRequest, context: Context) -> AllocateResponse:
        try:
            answers = [await self._answer(frozenset(asked.devices_ids)) for asked in request.container_requests]
        except TesseraError as error:
            log.warning("container not admitted", resource=self.kind.resource, why=str(error))
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        return AllocateResponse(container_responses=answers)

    async def _answer(self, ids: frozenset[str]) -> ContainerAllocateResponse:
        token = self._starter.answer(self.kind.resource, ids)
        return ContainerAllocateResponse(
            mounts=[self._tile_mount(token)], cdi_devices=[CDIDevice(name=cdi_name(token))]
        )

    def _tile_mount(self, token: str) -> Mount:
        return Mount(
            container_path=mount_point(self.kind.vendor.name),
            host_path=str(self._store.directory(token)),
            read_only=True,
        )

    async def prefer(self, request: PreferredAllocationRequest, _: Context) -> PreferredAllocationResponse:
        """All tiles are alike. Not advertised, but a kubelet that asks gets no error."""
        return PreferredAllocationResponse(container_responses=[{} for _ in request.container_requests])

    async def pre_start(self, request: PreStartContainerRequest, context: Context) -> PreStartContainerResponse:
        try:
            await self._start(frozenset(request.devices_ids))
        except TesseraError as error:
            log.warning("container not started", resource=self.kind.resource, why=str(error))
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        self._news.spread()
        return PreStartContainerResponse()

    async def _start(self, ids: frozenset[str]) -> None:
        await self._starter.start(self.kind, ids)

    def handler(self) -> grpc.GenericRpcHandler:
        methods = {
            "GetDevicePluginOptions": unary(self.options, Empty),
            "ListAndWatch": stream(self.list_and_watch, Empty),
            "GetPreferredAllocation": unary(self.prefer, PreferredAllocationRequest),
            "Allocate": unary(self.allocate, AllocateRequest),
            "PreStartContainer": unary(self.pre_start, PreStartContainerRequest),
        }
        return grpc.method_handlers_generic_handler(f"{PLUGIN_API}.DevicePlugin", methods)


def _describe(health: Mapping[str, bool]) -> ListAndWatchResponse:
    return ListAndWatchResponse(devices=[Device(ID=id_, health=_HEALTH[ok]) for id_, ok in health.items()])


class EarlyPlugin(TilePlugin):
    """For a container runtime without CDI: everything is in the answer to `Allocate`."""

    def __init__(
        self, kind: TileKind, early: EarlyStarter, starter: Starter, store: TileStore, health: Health, news: News
    ) -> None:
        super().__init__(kind, starter, store, health, news)
        self._early = early

    async def _answer(self, ids: frozenset[str]) -> ContainerAllocateResponse:
        token, edits = await self._early.answer(self.kind, ids)
        mounts = [
            Mount(container_path=mount.container_path, host_path=mount.host_path, read_only=mount.read_only)
            for mount in edits.mounts
        ]
        devices = [DeviceSpec(container_path=path, host_path=path, permissions="rw") for path in edits.device_paths]
        return ContainerAllocateResponse(
            envs=edits.environment, mounts=[self._tile_mount(token), *mounts], devices=devices
        )

    async def _start(self, ids: frozenset[str]) -> None:
        await self._early.start(self.kind, ids)
