"""Probes by gRPC: is the server behind a port serving, by the standard health service?

The two messages of that service have one field each, so they are written and read here and need no generated code. What
a probe says when it fails is worded as the kubelet words it.
"""

from enum import IntEnum

import grpc
import grpc.aio

CHECK = "/grpc.health.v1.Health/Check"
OF_ITS_TIME = 0.9
"""Whoever asks waits no longer than the time of the probe, and would else never hear why it failed."""
_SERVICE_FIELD, _STATUS_FIELD = b"\x0a", 0x08  # field 1 as text, field 1 as a number
_OWN_CONNECTION = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0))
"""A connection that failed before must not answer for this one, and a probe goes to its pod directly."""


class Serving(IntEnum):
    UNKNOWN = 0
    SERVING = 1
    NOT_SERVING = 2
    SERVICE_UNKNOWN = 3


async def ask_health(host: str, port: int, service: str, timeout_s: float) -> str:
    """Why it is not serving; nothing if it is. It is known a little before the time is over."""
    target = f"{host}:{port}"
    async with grpc.aio.insecure_channel(target, options=_OWN_CONNECTION) as channel:
        check = channel.unary_unary(CHECK, request_serializer=_encode_request, response_deserializer=_decode_status)
        try:
            status = await check(service, timeout=timeout_s * OF_ITS_TIME)
        except grpc.aio.AioRpcError as error:
            return _explain(target, timeout_s, error)
    return "" if status is Serving.SERVING else f'service unhealthy (responded with "{status.name}")'


def _explain(target: str, timeout_s: float, error: grpc.aio.AioRpcError) -> str:
    code = error.code()
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return "error: this server does not implement the grpc health protocol (grpc.health.v1.Health)"
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"timeout: health rpc did not complete within {timeout_s:g}s"
    if code is grpc.StatusCode.UNAVAILABLE:
        return f'error: failed to connect service "{target}" within {timeout_s:g}s: {error.details()}'
    return f"error: health rpc probe failed: rpc error: code = {code.name} desc = {error.details()}"


def _encode_request(service: str) -> bytes:
    name = service.encode()
    return _SERVICE_FIELD + _encode_length(len(name)) + name if name else b""


def _encode_length(length: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    encoded = bytearray()
    while length > 0x7F:
        encoded.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes(encoded + bytes([length]))


def _decode_status(answer: bytes) -> Serving:
    """An answer with nothing in it has the first of the words."""
    if len(answer) != 2 or answer[0] != _STATUS_FIELD or answer[1] not in set(Serving):
        return Serving.UNKNOWN
    return Serving(answer[1])
