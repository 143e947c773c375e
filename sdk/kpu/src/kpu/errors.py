"""What can go wrong, as one tree. Every text is a sentence that says what failed and what to do about it."""


class KpuError(Exception):
    """Whatever this package raises by itself."""


class InvalidCompute(KpuError, ValueError):
    """A Compute was described in a way that no cluster can accept. Nothing was sent."""


class ComputeFailed(KpuError):
    """The Compute cannot become ready by waiting. `reason` is one word, `message` the cluster's own sentence."""

    def __init__(self, text: str, reason: str, message: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.message = message


class NotReady(KpuError):
    """The Compute cannot be used now."""


class ReadyTimeout(NotReady, TimeoutError):
    """The Compute did not become ready in time. The text tells the last known reason."""


class Suspended(NotReady):
    """The Compute is scaled to zero: `await compute.resume()` first."""


class ComputeDeleted(NotReady):
    """The Compute is gone, or about to be."""


class Unreachable(NotReady):
    """The Compute is ready, but none of its addresses answers from here."""


class TransferFailed(KpuError):
    """Tensors did not get to the other side, or not back."""


class UnsupportedTensor(TransferFailed, TypeError):
    """What was given cannot travel as it is. The text tells what to send instead."""


class MalformedMessage(TransferFailed, ValueError):
    """The peer sent something that contradicts itself or the protocol."""


class InvalidRequest(TransferFailed, ValueError):
    """The server cannot do what was asked: a shape, a dtype or a parameter is wrong."""


class TooLarge(TransferFailed):
    """More bytes or tensors than the receiver accepts, or than it has room for now."""


class Unauthenticated(TransferFailed):
    """The server wants a token and got none, or another."""


class ServerGone(TransferFailed, ConnectionError):
    """No server answers there, or it went away in the middle of a transfer."""


class BypassClosed(TransferFailed, ConnectionError):
    """The way beside gRPC closed while a call used it. The client repeats such a call without that way."""


class TransferTimeout(TransferFailed, TimeoutError):
    """The transfer took longer than it was allowed to."""
