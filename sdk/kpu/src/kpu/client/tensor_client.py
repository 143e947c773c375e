"""The connection to a tensor server: `Compute` uses it, and it is of use by itself.

async with TensorClient("localhost", 50051) as client:
    await client.send_tensors(torch.randn(100, 100))
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeVar

import grpc

from kpu.client.asking import ask_for
from kpu.client.channels import KEEPALIVE_SECONDS, Channels, Trust
from kpu.client.deadlines import Deadline
from kpu.client.options import (
    Pairs,
    checked_chunk_size,
    checked_host,
    checked_keepalive,
    checked_metadata,
    checked_port,
    checked_timeout,
    proof_of,
)
from kpu.client.statuses import as_closed, as_failure
from kpu.client.transfers import ENDED_BY_THE_SERVER, ChunkStream, LastTransfer, Transfer, exchange, name_each
from kpu.errors import BypassClosed, TransferFailed
from kpu.machine import keep_freed_memory, memory_bytes
from kpu.sharing.allowance import Allowance
from kpu.sharing.meeting import Meeting
from kpu.sharing.rooms import IDLE_SECONDS, WarmRooms
from kpu.tensors import refuse_unsupported, the_torch
from kpu.wire.bypass import Bypass
from kpu.wire.limits import Limits
from kpu.wire.messages import TensorResponse
from kpu.wire.splitting import CHUNK_BYTES

SERVICE = "/kpu.torch.Service/"

T = TypeVar("T")
Kind = Literal["unary_unary", "unary_stream", "stream_unary", "stream_stream"]


class Start(Protocol):
    """Starts a call of a kind; its requests are raw messages."""

    def __call__(self, kind: Kind, method: str, *request: bytes) -> Any: ...


_is_ready = threading.Event()


class TensorClient:
    """Sends tensors to a server and gets tensors back. Calls may run at the same time, also in different loops.

    `token` is sent with every call. `tls` is True for a server whose certificate this machine trusts, or the
    certificates to trust, as PEM bytes or the path of a file; `server_name` is the name that its certificate is for,
    where that is not `host`. `timeout` bounds each call in seconds. `shared` lets payloads go through shared memory
    where the server is on this host. `metadata` goes with every call.
    """

    def __init__(
        self,
        host: str = "localhost",
        port: int = 50051,
        *,
        token: str | None = None,
        tls: Trust = None,
        chunk_size: int = CHUNK_BYTES,
        shared: bool = True,
        timeout: float | None = None,
        server_name: str | None = None,
        metadata: Pairs = (),
        keepalive: float = KEEPALIVE_SECONDS,
    ) -> None:
        self.transfer = LastTransfer()
        self._channels = Channels(
            checked_host(host), checked_port(port), tls, checked_keepalive(keepalive), server_name
        )
        self._address = self._channels.address
        self._metadata = (*checked_metadata(metadata), *proof_of(token))
        self._chunk_bytes = checked_chunk_size(chunk_size)
        self._meeting = Meeting() if shared else None
        self._timeout = checked_timeout(timeout)
        self._limits = Limits(tensor_bytes=memory_bytes())
        self._rooms = WarmRooms(Allowance(memory_bytes() // 8), when_idle=self._air_later)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def send_tensors(self, *tensors: object) -> TensorResponse:
        """Send tensors for the server to keep. A tensor is sent as it is during the call."""
        for tensor in tensors:
            refuse_unsupported(tensor)
        named = name_each(tensors)

        async def send(transfer: Transfer, start: Start) -> TensorResponse:
            message, rest = await transfer.lone_message(named)
            if message is not None:
                call = start("unary_unary", "ReceiveTensors", message)
            else:
                call = start("stream_unary", "ReceiveTensors")
                await transfer.send(ChunkStream(call), rest)
            response = TensorResponse.decode(await call)
            if not response.success:
                raise TransferFailed(f"the server at {self._address} did not take the tensors: {response.message}")
            return response

        return await self._run(send)

    async def receive_tensors(self, count: int = 1, parameters: Mapping[str, object] | None = None) -> list[Any]:
        """Have the server make tensors. `parameters` go to its hooks: `shape` "20,20", `dtype`, `device`."""
        request = ask_for(count, parameters)
        message = request.encode()

        async def receive(transfer: Transfer, start: Start) -> list[Any]:
            call = start("unary_stream", "SendTensors", message)
            return await transfer.receive(ChunkStream(call), request.count)

        return await self._run(receive)

    async def stream_tensors(self, *tensors: object) -> list[Any]:
        """Send tensors and get each back as the server's hooks have processed it, in the same order."""
        for tensor in tensors:
            refuse_unsupported(tensor)
        named = name_each(tensors)

        async def stream(transfer: Transfer, start: Start) -> list[Any]:
            message, rest = await transfer.lone_message(named)
            if message is not None:
                return await transfer.receive(ChunkStream(start("unary_stream", "StreamTensors", message)), 1)
            return await exchange(transfer, ChunkStream(start("stream_stream", "StreamTensors")), rest)

        return await self._run(stream)

    async def close(self) -> None:
        """End the connection of this event loop. Tensors that were received stay what they are."""
        await self._channels.close()
        self._rooms.clear()
        if self._meeting is not None and not self._channels.are_open:
            await self._meeting.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, use: Callable[[Transfer, Start], Awaitable[T]]) -> T:
        """One call, made again without its bypass if that closes under it. Cancelled with the task that waits for it.

        Its tensors have the same names then: what the server has kept already, it keeps once.

        gRPC also cancels calls whose channel is closed. That nobody cancelled this task tells the two apart. To start a
        call on such a channel is a usage error.
        """
        deadline = Deadline.after(self._timeout)
        self._loop = asyncio.get_running_loop()
        try:
            channel = self._channels.here()
            await _get_ready()
            bypass = await self._find_bypass(channel)
            try:
                return await self._call(channel, use, bypass, deadline)
            except BypassClosed:
                if bypass is None:
                    raise
                return await self._call(channel, use, None, deadline)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise as_closed(self._address) from error
        except grpc.aio.UsageError as error:
            raise as_closed(self._address) from error

    async def _call(
        self,
        channel: grpc.aio.Channel,
        use: Callable[[Transfer, Start], Awaitable[T]],
        bypass: Bypass | None,
        deadline: Deadline,
    ) -> T:
        """From its start to its end, whichever that is.

        On the wire a stream of one message is a single message: a call that has just one is started as the cheaper
        kind, which the server cannot tell apart.
        """
        transfer = Transfer(self._chunk_bytes, self._limits, bypass, self._rooms.make)
        metadata = self._metadata + (bypass.call_metadata if bypass else ())
        call: Any = None

        def start(kind: Kind, method: str, *request: bytes) -> Any:
            nonlocal call
            left_s = None if deadline.timeout_s is None else deadline.left_s
            call = getattr(channel, kind)(SERVICE + method)(*request, metadata=metadata, timeout=left_s)
            return call

        succeeded = False
        try:
            done = await use(transfer, start)
            await self._raise_status_of(call)
            succeeded = True
        except ENDED_BY_THE_SERVER as error:
            if call is None:
                raise
            await self._raise_status_of(call)
            raise TransferFailed(f"the server at {self._address} ended the call before it had everything") from error
        finally:
            if call is not None:
                call.cancel()
            if bypass and not succeeded:
                bypass.failed()
            self.transfer.stats = transfer.stats()
        return done

    def _air_later(self) -> None:
        """The memory of a tensor is let go of some time after the tensor, unless another one comes for it."""
        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._loop.call_later, IDLE_SECONDS, self._rooms.expire)
        except RuntimeError:  # the loop has ended
            self._rooms.clear()

    async def _find_bypass(self, channel: grpc.aio.Channel) -> Bypass | None:
        if self._meeting is None:
            return None
        return await self._meeting.bypass(channel, self._metadata, self._timeout)

    async def _raise_status_of(self, call: Any) -> None:
        code: grpc.StatusCode = await call.code()
        if code is not grpc.StatusCode.OK:
            raise as_failure(code, await call.details(), self._address) from None


async def _get_ready() -> None:
    """What takes long and is needed once: torch, and a C library that does not hand memory back and forth."""
    if not _is_ready.is_set():
        keep_freed_memory()
        await asyncio.to_thread(the_torch)
        _is_ready.set()
