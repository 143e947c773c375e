"""The standard gRPC health service, which Kubernetes' probes ask. It needs no token and shows nothing but a state."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc

from kpu.errors import MalformedMessage
from kpu.wire.fields import as_text, number_field, read_fields

SERVICE = "grpc.health.v1.Health"
SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3


class Health:
    """One state for the server as a whole and for each of its services."""

    def __init__(self, *services: str) -> None:
        self._services = frozenset(("", *services))
        self._status = NOT_SERVING
        self._changed = asyncio.Event()

    def set_serving(self, serving: bool) -> None:
        self._status = SERVING if serving else NOT_SERVING
        self._changed.set()
        self._changed = asyncio.Event()

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
        while True:
            changed = self._changed
            yield number_field(1, self._status if service in self._services else SERVICE_UNKNOWN)
            await changed.wait()


async def _service_asked_for(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> str:
    try:
        names = [as_text(value) for number, value in read_fields(request) if number == 1]
    except MalformedMessage as error:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
    return names[-1] if names else ""
