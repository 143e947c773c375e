"""Pages behind the server: which pod or Service is meant, and whether anybody is there to answer. Pure."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import NamedTuple

from tessera.embedded.documents import Frozen
from tessera.embedded.refusals import ApiRefusal
from tessera.embedded.resources.parts import each, inside

SERVICE_LABEL = "kubernetes.io/service-name"


class Proxied(NamedTuple):
    """`port` is a name, a number or nothing."""

    name: str
    port: str = ""
    scheme: str = ""


def read_proxied(text: str) -> Proxied:
    """`web`, `web:80` or `http:web:80`."""
    parts = text.split(":")
    if len(parts) == 3:
        return Proxied(parts[1], parts[2], parts[0])
    return Proxied(*parts[:2])


def ready_addresses(service: str, slices: Iterable[Frozen]) -> list[str]:
    """Of the pods behind a Service, as EndpointSlices list them."""
    ours = (one for one in slices if inside(one["metadata"], "labels").get(SERVICE_LABEL) == service)
    endpoints = (endpoint for one in ours for endpoint in each(one, "endpoints"))
    ready = (endpoint for endpoint in endpoints if inside(endpoint, "conditions").get("ready", True))
    return [address for endpoint in ready for address in endpoint["addresses"][:1]]


def nobody_behind(service: str) -> ApiRefusal:
    message = f'no endpoints available for service "{service}"'
    return ApiRefusal(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
