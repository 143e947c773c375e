"""Who stands behind a Service, and what it is called. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from tessera.embedded.controllers.objects import EndpointSlice, Service
from tessera.embedded.documents import Frozen
from tessera.embedded.resources.parts import each, inside
from tessera.kube.objects import ObjectKey

SERVICE_NAME = "kubernetes.io/service-name"
DOMAIN = "svc.cluster.local"
HEADLESS = "None"


class Backend(NamedTuple):
    address: str
    port: int


class Front(NamedTuple):
    """An address of the Service itself, and the name of the port that is reached there."""

    address: str
    port: int
    name: str


class Name(NamedTuple):
    """`name` is what a pod of the namespace says; others add the namespace."""

    address: str
    name: str
    namespace: str


def service_of(one: EndpointSlice) -> ObjectKey | None:
    name = (one.metadata.labels or {}).get(SERVICE_NAME)
    return ObjectKey(one.metadata.namespace, name) if name else None


def backends_of(slices: Iterable[EndpointSlice], port_name: str) -> list[Backend]:
    """The ready ones, each once."""
    found: dict[Backend, None] = {}
    for one in slices:
        numbers = [port["port"] for port in one.ports or () if (port.get("name") or "") == port_name]
        for endpoint in _ready(one):
            found |= dict.fromkeys(Backend(endpoint["addresses"][0], number) for number in numbers)
    return list(found)


def port_name(service: Frozen, number: int) -> str | None:
    """What the Service calls this port of it; None, if it has no such port."""
    names = [port.get("name") or "" for port in each(service["spec"], "ports") if port["port"] == number]
    return names[0] if names else None


def fronts_of(service: Service) -> list[Front]:
    """Where the Service is to be listened for. Only TCP is forwarded."""
    address = service.spec.cluster_ip or HEADLESS
    if address == HEADLESS or service.metadata.is_going:
        return []
    ports: Sequence[Frozen] = [port for port in service.spec.ports or () if port.get("protocol", "TCP") == "TCP"]
    return [Front(address, port["port"], port.get("name") or "") for port in ports]


def names_of(service: Service, slices: Iterable[EndpointSlice]) -> list[Name]:
    """Without an address of its own, a Service is called by those of its pods, and each pod also by its own name."""
    name, namespace = service.metadata.name, service.metadata.namespace
    address = service.spec.cluster_ip
    if service.spec.type == "ExternalName" or not address:
        return []
    if address != HEADLESS:
        return [Name(address, name, namespace)]
    found: list[Name] = []
    for endpoint in (endpoint for one in slices for endpoint in _ready(one)):
        own: str = endpoint["addresses"][0]
        found.append(Name(own, name, namespace))
        if endpoint.get("hostname"):
            found.append(Name(own, f"{endpoint['hostname']}.{name}", namespace))
    return found


def hosts_entry(known: Name, namespace: str) -> tuple[str, str]:
    """As a pod of this namespace looks it up: all that a resolver would make of it by adding domains."""
    full = f"{known.name}.{known.namespace}"
    called = [f"{full}.{DOMAIN}", f"{full}.svc", full]
    if known.namespace == namespace:
        called.append(known.name)
    return known.address, " ".join(called)


def _ready(one: EndpointSlice) -> Iterator[dict[str, Any]]:
    """Whoever says nothing of its readiness is ready."""
    for endpoint in one.endpoints or ():
        if inside(endpoint, "conditions").get("ready", True) is not False and each(endpoint, "addresses"):
            yield endpoint
