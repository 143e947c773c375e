"""The body of a request, read to its end, for whatever serves HTTP."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Disconnected(Exception):
    """Whoever asked is gone before the question was whole."""


class TooLarge(Exception):
    """There is more than anybody may send. The rest was not read."""


async def read_body(receive: Receive, most_bytes: int) -> bytes:
    """Raises Disconnected or TooLarge."""
    parts, size = list[bytes](), 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most_bytes:
            raise TooLarge
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)
