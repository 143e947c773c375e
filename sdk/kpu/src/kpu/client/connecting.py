"""From a Compute that is ready to a client that talks to it: which way leads there, and what must be shown on it."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kpu.client.channels import Trust
from kpu.client.computes import Computes
from kpu.client.endpoints import Endpoint, candidates, first_that_answers, is_in_cluster, service_name
from kpu.client.models import KpuV1alpha1Compute
from kpu.client.port_forward import PortForward
from kpu.client.tensor_client import TensorClient
from kpu.errors import Unreachable

PAUSE_S = 0.5
FORWARD_S = 5.0
"""For a health check through the API server, which is slower than a direct one."""


@dataclass(frozen=True)
class Access:
    """How the server is to be spoken to, wherever it is."""

    token: str | None
    tls: Trust
    metadata: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Route:
    """Where to connect, and the port-forward that leads there if nothing else does."""

    endpoint: Endpoint
    forward: PortForward | None = None

    def close(self) -> None:
        if self.forward is not None:
            self.forward.close()


def access_to(compute: KpuV1alpha1Compute, computes: Computes) -> Access:
    """The token and certificates that the cluster keeps for this Compute, as far as we may read them."""
    token = computes.secret(f"{compute.metadata.name}-token").get("token", b"").decode().strip()
    gateway = (("compute-id", f"{compute.metadata.namespace}/{compute.metadata.name}"),)
    return Access(token or None, _trust(compute, computes), gateway)


def _trust(compute: KpuV1alpha1Compute, computes: Computes) -> Trust:
    secret_name = (compute.spec.tls or {}).get("secretName")
    if not secret_name:
        return None
    secret = computes.secret(secret_name)
    return secret.get("ca.crt") or secret.get("tls.crt") or True


def chosen_route(compute: KpuV1alpha1Compute, host: str, port: int) -> Route:
    """The user knows better: nothing is tried."""
    return Route(Endpoint(host, port, service_name(compute)))


def find_route(compute: KpuV1alpha1Compute, computes: Computes, access: Access, port: int, until_s: float) -> Route:
    """Whatever answers first in the order of preference. Endpoints may lag behind readiness, so it tries again."""
    name = compute.metadata.name
    while True:
        known = candidates(compute, port)
        endpoint, why = first_that_answers(known, access.metadata, access.tls)
        if endpoint is not None:
            return Route(endpoint)
        if not is_in_cluster():
            forward = PortForward(computes.api, lambda: computes.pod_path(name), known[0].port if known else port)
            local = Endpoint(forward.host, forward.port, service_name(compute))
            answering, trouble = first_that_answers([local], access.metadata, access.tls, FORWARD_S)
            if answering is not None:
                return Route(local, forward)
            forward.close()
            why = {**why, **trouble}
        if time.monotonic() + PAUSE_S >= until_s:
            raise Unreachable(_nowhere(compute, why))
        time.sleep(PAUSE_S)
        compute = computes.get(name) or compute


def open_client(route: Route, access: Access) -> TensorClient:
    endpoint = route.endpoint
    return TensorClient(
        endpoint.host,
        endpoint.port,
        token=access.token,
        tls=access.tls,
        server_name=endpoint.server_name if access.tls else None,
        metadata=access.metadata,
    )


def _nowhere(compute: KpuV1alpha1Compute, why: Mapping[Endpoint, str]) -> str:
    tried = "; ".join(f"{endpoint.target}: {trouble}" for endpoint, trouble in why.items())
    return (
        f"Compute {compute.metadata.namespace}/{compute.metadata.name} is ready, but its server does not answer from "
        f"here ({tried}); forward its port with kubectl port-forward and give Compute(host='localhost', port=...)"
    )
