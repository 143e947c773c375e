"""Where the server of a Compute is: which addresses there are, and which of them answers from here.

That something accepts a connection proves nothing: an address of a cluster's network may belong to another machine in
ours, and we are about to send it a token. So it must answer a health check, which needs no token, as our server does.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import grpc

from kpu.client.channels import CLUSTER_DOMAIN, Trust, credentials, refuse_forked_child, route_options, target
from kpu.client.models import KpuV1alpha1Compute

PROBE_S = 1.0
API_SERVICE = "kubernetes"
"""What every cluster calls its API server, as in kubernetes.default.svc."""
_CHECK = "/grpc.health.v1.Health/Check"
_REQUEST = b"\x0a\x11kpu.torch.Service"
"""HealthCheckRequest with this service, in protobuf's encoding."""
_SERVING = b"\x08\x01"


@dataclass(frozen=True)
class Endpoint:
    """`server_name` is whom its certificate must be about, if it has one; `is_chosen` is one that the user named."""

    host: str
    port: int
    server_name: str
    is_chosen: bool = False

    @property
    def target(self) -> str:
        return target(self.host, self.port)


def candidates(compute: KpuV1alpha1Compute, port: int) -> Sequence[Endpoint]:
    """In the order in which they are to be tried; the name that the cluster's DNS has comes last."""
    name = service_name(compute)
    told = compute.status.addresses if compute.status else ()
    found = [Endpoint(one.value, one.port or port, name) for one in told if one.value]
    by_dns = Endpoint(name, port, name)
    return [*found, *([] if any(one.host == name for one in found) else [by_dns])]


def service_name(compute: KpuV1alpha1Compute) -> str:
    return f"{compute.metadata.name}.{compute.metadata.namespace}.svc{CLUSTER_DOMAIN}"


def is_in_cluster(api_url: str) -> bool:
    """Whether this is a pod of the very cluster that it talks to: a pod may have a kubeconfig for another one."""
    own = os.environ.get("KUBERNETES_SERVICE_HOST", "").strip("[]")
    host = urlsplit(api_url).hostname or ""
    return bool(own) and (host == own or host.partition(".")[0] == API_SERVICE)


def first_that_answers(
    endpoints: Sequence[Endpoint],
    metadata: Sequence[tuple[str, str]],
    tls: Trust,
    within_s: float = PROBE_S,
) -> tuple[Endpoint | None, Mapping[Endpoint, str]]:
    """All are asked at once. Beside it, why each of the others is none."""
    probes = {one: Probe(one, metadata, tls, within_s) for one in endpoints}
    why = {one: probe.trouble() for one, probe in probes.items()}
    found = next((one for one in endpoints if why[one] is None), None)
    return found, {one: trouble for one, trouble in why.items() if trouble is not None}


class Probe:
    """A health check under way."""

    def __init__(self, endpoint: Endpoint, metadata: Sequence[tuple[str, str]], tls: Trust, within_s: float) -> None:
        self._endpoint = endpoint
        self._channel = _channel(endpoint, tls)
        channel: Any = self._channel
        self._call = channel.unary_unary(_CHECK).future(_REQUEST, timeout=within_s, metadata=tuple(metadata))

    def trouble(self) -> str | None:
        """Why it is not to be used; None if it is.

        The first servers had no health checks. One that the user named may be such, as he knows whom he trusts.
        """
        try:
            answer: bytes = self._call.result()
        except grpc.RpcError as error:
            code: Any = self._call.code()
            if code is grpc.StatusCode.UNIMPLEMENTED and self._endpoint.is_chosen:
                return None
            return f"{code.name}: {self._call.details() or error}"
        finally:
            self._channel.close()
        return None if answer == _SERVING else "the server says that it is not serving"


def _channel(endpoint: Endpoint, tls: Trust) -> grpc.Channel:
    refuse_forked_child()
    trusted = credentials(tls)
    if trusted is None:
        return grpc.insecure_channel(endpoint.target, route_options(endpoint.host, None))
    return grpc.secure_channel(endpoint.target, trusted, route_options(endpoint.host, endpoint.server_name))
