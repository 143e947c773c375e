"""From a Compute that is ready to a client that talks to it: which way leads there, and what must be shown on it."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kpu.client.api import DEADLINE_S
from kpu.client.channels import Trust
from kpu.client.computes import Computes
from kpu.client.deadlines import Deadline
from kpu.client.endpoints import (
    PROBE_S,
    Endpoint,
    candidates,
    first_that_answers,
    is_in_cluster,
    service_name,
)
from kpu.client.models import KpuV1alpha1Compute
from kpu.client.port_forward import PortForward
from kpu.client.tensor_client import TensorClient
from kpu.client.tokens import InSecret, find_token
from kpu.errors import Unreachable

PAUSE_S = 0.5
FORWARD_S = 5.0
"""For a health check through a port that is forwarded, which is slower than a direct one."""
LEAST_S = 0.5
"""What each step gets even of a caller who has no time: something that is there answers within that."""

Found = tuple["Route | None", Mapping[Endpoint, str]]
"""A route, and why what else was tried is none."""


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


@dataclass(frozen=True)
class Attempt:
    """To get to one Compute, as it was when it was last read, in what time is left."""

    compute: KpuV1alpha1Compute
    computes: Computes
    deadline: Deadline

    @property
    def name(self) -> str:
        return self.compute.metadata.name

    def access(self) -> Access:
        """The token and certificates of this Compute, as far as we may read them."""
        gateway = (("compute-id", f"{self.compute.metadata.namespace}/{self.name}"),)
        return Access(self._token(), self._trust(), gateway)

    def route(self, access: Access, host: str | None, port: int) -> Route:
        """Whatever answers first in the order of preference. Endpoints may lag behind readiness, so it tries again."""
        attempt = self
        while True:
            route, why = attempt._chosen(access, host, port) if host else attempt._found(access, port)
            if route is not None:
                return route
            if self.deadline.left_s <= PAUSE_S:
                raise Unreachable(_nowhere(attempt.compute, why))
            time.sleep(PAUSE_S)
            live = self.computes.get(self.name, self._share(DEADLINE_S))
            attempt = replace(self, compute=live or attempt.compute)

    def still_leads_there(self, route: Route, access: Access) -> bool:
        within_s = PROBE_S if route.forward is None else FORWARD_S
        answering, _ = first_that_answers([route.endpoint], access.metadata, access.tls, self._share(within_s))
        return answering is not None

    def _chosen(self, access: Access, host: str, port: int) -> Found:
        """The user knows better: nothing else is tried."""
        chosen = Endpoint(host, port, service_name(self.compute), is_chosen=True)
        answering, why = first_that_answers([chosen], access.metadata, access.tls, self._share(FORWARD_S))
        return Route(chosen) if answering else None, why

    def _found(self, access: Access, port: int) -> Found:
        known = candidates(self.compute, port)
        endpoint, why = first_that_answers(known, access.metadata, access.tls, self._share(PROBE_S))
        if endpoint is not None or is_in_cluster(self.computes.api.url):
            return Route(endpoint) if endpoint else None, why
        route, trouble = self._forwarded(access, known[0].port if known else port)
        return route, {**why, **trouble}

    def _forwarded(self, access: Access, usual_port: int) -> Found:
        forward = PortForward(self.computes.api, lambda: self.computes.server_of(self.name, usual_port))
        local = Endpoint(forward.host, forward.port, service_name(self.compute))
        answering, trouble = first_that_answers([local], access.metadata, access.tls, self._share(FORWARD_S))
        if answering is None:
            forward.close()
        return Route(local, forward) if answering else None, trouble

    def _token(self) -> str | None:
        found = find_token(self.compute)
        if isinstance(found, InSecret):
            found = self._secret(found.name).get(found.key, b"").decode(errors="replace")
        return found.strip() or None

    def _trust(self) -> Trust:
        secret_name = (self.compute.spec.tls or {}).get("secretName")
        if not secret_name:
            return None
        secret = self._secret(secret_name)
        return secret.get("ca.crt") or secret.get("tls.crt") or True

    def _secret(self, name: str) -> dict[str, bytes]:
        return self.computes.secret(name, self._share(DEADLINE_S))

    def _share(self, most_s: float) -> float:
        return self.deadline.share(most_s, LEAST_S)


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
