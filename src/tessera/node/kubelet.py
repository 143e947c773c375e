"""The kubelet of this node, as far as we talk to it: its sockets and the one file of it that we read."""

from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

import grpc
import grpc.aio

from tessera.errors import KubeletFailed
from tessera.node.holders import Holder, read_checkpoint, read_pod_resources
from tessera.node.protocols.device_plugin_pb2 import DevicePluginOptions, Empty, RegisterRequest
from tessera.node.protocols.pod_resources_pb2 import ListPodResourcesRequest, ListPodResourcesResponse

Answer = TypeVar("Answer")
PLUGIN_API = "v1beta1"
ANSWER_S = 10.0
# The kubelet is asked seldom; what gRPC would keep open or retry by itself is in the way when the kubelet restarts.
_OPTIONS = (
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", 16 * 2**20),
)


class Kubelet:
    """`root` is the kubelet's directory, `/var/lib/kubelet` unless the site moved it."""

    def __init__(self, root: Path) -> None:
        self.plugins = root / "device-plugins"
        self.socket = self.plugins / "kubelet.sock"
        self._checkpoint = self.plugins / "kubelet_internal_checkpoint"
        self._pod_resources = root / "pod-resources" / "kubelet.sock"

    def incarnation(self) -> tuple[int, int] | None:
        """Changes when the kubelet starts anew; None while it is down."""
        try:
            found = self.socket.stat()
        except OSError:
            return None
        return found.st_ino, found.st_ctime_ns

    async def register(self, endpoint: str, resource: str, options: DevicePluginOptions) -> None:
        request = RegisterRequest(version=PLUGIN_API, endpoint=endpoint, resource_name=resource, options=options)
        async with grpc.aio.insecure_channel(f"unix:{self.socket}", options=_OPTIONS) as channel:
            call = channel.unary_unary(
                f"/{PLUGIN_API}.Registration/Register",
                request_serializer=RegisterRequest.SerializeToString,
                response_deserializer=Empty.FromString,
            )
            await _answered(call(request, timeout=ANSWER_S), f"the kubelet did not register {resource}")

    async def list_holders(self) -> tuple[Holder, ...]:
        """What the pod-resources API tells."""
        async with grpc.aio.insecure_channel(f"unix:{self._pod_resources}", options=_OPTIONS) as channel:
            call = channel.unary_unary(
                "/v1.PodResourcesLister/List",
                request_serializer=ListPodResourcesRequest.SerializeToString,
                response_deserializer=ListPodResourcesResponse.FromString,
            )
            answer = await _answered(
                call(ListPodResourcesRequest(), timeout=ANSWER_S), "the kubelet did not tell who holds which devices"
            )
        return read_pod_resources(answer)

    def kept_holders(self) -> tuple[Holder, ...] | None:
        """What the checkpoint has; None, where it cannot be read."""
        try:
            return read_checkpoint(self._checkpoint.read_bytes())
        except OSError:
            return None


async def _answered(call: Awaitable[Answer], otherwise: str) -> Answer:
    try:
        answer = await call
    except grpc.aio.AioRpcError as error:
        raise KubeletFailed(f"{otherwise}: {error.details()}; see the kubelet's log") from None
    if answer is None:  # what gRPC gives for an answer that it cannot read
        raise KubeletFailed(f"{otherwise}: its answer cannot be read; see the kubelet's log")
    return answer
