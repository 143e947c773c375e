"""A WebSocket as the server hands it over: accepted with a protocol, read message by message, closed once."""

from collections.abc import AsyncIterator, Callable

from tessera.embedded.refusals import bad_request
from tessera.embedded.serving.answers import Receive, Scope, Send

GOOD_END, BROKEN = 1000, 1011


class WebSocket:
    """Made by `accept`."""

    def __init__(self, protocol: str, receive: Receive, send: Send) -> None:
        self.protocol = protocol
        self._receive = receive
        self._send = send

    @classmethod
    async def accept(
        cls, scope: Scope, receive: Receive, send: Send, choose: Callable[[list[str]], str | None]
    ) -> "WebSocket":
        """Raises ApiRefusal before anything is said, if this is no WebSocket or none of its protocols is known."""
        if scope["type"] != "websocket":
            raise bad_request("Upgrade request required")
        offered = list(scope["subprotocols"])
        protocol = choose(offered)
        if protocol is None:
            raise bad_request(f"none of the protocols {', '.join(offered) or '(none)'} is known here")
        await receive()  # that somebody wants to connect is all it says
        await send({"type": "websocket.accept", "subprotocol": protocol})
        return cls(protocol, receive, send)

    async def messages(self) -> AsyncIterator[bytes]:
        """Until the other side leaves. Some clients send bytes as text."""
        while (event := await self._receive())["type"] == "websocket.receive":
            data = event.get("bytes")
            yield data if data is not None else event["text"].encode()

    async def send(self, message: bytes) -> None:
        """Waits while the other side does not read. Raises OSError, if it has left."""
        await self._send({"type": "websocket.send", "bytes": message})

    async def close(self, code: int = GOOD_END) -> None:
        await self._send({"type": "websocket.close", "code": code})
