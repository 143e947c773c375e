"""Asks an app what a web server would, without one."""

import asyncio
from typing import Any, NamedTuple

from starlette.types import ASGIApp


class Answer(NamedTuple):
    status: int
    content_type: str
    body: bytes


async def ask(app: ASGIApp, method: str, path: str, body: bytes = b"") -> Answer:
    said, to_say = list[dict[str, Any]](), [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        return to_say.pop() if to_say else await asyncio.Future()  # then we hang on, and say nothing

    async def send(message: Any) -> None:
        said.append(message)

    path, _, query = path.partition("?")
    scope = {"type": "http", "method": method, "path": path, "query_string": query.encode()}
    scope |= {"headers": [], "root_path": ""}
    await app(scope, receive, send)
    content_type = dict(said[0]["headers"]).get(b"content-type", b"").decode()
    return Answer(said[0]["status"], content_type, b"".join(part.get("body", b"") for part in said[1:]))
