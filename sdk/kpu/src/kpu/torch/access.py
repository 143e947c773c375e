"""Who may call: whoever sends the server's token. Told apart before a message is read."""

import hmac
import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

import grpc

from kpu.torch import health
from kpu.torch.logs import facts

log = logging.getLogger(__name__)

_SCHEME = "bearer "
_OPEN = f"/{health.SERVICE}/"
_MISSING = (
    "this server wants a token and the call has none; send the metadata `authorization: Bearer <token>` (Compute reads "
    "it from the Secret <name>-token, TensorClient takes token=)"
)
_WRONG = "the token of the call is not this server's; look it up again, for a Compute in the Secret <name>-token"


class TokenGate(grpc.aio.ServerInterceptor):
    """Lets calls with the right token through, and everybody to the health service."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        if handler_call_details.method.startswith(_OPEN):
            return await continuation(handler_call_details)
        given = _token_of(handler_call_details)
        if given is not None and hmac.compare_digest(given.encode(), self._token):
            return await continuation(handler_call_details)
        log.warning("call refused %s", facts(method=handler_call_details.method, token=bool(given)))
        return _refusal(_MISSING if given is None else _WRONG)


def _token_of(details: grpc.HandlerCallDetails) -> str | None:
    pairs = cast("tuple[tuple[str, str | bytes], ...]", details.invocation_metadata or ())
    for key, value in pairs:
        text = value.decode(errors="replace") if isinstance(value, bytes) else value
        if key == "authorization" and text[: len(_SCHEME)].lower() == _SCHEME:
            return text[len(_SCHEME) :].strip()
    return None


def _refusal(text: str) -> Any:
    async def refuse(_: Any, context: grpc.aio.ServicerContext[bytes, bytes]) -> None:
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, text)

    # Of the one kind that reads nothing by itself, whatever kind the method is.
    return cast("Any", grpc).stream_stream_rpc_method_handler(refuse)
