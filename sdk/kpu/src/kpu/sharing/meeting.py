"""A client's way to shared memory: greet the server, visit it if it is on this host, and again when it is a new one.

What fails here fails silently: the call goes over gRPC, and whatever is wrong with the server shows there.
"""

import asyncio
import time
import weakref
from typing import Any

import grpc

from kpu.sharing.bypass import SharedMemory
from kpu.sharing.greeting import GREET, decode_invitation
from kpu.sharing.knocking import Visit, visit

GREET_SECONDS = 2.0
ELSEWHERE_SECONDS = 60.0
"""A server that was not on this host is not asked again for so long."""


class Meeting:
    def __init__(self) -> None:
        self._visit: Visit | None = None
        self._not_before = 0.0
        self._locks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = weakref.WeakKeyDictionary()

    async def bypass(
        self, channel: Any, metadata: tuple[tuple[str, str], ...], timeout: float | None = None
    ) -> SharedMemory | None:
        """The way through shared memory for one call, or None. To find it takes no longer than the call may."""
        if not self._stands and time.monotonic() >= self._not_before:
            async with self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
                if not self._stands and time.monotonic() >= self._not_before:
                    await self._meet(channel, metadata, min(GREET_SECONDS, timeout or GREET_SECONDS))
        current = self._visit
        return SharedMemory(current.link, current.session) if current and current.link.usable else None

    async def close(self) -> None:
        """End the thread. Tensors that were received stay what they are."""
        old, self._visit = self._visit, None
        if old:
            await asyncio.to_thread(old.close)

    @property
    def _stands(self) -> bool:
        return self._visit is not None and self._visit.link.usable

    async def _meet(self, channel: Any, metadata: tuple[tuple[str, str], ...], seconds: float) -> None:
        await self.close()
        try:
            reply = await channel.unary_unary(GREET)(b"", metadata=metadata, timeout=seconds)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                self._not_before = time.monotonic() + ELSEWHERE_SECONDS
            return
        except grpc.aio.BaseError:
            return
        invitation = decode_invitation(reply)
        met = await asyncio.to_thread(visit, invitation) if invitation else None
        if met is None:
            self._not_before = time.monotonic() + ELSEWHERE_SECONDS
            return
        if self._stands:  # another loop was faster
            await asyncio.to_thread(met.close)
            return
        self._visit = met
        weakref.finalize(self, met.leave).atexit = False
