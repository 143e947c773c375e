"""What scheduler and nodes show to Prometheus and people, at the same places as in a cluster.

So one path reads it on both engines: `kubectl get --raw
/api/v1/namespaces/kube-system/services/hami-scheduler:metrics/proxy/metrics` for the scheduler, and
`/api/v1/namespaces/kube-system/pods/<pod of the agent>:metrics/proxy/metrics` for a node.
"""

import asyncio
import socket
from collections.abc import Mapping

import structlog
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp, Receive, Scope, Send

from tessera.apps.embedded_components import AGENT_PORT, LABEL, MANAGER, NAMESPACE
from tessera.apps.embedded_logs import SCHEDULER
from tessera.apps.serving import Listener, listen, make_app, serve_until
from tessera.embedded.runtime.addresses import NODE_ADDRESS
from tessera.errors import InvalidRequest
from tessera.kube.client import Client
from tessera.kube.kinds import kind_of
from tessera.kube.objects import Document

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
SERVICES = kind_of("", "v1", "services", "Service")
PORT = 9395
LOOK_AGAIN_S = 10.0


async def serve_pages(client: Client, app: ASGIApp) -> None:
    """Until cancelled. The Service leads to whichever port is free now."""
    listening = listen(NODE_ADDRESS, 0)
    service = service_to(listening.getsockname()[1])
    await client.apply(SERVICES, SCHEDULER, service, manager=MANAGER, namespace=NAMESPACE, force=True)
    await serve_until(asyncio.Event(), Listener(app, NODE_ADDRESS, 0, listening=listening), stop_s=0)


async def serve_figures(figures: Mapping[str, CollectorRegistry]) -> None:
    """Those of nodes, each at its own address, as an agent has them in a cluster. Until cancelled."""
    pages = {address: make_app(is_ready=lambda: True, metrics=registry) for address, registry in figures.items()}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await pages[scope["server"][0]](scope, receive, send)

    first, *others = [await _listen_at_last(address) for address in figures]
    await serve_until(asyncio.Event(), Listener(app, "", AGENT_PORT, listening=first, others=others), stop_s=0)


async def _listen_at_last(address: str) -> socket.socket:
    """Whoever listens at every address of this machine has the port meanwhile, and it is said once."""
    has_been_said = False
    while True:
        try:
            return listen(address, AGENT_PORT)
        except InvalidRequest as error:
            if not has_been_said:
                log.warning("figures of nodes are not shown", error=str(error))
            has_been_said = True
            await asyncio.sleep(LOOK_AGAIN_S)


def service_to(port: int) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SCHEDULER},
        "spec": {
            "selector": {LABEL: SCHEDULER},
            "ports": [{"name": "metrics", "port": PORT, "targetPort": port}],
        },
    }
