"""A kubelet as far as a device plugin sees it: real gRPC over sockets in a directory, and nothing behind them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import Message

from tessera.node.protocols.device_plugin_pb2 import (
    AllocateRequest,
    AllocateResponse,
    ContainerAllocateRequest,
    ContainerAllocateResponse,
    DevicePluginOptions,
    Empty,
    ListAndWatchResponse,
    PreStartContainerRequest,
    PreStartContainerResponse,
    RegisterRequest,
)
from tessera.node.protocols.pod_resources_pb2 import ListPodResourcesRequest, ListPodResourcesResponse
from tessera.node.rpc import unary

PATIENCE_S = 10.0


class FakeKubelet:
    """`start` and `stop` are its life; like the real one it removes every socket that it finds when it starts."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.plugins = root / "device-plugins"
        self.resources = ListPodResourcesResponse()
        self.refusal = ""
        self.refused = 0
        self.registered: asyncio.Queue[RegisterRequest] = asyncio.Queue()
        self._servers: list[grpc.aio.Server] = []
        (root / "pod-resources").mkdir(parents=True)
        self.plugins.mkdir()

    async def start(self) -> None:
        for socket in self.plugins.glob("*.sock"):
            socket.unlink()
        register = {"Register": unary(self._register, RegisterRequest)}
        await self._serve(self.plugins / "kubelet.sock", "v1beta1.Registration", register)
        tell = {"List": unary(self._list, ListPodResourcesRequest)}
        await self._serve(self.root / "pod-resources" / "kubelet.sock", "v1.PodResourcesLister", tell)

    async def stop(self) -> None:
        for server in self._servers:
            await server.stop(None)
        self._servers.clear()

    async def _serve(self, socket: Path, service: str, methods: dict[str, Any]) -> None:
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
        self._servers.append(server)

    async def _register(self, request: RegisterRequest, context: Any) -> Empty:
        if self.refusal:
            self.refused += 1
            await context.abort(grpc.StatusCode.UNKNOWN, self.refusal)
        self.registered.put_nowait(request)
        return Empty()

    async def _list(self, _: ListPodResourcesRequest, __: Any) -> ListPodResourcesResponse:
        return self.resources

    async def next_registration(self) -> RegisterRequest:
        return await asyncio.wait_for(self.registered.get(), PATIENCE_S)

    @asynccontextmanager
    async def calling(self, endpoint: str) -> AsyncGenerator["PluginCalls"]:
        async with grpc.aio.insecure_channel(f"unix:{self.plugins / endpoint}") as channel:
            yield PluginCalls(channel)


class PluginCalls:
    """What a kubelet asks of a plugin that has registered."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    async def options(self) -> DevicePluginOptions:
        return await self._ask("GetDevicePluginOptions", Empty(), DevicePluginOptions)

    async def allocate(self, *containers: list[str]) -> list[ContainerAllocateResponse]:
        asked = [ContainerAllocateRequest(devices_ids=ids) for ids in containers]
        answer = await self._ask("Allocate", AllocateRequest(container_requests=asked), AllocateResponse)
        return list(answer.container_responses)

    async def pre_start(self, ids: list[str]) -> None:
        await self._ask("PreStartContainer", PreStartContainerRequest(devices_ids=ids), PreStartContainerResponse)

    async def health(self) -> AsyncIterator[dict[str, str]]:
        """The health of each tile, whenever the plugin tells it."""
        call = self._channel.unary_stream(
            "/v1beta1.DevicePlugin/ListAndWatch",
            request_serializer=Empty.SerializeToString,
            response_deserializer=ListAndWatchResponse.FromString,
        )
        async for told in call(Empty(), timeout=PATIENCE_S):
            yield {device.ID: device.health for device in told.devices}

    async def _ask(self, method: str, request: Message, answer: Any) -> Any:
        call = self._channel.unary_unary(
            f"/v1beta1.DevicePlugin/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )
        return await call(request, timeout=PATIENCE_S)
