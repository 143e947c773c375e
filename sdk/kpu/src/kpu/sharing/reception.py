"""What a gRPC server has to do with shared memory: answer Greet, and find the link of who calls."""

from collections.abc import Callable, Mapping

import grpc

from kpu.sharing.bypass import SharedMemory
from kpu.sharing.door import Door
from kpu.sharing.greeting import GREET, SESSION_KEY, encode_invitation


def greet_handler(door: Door) -> grpc.GenericRpcHandler:
    """The service `kpu.torch.Sharing`. Whoever the server lets call may have an invitation."""

    async def greet(_: bytes, __: "grpc.aio.ServicerContext[bytes, bytes]") -> bytes:
        return encode_invitation(door.invite())

    _, service, method = GREET.split("/")
    return grpc.method_handlers_generic_handler(service, {method: grpc.unary_unary_rpc_method_handler(greet)})


def bypass_finder(door: Door) -> Callable[[Mapping[str, str]], SharedMemory | None]:
    """From the metadata of a call to its way through shared memory, if its caller has one."""

    def find(metadata: Mapping[str, str]) -> SharedMemory | None:
        session = metadata.get(SESSION_KEY)
        link = door.link(session)
        return _OfServer(link, session) if link and session else None

    return find


class _OfServer(SharedMemory):
    """A server keeps what it is sent, and counts the tensor's own bytes: its region must not be much larger."""

    avoids_pinning = True
