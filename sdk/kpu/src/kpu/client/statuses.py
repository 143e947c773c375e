"""What a gRPC status means to the caller: one class of exception each, with the server's own sentence."""

import grpc

from kpu.errors import (
    BypassClosed,
    InvalidRequest,
    ServerGone,
    TooLarge,
    TransferFailed,
    TransferTimeout,
    Unauthenticated,
)
from kpu.wire.bypass import CLOSED

_CLASSES: dict[grpc.StatusCode, type[TransferFailed]] = {
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: Unauthenticated,
    grpc.StatusCode.RESOURCE_EXHAUSTED: TooLarge,
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequest,
    grpc.StatusCode.UNAVAILABLE: ServerGone,
    grpc.StatusCode.CANCELLED: ServerGone,
    grpc.StatusCode.DEADLINE_EXCEEDED: TransferTimeout,
}
_REFUSED = "the server at {address} refused: {told}"
_SENTENCES = {
    grpc.StatusCode.UNAVAILABLE: (
        "the server at {address} is not there or went away: {told}; "
        "is it running, and is the Compute ready and not suspended?"
    ),
    grpc.StatusCode.CANCELLED: (
        "the connection to the server at {address} was closed while a call was under way: {told}; send it again"
    ),
    grpc.StatusCode.DEADLINE_EXCEEDED: (
        "the call to the server at {address} took too long: {told}; send less at once, or allow more time"
    ),
    grpc.StatusCode.UNIMPLEMENTED: _REFUSED + "; is it a kpu-torch-server?",
}


def as_failure(code: grpc.StatusCode, details: str | None, address: str) -> TransferFailed:
    """The exception for a call to `address` that ended with this status."""
    if code is grpc.StatusCode.FAILED_PRECONDITION and details == CLOSED:
        return BypassClosed(details)
    told = details or code.name.lower().replace("_", " ")
    sentence = _SENTENCES.get(code, _REFUSED)
    return _CLASSES.get(code, TransferFailed)(sentence.format(address=address, told=told))


def as_closed(address: str) -> TransferFailed:
    """The exception for a call whose connection was closed on this side."""
    return as_failure(grpc.StatusCode.CANCELLED, "by this program", address)
