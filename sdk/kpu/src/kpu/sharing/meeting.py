"""A client's way to shared memory: greet the server, visit it if it is on this host, and again when it is a new one.

What fails here fails silently: the call goes over gRPC, and whatever is wrong with the server shows there.
"""

import asyncio
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any

import grpc

from kpu.sharing.bypass import SharedMemory
from kpu.sharing.greeting import GREET, Invitation, decode_invitation
from kpu.sharing.knocking import Visit, visit

Metadata = Sequence[tuple[str, str | bytes]]

GREET_SECONDS = 2.0
ELSEWHERE_SECONDS = 60.0
"""A server that was not on this host is not asked again for so long."""


class Meeting:
    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._visit: Visit | None = None
        self._farewell: weakref.finalize[..., Meeting] | None = None
        self._closings = 0
        self._not_before = 0.0
        self._locks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = weakref.WeakKeyDictionary()

    async def bypass(self, channel: Any, metadata: Metadata, timeout: float | None = None) -> SharedMemory | None:
        """The way through shared memory for one call, or None. To find it takes no longer than the call may."""
        if not self._stands and time.monotonic() >= self._not_before:
            async with self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
                if not self._stands and time.monotonic() >= self._not_before:
                    await self._meet(channel, metadata, min(GREET_SECONDS, timeout or GREET_SECONDS))
        current = self._visit
        return SharedMemory(current.link, current.session) if current and current.link.usable else None

    async def close(self) -> None:
        """End the thread. Tensors that were received stay what they are."""
        with self._guard:
            self._closings += 1
        await self._part()

    @property
    def _stands(self) -> bool:
        return self._visit is not None and self._visit.link.usable

    async def _meet(self, channel: Any, metadata: Metadata, seconds: float) -> None:
        await self._part()
        try:
            reply = await channel.unary_unary(GREET)(b"", metadata=metadata, timeout=seconds)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                self._not_before = time.monotonic() + ELSEWHERE_SECONDS
            return
        except grpc.aio.BaseError:
            return
        invitation = decode_invitation(reply)
        if invitation is None or not await asyncio.to_thread(self._go, invitation, self._closings):
            self._not_before = time.monotonic() + ELSEWHERE_SECONDS

    async def _part(self) -> None:
        """Its thread is told at once: whoever is cancelled while he waits for a thread does not get one any more."""
        with self._guard:
            old = self._replace(None)
        if old:
            old.leave()
            await asyncio.to_thread(old.close)

    def _go(self, invitation: Invitation, closings: int) -> bool:
        """Visit a server, in a thread. A call that no longer waits for this leaves it to the next one.

        What comes of it is not wanted where another loop was faster, or we were closed meanwhile.
        """
        met = visit(invitation)
        if met is None:
            return False
        with self._guard:
            unwanted = met if self._stands or self._closings != closings else self._replace(met)
        if unwanted:
            unwanted.close()
        return True

    def _replace(self, new: Visit | None) -> Visit | None:
        """What was there before. The new one ends with us if nobody closes us. Under the guard."""
        old, self._visit = self._visit, new
        if self._farewell:
            self._farewell.detach()
        self._farewell = weakref.finalize(self, new.leave) if new else None
        if self._farewell:
            self._farewell.atexit = False
        return old
