"""What a gRPC status means to the caller: one class of exception each, with the server's own sentence."""

import grpc

from kpu.errors import (
    InvalidRequest,
    ServerGone,
    TooLarge,
    TransferFailed,
    TransferTimeout,
    Unauthenticated,
)

_CLASSES: dict[grpc.StatusCode, type[TransferFailed]] = {
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: Unauthenticated,
    grpc.StatusCode.RESOURCE_EXHAUSTED: TooLarge,
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequest,
    grpc.StatusCode.UNAVAILABLE: ServerGone,
    grpc.StatusCode.DEADLINE_EXCEEDED: TransferTimeout,
}
_HINTS = {
    grpc.StatusCode.UNAVAILABLE: "; is it running, and is the Compute ready and not suspended?",
    grpc.StatusCode.UNIMPLEMENTED: "; is it a kpu-torch-server?",
}


def as_failure(code: grpc.StatusCode, details: str | None, address: str) -> TransferFailed:
    """The exception for a call to `address` that ended with this status."""
    kind = _CLASSES.get(code, TransferFailed)
    told = details or code.name.lower().replace("_", " ")
    if kind is ServerGone:
        return ServerGone(f"the server at {address} is not there or went away: {told}{_HINTS[code]}")
    return kind(f"the server at {address} refused: {told}{_HINTS.get(code, '')}")
