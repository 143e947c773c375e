"""One call of a client: what it holds is given back, whatever ends it, and what ends it is told in its status."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeVar

import grpc

from kpu.errors import (
    BypassClosed,
    InvalidRequest,
    MalformedMessage,
    TooLarge,
    TransferFailed,
    TransferTimeout,
    UnsupportedTensor,
)
from kpu.tensors.torch_tensors import is_on_host
from kpu.torch.logs import facts
from kpu.torch.memory import Memory
from kpu.torch.metrics import Metrics
from kpu.wire.bypass import CLOSED

log = logging.getLogger(__name__)

Context = grpc.aio.ServicerContext[bytes, bytes]
Code = grpc.StatusCode
TELLING_SECONDS = 5.0
CALLS_AT_ONCE = 1024
MOST_WORDS = 1000

BUSY = f"the server is busy: {CALLS_AT_ONCE} calls are under way, and it takes no more at once; try again later"

T = TypeVar("T")


@dataclass
class Call:
    """What one call has reserved, and the clock that ends it when nothing moves."""

    memory: Memory
    idle: asyncio.Timeout
    idle_seconds: float
    reserved_bytes: int = 0
    _set_at: float = field(default_factory=monotonic)

    def moved(self) -> None:
        """Set the clock again. Not for every chunk: a tenth of its time more or less does not matter."""
        now = monotonic()
        if now - self._set_at > self.idle_seconds / 10:
            self._set_at = now
            self.idle.reschedule(asyncio.get_running_loop().time() + self.idle_seconds)

    async def reserve(self, size: int) -> None:
        """Wait for room. That takes its own time, and the peer is not to blame."""
        if not self.memory.reserve_now(size):
            await self.wait_for(self.memory.reserve(size))
        self.reserved_bytes += size

    def count_made(self, size: int) -> None:
        """What a hook has made is there already: waiting for room would not undo it."""
        self.memory.count_made(size)
        self.reserved_bytes += size

    def release(self, size: int) -> None:
        self.reserved_bytes -= size
        self.memory.release(size)

    def keep(self, tensor_id: str, tensor: Any, size: int) -> None:
        self.reserved_bytes -= size
        self.memory.keep(tensor_id, tensor, size, is_on_host=is_on_host(tensor))

    async def work(self, do: Callable[[], Any]) -> Any:
        """Something long, in a thread."""
        return await self.wait_for(asyncio.to_thread(do))

    async def wait_for(self, ours: Awaitable[T]) -> T:
        """Something that the peer is not to blame for: the clock stands still meanwhile."""
        self.idle.reschedule(None)
        self._set_at = 0.0
        done = await ours
        self.moved()
        return done


@dataclass
class Calls:
    """All calls of a server."""

    memory: Memory
    metrics: Metrics
    idle_seconds: float
    in_flight: int = 0

    @asynccontextmanager
    async def one(self, method: str, context: Context) -> AsyncGenerator[Call]:
        """The frame around a call: any error in it becomes a status with a sentence."""
        if self.in_flight >= CALLS_AT_ONCE:
            self.metrics.count("kpu_calls_total", method=method, code=Code.RESOURCE_EXHAUSTED.name)
            await context.abort(Code.RESOURCE_EXHAUSTED, BUSY)
        code = Code.OK
        text = ""
        self.in_flight += 1
        idle = asyncio.timeout(self.idle_seconds)
        call = Call(self.memory, idle, self.idle_seconds)
        try:
            async with idle:
                yield call
        except asyncio.CancelledError:
            code = Code.CANCELLED
            raise
        except (grpc.aio.InternalError, grpc.aio.UsageError):
            code = Code.CANCELLED  # the client is gone: there is nobody to tell
        except Exception as error:
            if isinstance(error, TimeoutError) and idle.expired():
                error = TransferTimeout(f"nothing moved in this call for {self.idle_seconds:g} s")
            code, text = _judged(error, method)
        finally:
            self.in_flight -= 1
            if call.reserved_bytes:
                call.release(call.reserved_bytes)
            self.metrics.count("kpu_calls_total", method=method, code=code.name)
            log.debug("call ended %s", facts(method=method, code=code.name))
        if text:
            # Whoever does not read does not read a status either.
            async with asyncio.timeout(TELLING_SECONDS):
                await context.abort(code, text)


def _judged(error: Exception, method: str) -> tuple[grpc.StatusCode, str]:
    """A status travels in a header, which gRPC bounds: what a hook has to say may be longer, or nothing at all."""
    code, text = _status_of(error, method)
    return code, text[:MOST_WORDS] or f"{type(error).__name__}, and no word why"


def _status_of(error: Exception, method: str) -> tuple[grpc.StatusCode, str]:
    if isinstance(error, TooLarge | MemoryError):
        return Code.RESOURCE_EXHAUSTED, str(error) or "the server has no memory left"
    if isinstance(error, MalformedMessage | InvalidRequest | UnsupportedTensor):
        return Code.INVALID_ARGUMENT, str(error)
    if isinstance(error, TransferTimeout):
        return Code.DEADLINE_EXCEEDED, str(error)
    if isinstance(error, BypassClosed):
        return Code.FAILED_PRECONDITION, CLOSED
    if isinstance(error, TransferFailed):
        return Code.FAILED_PRECONDITION, str(error)
    log.error("call failed %s", facts(method=method, error=type(error).__name__), exc_info=error)
    return Code.INTERNAL, f"{type(error).__name__}: {error}"
