"""One call: tensors go out and come in, and what they cost is counted.

Bytes go chunk by chunk, each written when gRPC has taken the one before, so a slow peer slows us and fills no memory.
What takes long (compacting, copying from a device) is done in a thread; a chunk is too small to hold up an event loop.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple, cast
from uuid import uuid4

import grpc
import numpy as np
from numpy.typing import NDArray

from kpu.errors import MalformedMessage
from kpu.tensors import Description, Taken, make_room, take
from kpu.tensors.torch_tensors import is_torch_tensor, lies_compact
from kpu.wire.assembling import WORTH_A_THREAD_BYTES, Assembler
from kpu.wire.bypass import Bypass, find_detour
from kpu.wire.limits import Limits
from kpu.wire.messages import TensorChunk
from kpu.wire.splitting import bring_to_host, refer, split

MakeRoom = Callable[[Description], NDArray[np.uint8]]

GRPC = "grpc"
LONE_BYTES = 64 << 10
ENDED_BY_THE_SERVER = (grpc.aio.AioRpcError, grpc.aio.BaseError, asyncio.InvalidStateError)


class ChunkStream:
    """As much of a gRPC call as tensors need.

    gRPC's own `write` replaces the status with which a server refuses a call by "Internal error from Core" when it is
    still writing. So messages go through what stands below it, and the status stays what the server said.
    """

    def __init__(self, call: Any) -> None:
        self._call = call
        self._below: Any = getattr(call, "_cython_call", None)
        self._write: Any = None

    async def write(self, message: bytes) -> None:
        if self._write is None:
            await self._call.wait_for_connection()
            self._write = getattr(self._below, "send_serialized_message", None) or self._call.write
        await self._write(message)

    async def done_writing(self) -> None:
        await self._call.done_writing()

    def read(self) -> Awaitable[Any]:
        return self._call.read()


class Outgoing(NamedTuple):
    """A tensor on its way to a server, and what the server is to call it."""

    tensor_id: str
    tensor: object


def name_each(tensors: Iterable[object]) -> Sequence[Outgoing]:
    """Once for all attempts at a call: a server that kept some of its tensors does not keep them twice."""
    return [Outgoing(uuid4().hex, tensor) for tensor in tensors]


@dataclass(frozen=True, slots=True)
class TransferStats:
    """What a call did. `bytes_copied` counts our own copies; gRPC and the kernel make more on their path."""

    path: str
    bytes: int
    bytes_copied: int
    seconds: float

    @property
    def gigabytes_per_second(self) -> float:
        return self.bytes / self.seconds / 1e9 if self.seconds else 0.0


@dataclass(slots=True)
class LastTransfer:
    """`stats` of the call that ended last, or None before the first."""

    stats: TransferStats | None = None


@dataclass
class Transfer:
    """One call under way."""

    chunk_bytes: int
    limits: Limits
    bypass: Bypass | None
    room: MakeRoom = make_room
    began: float = field(default_factory=perf_counter)
    _bytes: int = 0
    _copied: int = 0
    _paths: set[str] = field(default_factory=set[str])

    async def lone_message(self, tensors: Sequence[Outgoing]) -> tuple[bytes | None, Sequence[Outgoing]]:
        """The one message of a single tensor that is small or goes by the bypass: it can be sent with the call itself.

        None for any others, and beside it what there is to `send`: a tensor is not taken twice.
        """
        if len(tensors) != 1:
            return None, tensors
        tensor_id, tensor = tensors[0]
        is_small = getattr(tensor, "nbytes", LONE_BYTES + 1) <= min(LONE_BYTES, self.chunk_bytes)
        if not (is_small or self.bypass):
            return None, tensors
        taken = await _taken(tensor)
        rest = [Outgoing(tensor_id, taken)]
        reference = await self._reference(tensor_id, taken)
        if reference is not None or not is_small:
            return reference, rest
        message, size = next(split(tensor_id, taken, self.chunk_bytes)), taken.size_bytes
        self._count(size, 2 * size if taken.copied else size, bypassed=False)
        return message, rest

    async def send(self, stream: ChunkStream, tensors: Iterable[Outgoing]) -> None:
        """Write all tensors, and that there are no more."""
        for tensor_id, tensor in tensors:
            await self._send_one(stream, tensor_id, await _taken(tensor))
        await stream.done_writing()

    async def receive(self, stream: ChunkStream, count: int) -> list[Any]:
        """As many tensors as must come, in the order in which they began to."""
        assembler = Assembler(self.limits, self.bypass, self.room)
        order: dict[str, int] = {}
        tensors: list[tuple[int, Any]] = []
        while (message := await stream.read()) is not grpc.aio.EOF:
            chunk = TensorChunk.decode(message)
            place = order.setdefault(chunk.tensor_id, len(order) + len(tensors))
            if place >= count:
                raise MalformedMessage(f"the server sent more than {count} tensors, expected {count}")
            arrived = assembler.add(chunk, assembler.announces(chunk))
            if arrived is None:
                continue
            del order[chunk.tensor_id]
            self._count(arrived.raw.nbytes, 0 if arrived.bypassed else arrived.raw.nbytes, arrived.bypassed)
            tensors.append((place, await arrived.materialised(asyncio.to_thread)))
        assembler.finish()
        if len(tensors) < count:
            raise MalformedMessage(f"the server sent {len(tensors)} tensors, expected {count}")
        return [tensor for _, tensor in sorted(tensors, key=lambda placed: placed[0])]

    def stats(self) -> TransferStats:
        path = "+".join(sorted(self._paths)) or GRPC
        return TransferStats(path, self._bytes, self._copied, perf_counter() - self.began)

    async def _send_one(self, stream: ChunkStream, tensor_id: str, taken: Taken) -> None:
        reference = await self._reference(tensor_id, taken)
        if reference is not None:
            await stream.write(reference)
            return
        await bring_to_host(taken, asyncio.to_thread)
        for chunk in split(tensor_id, taken, self.chunk_bytes):
            await stream.write(chunk)
        size = taken.size_bytes
        self._count(size, 2 * size if taken.copied else size, bypassed=False)

    async def _reference(self, tensor_id: str, taken: Taken) -> bytes | None:
        """The one message of a tensor whose bytes go by the bypass, once they are there; None when they do not."""
        detour = await find_detour(self.bypass, taken, asyncio.to_thread)
        if detour is None:
            return None
        size = taken.size_bytes
        self._count(size, detour.copied_bytes + (size if taken.copied else 0), bypassed=True)
        return refer(tensor_id, taken, detour.metadata)

    def _count(self, size: int, copied: int, bypassed: bool) -> None:
        self._bytes += size
        self._copied += copied
        self._paths.add(self.bypass.path if bypassed and self.bypass is not None else GRPC)


async def exchange(transfer: Transfer, stream: ChunkStream, tensors: Sequence[Outgoing]) -> list[Any]:
    """Send and receive at the same time: a server that answers before all has come must not wait for us.

    When the server ends the call, both sides of it fail, and the receiving one knows why.
    """
    sending = asyncio.create_task(transfer.send(stream, tensors))
    receiving = asyncio.create_task(transfer.receive(stream, len(tensors)))
    try:
        await asyncio.wait((sending, receiving), return_when=asyncio.FIRST_COMPLETED)
        if sending.done() and not (sending.cancelled() or isinstance(sending.exception(), ENDED_BY_THE_SERVER)):
            sending.result()
        received = await receiving
        await sending
    finally:
        sending.cancel()
        receiving.cancel()
        await asyncio.gather(sending, receiving, return_exceptions=True)
    return received


async def _taken(tensor: Any) -> Taken:
    if isinstance(tensor, Taken):
        return tensor
    if getattr(tensor, "nbytes", WORTH_A_THREAD_BYTES) < WORTH_A_THREAD_BYTES or _lies_ready(tensor):
        return take(tensor)
    return await asyncio.to_thread(take, tensor)


def _lies_ready(tensor: Any) -> bool:
    """Whether taking a tensor copies nothing to or in this host: it is compact there, or fetched from a device later.

    What is fetched comes after what the stream of this very thread does, so it is taken here.
    """
    if isinstance(tensor, np.ndarray):
        array = cast("NDArray[Any]", tensor)
        return array.flags.c_contiguous and array.dtype.isnative
    if not is_torch_tensor(tensor):
        return False
    return bool(tensor.is_cuda or (tensor.is_cpu and lies_compact(tensor)))
