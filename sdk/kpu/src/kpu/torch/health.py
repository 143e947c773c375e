"""The standard gRPC health service, which Kubernetes' probes ask. It needs no token and shows nothing but a state."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import grpc

from kpu.errors import MalformedMessage
from kpu.wire.fields import as_text, number_field, read_fields

SERVICE = "grpc.health.v1.Health"
SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3
# Whoever reaches the port may watch, and a watch lasts as long as the server does: a few of them are enough.
WATCHERS_LIMIT = 16
TELLING_SECONDS = 1.0


class Health:
    """One state for the server as a whole and for each of its services."""

    def __init__(self, *services: str) -> None:
        self._services = frozenset(("", *services))
        self._status = NOT_SERVING
        self._changed = asyncio.Event()
        self._watchers = 0

    def set_serving(self, serving: bool) -> None:
        """Tell all who watch. That the server stops is the last they are told, so that it does not wait for them."""
        self._status = SERVING if serving else NOT_SERVING
        self._changed.set()
        self._changed = asyncio.Event()

    async def tell_that_it_stops(self) -> None:
        """Give watchers the time to hear it: what is under way when connections end may be lost."""
        self.set_serving(False)
        with suppress(TimeoutError):
            async with asyncio.timeout(TELLING_SECONDS):
                while self._watchers:
                    await asyncio.sleep(TELLING_SECONDS / 100)

    def handler(self) -> grpc.GenericRpcHandler:
        methods: dict[str, Any] = {
            "Check": grpc.unary_unary_rpc_method_handler(self._check),
            "Watch": grpc.unary_stream_rpc_method_handler(self._watch),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    async def _check(self, request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        service = await _service_asked_for(request, context)
        if service not in self._services:
            await context.abort(grpc.StatusCode.NOT_FOUND, f'service "{service[:64]}" is unknown')
        return number_field(1, self._status)

    async def _watch(self, request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> AsyncIterator[bytes]:
        service = await _service_asked_for(request, context)
        if self._watchers >= WATCHERS_LIMIT:
            await context.abort(
                grpc.StatusCode.UNAVAILABLE, f"{WATCHERS_LIMIT} callers watch already; ask with Check from time to time"
            )
        self._watchers += 1
        try:
            while True:
                changed, told = self._changed, self._status
                yield number_field(1, told if service in self._services else SERVICE_UNKNOWN)
                if told == NOT_SERVING:
                    return
                await changed.wait()
        finally:
            self._watchers -= 1


async def _service_asked_for(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> str:
    try:
        names = [as_text(value) for number, value in read_fields(request) if number == 1]
    except MalformedMessage as error:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
    return names[-1] if names else ""
