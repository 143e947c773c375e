"""The three methods of service.proto over a client's chunks, the hooks and the server's memory."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import numpy as np
from numpy.typing import NDArray

from kpu.errors import TooLarge
from kpu.tensors import Description, Taken, can_give, make_room, take
from kpu.torch.calls import Call, Calls, Context
from kpu.torch.hook_threads import HookThreads
from kpu.torch.hooks import TensorHooks
from kpu.torch.logs import facts
from kpu.wire.assembling import Assembled, Assembler
from kpu.wire.bypass import Bypass, find_detour
from kpu.wire.limits import Limits
from kpu.wire.messages import TensorChunk, TensorRequest, TensorResponse
from kpu.wire.splitting import bring_to_host, refer, split

log = logging.getLogger(__name__)

SERVICE = "kpu.torch.Service"
FindBypass = Callable[[Mapping[str, str]], Bypass | None]


def no_bypass(_: Mapping[str, str]) -> Bypass | None:
    return None


@dataclass
class TensorService:
    """`find_bypass` gets the metadata of a call and answers with this side's end of another way, if there is one."""

    calls: Calls
    hooks: TensorHooks
    hook_threads: HookThreads
    limits: Limits
    max_tensors: int
    chunk_bytes: int
    find_bypass: FindBypass = no_bypass
    room: Callable[[Description], NDArray[np.uint8]] = make_room

    def handler(self) -> grpc.GenericRpcHandler:
        methods: dict[str, Any] = {
            "ReceiveTensors": grpc.stream_unary_rpc_method_handler(self.receive_tensors),
            "SendTensors": grpc.unary_stream_rpc_method_handler(self.send_tensors),
            "StreamTensors": grpc.stream_stream_rpc_method_handler(self.stream_tensors),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    async def receive_tensors(self, _: Any, context: Context) -> bytes:
        """What comes is kept."""
        ids: list[str] = []
        async with self.calls.one("ReceiveTensors", context) as call, self._bypass_of(context) as bypass:
            async for arrived in self._arriving(call, context, bypass):
                call.keep(arrived.tensor_id, await self._to_keep(call, arrived), arrived.raw.nbytes)
                ids.append(arrived.tensor_id)
        log.debug("tensors received %s", facts(count=len(ids)))
        return TensorResponse(True, f"Received {len(ids)} tensor(s)", tuple(ids)).encode()

    async def send_tensors(self, message: bytes, context: Context) -> None:
        """What is asked for is made and sent."""
        async with self.calls.one("SendTensors", context) as call, self._bypass_of(context) as bypass:
            request = TensorRequest.decode(message)
            self._refuse_too_many(request.count)
            for index in range(request.count):
                await self._produce_one(call, context, request, index, bypass)

    async def stream_tensors(self, _: Any, context: Context) -> None:
        """What comes is processed and goes back."""
        async with self.calls.one("StreamTensors", context) as call, self._bypass_of(context) as bypass:
            async for arrived in self._arriving(call, context, bypass):
                taken = await self._processed(call, arrived)
                made = 0 if taken.lies_in(arrived.raw) else taken.size_bytes
                call.count_made(made)
                await self._send(call, context, f"processed_{arrived.tensor_id}", taken, bypass)
                call.release(arrived.raw.nbytes + made)

    async def _arriving(self, call: Call, context: Context, bypass: Bypass | None) -> AsyncIterator[Assembled]:
        """The tensors of a call, each when it is whole. Its bytes stay reserved."""
        assembler = Assembler(self.limits, bypass, self.room)
        count = 0
        while (message := await context.read()) is not grpc.aio.EOF:
            call.moved()
            chunk = TensorChunk.decode(message)
            description = assembler.announces(chunk)
            waiting_bytes = assembler.early_bytes
            await call.reserve(assembler.needs_bytes(chunk, description))
            arrived = assembler.add(chunk, description)
            if assembler.early_bytes < waiting_bytes:
                call.release(waiting_bytes - assembler.early_bytes)
            if arrived is None:
                continue
            count += 1
            self._refuse_too_many(count)
            self.calls.metrics.tensor("received", _path(bypass, arrived.bypassed), arrived.raw.nbytes)
            yield arrived
        assembler.finish()

    async def _to_keep(self, call: Call, arrived: Assembled) -> Any:
        """The tensor; where there is none of its dtype, its bytes and their description, which can be sent as well."""
        if not can_give(arrived.description):
            return Taken(arrived.description, arrived.raw, copied=False)
        return await arrived.materialised(call.work)

    async def _processed(self, call: Call, arrived: Assembled) -> Taken:
        if self.hooks.echoes:
            return Taken(arrived.description, arrived.raw, copied=False)
        return await call.wait_for(self.hook_threads.run(lambda: take(self.hooks.process(arrived.tensor()))))

    async def _produce_one(
        self, call: Call, context: Context, request: TensorRequest, index: int, bypass: Bypass | None
    ) -> None:
        expected = self.hooks.expected_bytes(request.parameters)
        if expected > self.limits.tensor_bytes:
            raise TooLarge(
                f"a tensor of {expected} bytes was asked for, at most {self.limits.tensor_bytes} are made at once"
            )
        await call.reserve(expected)
        made = self.hook_threads.run(lambda: take(self.hooks.produce(index, request.parameters)))
        taken: Taken = await call.wait_for(made)
        call.count_made(max(0, taken.size_bytes - expected))
        await self._send(call, context, f"tensor_{index}", taken, bypass)
        call.release(max(expected, taken.size_bytes))

    async def _send(self, call: Call, context: Context, tensor_id: str, taken: Taken, bypass: Bypass | None) -> None:
        detour = await find_detour(bypass, taken, call.work)
        if detour is not None:
            await context.write(refer(tensor_id, taken, detour.metadata))
        else:
            await bring_to_host(taken, call.work)
            for chunk in split(tensor_id, taken, self.chunk_bytes):
                await context.write(chunk)
                call.moved()
        self.calls.metrics.tensor("sent", _path(bypass, detour is not None), taken.size_bytes)

    @asynccontextmanager
    async def _bypass_of(self, context: Context) -> AsyncGenerator[Bypass | None]:
        """The call's other way, if it has one. It is told when the call does not end well."""
        pairs = context.invocation_metadata() or ()
        bypass = self.find_bypass({key: value for key, value in pairs if isinstance(value, str)})
        try:
            yield bypass
        except BaseException:
            if bypass is not None:
                bypass.failed()
            raise

    def _refuse_too_many(self, count: int) -> None:
        if count > self.max_tensors:
            raise TooLarge(f"a call has {count} tensors or more, at most {self.max_tensors} are accepted in one")


def _path(bypass: Bypass | None, bypassed: bool) -> str:
    return bypass.path if bypass is not None and bypassed else "grpc"
