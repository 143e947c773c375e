"""What only the machine that runs a pod can answer: its log, a command in it, a way to its ports.

The runtime implements `Nodes` and is given to the server when there is one.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Protocol

from tessera.embedded.documents import Frozen
from tessera.embedded.refusals import ApiRefusal
from tessera.embedded.serving.answers import Receive, Reply, Scope, Send
from tessera.embedded.serving.paths import Target
from tessera.embedded.serving.proxies import Proxied

CONNECTED = frozenset({"attach", "exec", "portforward", "proxy"})
"""Subresources through which bytes flow both ways, or which another server answers."""


class Nodes(Protocol):
    async def log(self, pod: Frozen, query: Mapping[str, str]) -> Reply:
        """What a container has printed. Raises ApiRefusal."""
        ...

    async def connect(
        self, document: Frozen, target: Target, proxied: Proxied, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Take the whole exchange over: exec, attach or port-forward, or a page of a pod or of one behind a Service.

        `document` is that pod, Service or node; `proxied` is what its name said of scheme and port. Raises ApiRefusal
        before anything was sent, and never after.
        """
        ...


def not_yet(subresource: str) -> ApiRefusal:
    message = f"this server has no nodes that run pods, so {subresource} cannot be answered"
    return ApiRefusal(HTTPStatus.NOT_IMPLEMENTED, "NotImplemented", message)
