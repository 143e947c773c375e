"""Where a proxied page comes from: which address and port a pod, a Service or a node means. Pure."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import NamedTuple

from tessera.embedded.controllers.objects import EndpointSlice
from tessera.embedded.documents import Frozen
from tessera.embedded.doors.backends import backends_of, port_name
from tessera.embedded.refusals import ApiRefusal, bad_request
from tessera.embedded.resources.parts import each, inside
from tessera.embedded.runtime.addresses import NODE_ADDRESS
from tessera.embedded.serving.proxies import Proxied, nobody_behind

SCHEMES = ("", "http", "https")


class Source(NamedTuple):
    address: str
    port: int
    is_secure: bool = False


def pod_page(pod: Frozen, proxied: Proxied) -> Source:
    """Without a port, the first that the pod names."""
    address = inside(pod, "status").get("podIP")
    if not address:
        raise bad_request(f"address not allowed: pod {proxied.name} has no address yet")
    ports = [port for container in each(pod["spec"], "containers") for port in each(container, "ports")]
    named = {str(port.get("name")): port["containerPort"] for port in ports}
    if not proxied.port:
        return Source(address, ports[0]["containerPort"] if ports else 80, _is_secure(proxied))
    return Source(address, _number(str(named.get(proxied.port, proxied.port)), proxied), _is_secure(proxied))


def service_page(service: Frozen, proxied: Proxied, slices: Iterable[EndpointSlice]) -> Source:
    name = port_name(service, int(proxied.port)) if proxied.port.isdecimal() else proxied.port
    if name is None:
        raise _unavailable(f'no service port {proxied.port} found for service "{proxied.name}"')
    backends = backends_of(slices, name)
    if not backends:
        raise nobody_behind(proxied.name)
    return Source(backends[0].address, backends[0].port, _is_secure(proxied))


def node_page(node: Frozen, proxied: Proxied) -> Source:
    """A node has no kubelet here that could be asked: only a port of the machine can be meant."""
    if not proxied.port:
        name = node["metadata"]["name"]
        raise _unavailable(f'node "{name}" has no kubelet that answers; name a port of it, such as {name}:9400')
    return Source(NODE_ADDRESS, _number(proxied.port, proxied), _is_secure(proxied))


def _is_secure(proxied: Proxied) -> bool:
    if proxied.scheme not in SCHEMES:
        raise bad_request(f'the scheme of {proxied.name} is "{proxied.scheme}", expected http or https')
    return proxied.scheme == "https"


def _number(text: str, proxied: Proxied) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise bad_request(f'the port of {proxied.name} is "{proxied.port}", expected a number or one of its names')
    return int(text)


def _unavailable(message: str) -> ApiRefusal:
    return ApiRefusal(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
