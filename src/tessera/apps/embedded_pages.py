"""What the scheduler shows to Prometheus and people, behind a Service as in a cluster.

So one path reads it on both engines: `kubectl get --raw
/api/v1/namespaces/kube-system/services/hami-scheduler:metrics/proxy/metrics`.
"""

import asyncio

from starlette.types import ASGIApp

from tessera.apps.embedded_components import LABEL, MANAGER, NAMESPACE
from tessera.apps.embedded_logs import SCHEDULER
from tessera.apps.serving import Listener, listen, serve_until
from tessera.embedded.runtime.addresses import NODE_ADDRESS
from tessera.kube.client import Client
from tessera.kube.kinds import kind_of
from tessera.kube.objects import Document

SERVICES = kind_of("", "v1", "services", "Service")
PORT = 9395


async def serve_pages(client: Client, app: ASGIApp) -> None:
    """Until cancelled. The Service leads to whichever port is free now."""
    listening = listen(NODE_ADDRESS, 0)
    service = service_to(listening.getsockname()[1])
    await client.apply(SERVICES, SCHEDULER, service, manager=MANAGER, namespace=NAMESPACE, force=True)
    await serve_until(asyncio.Event(), Listener(app, NODE_ADDRESS, 0, listening=listening), stop_s=0)


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
