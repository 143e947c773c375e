"""What the API server is given to reach what runs: it implements the server's `Nodes`."""

from collections.abc import Mapping

from tessera.embedded.documents import Frozen
from tessera.embedded.doors.attaching import attach_over
from tessera.embedded.doors.commands import exec_over
from tessera.embedded.doors.forwarding import forward_over
from tessera.embedded.doors.logs import stream_log
from tessera.embedded.doors.page_passing import pass_page
from tessera.embedded.doors.page_sources import node_page, pod_page, service_page
from tessera.embedded.doors.services import Services
from tessera.embedded.refusals import bad_request
from tessera.embedded.runtime.runtime import Runtime
from tessera.embedded.serving.answers import Receive, Reply, Scope, Send
from tessera.embedded.serving.paths import Target
from tessera.embedded.serving.proxies import Proxied


class Connections:
    def __init__(self, runtime: Runtime, services: Services) -> None:
        self._runtime = runtime
        self._services = services

    async def log(self, pod: Frozen, query: Mapping[str, str]) -> Reply:
        return stream_log(self._runtime, pod, query)

    async def connect(
        self, document: Frozen, target: Target, proxied: Proxied, scope: Scope, receive: Receive, send: Send
    ) -> None:
        match target.subresource:
            case "exec":
                await exec_over(self._runtime, document, scope, receive, send)
            case "attach":
                await attach_over(self._runtime, document, scope, receive, send)
            case "portforward":
                await forward_over(document, scope, receive, send)
            case _:
                await self._pass(document, target, proxied, scope, receive, send)

    async def _pass(
        self, document: Frozen, target: Target, proxied: Proxied, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if scope["type"] != "http":
            raise bad_request("a WebSocket is not passed on to a pod; forward its port instead")
        if target.plural == "services":
            source = service_page(document, proxied, self._services.slices_of(target.namespace, target.name))
        else:
            source = (node_page if target.plural == "nodes" else pod_page)(document, proxied)
        await pass_page(source, scope, receive, send)
