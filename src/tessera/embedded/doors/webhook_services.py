"""Where a webhook is that names a Service: the API server calls it, and lives outside the network of pods."""

import msgspec

from tessera.embedded.admitting import Reader
from tessera.embedded.controllers.objects import EndpointSlice
from tessera.embedded.doors.backends import Backend, backends_of, port_name, service_of
from tessera.embedded.resources.table import ENDPOINT_SLICES, SERVICES
from tessera.kube.objects import ObjectKey


class WebhookServices:
    """Asks what is stored: a webhook is called in the middle of a write, and no cache may be behind then."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def __call__(self, namespace: str, name: str, port: int) -> Backend | None:
        """None, if nobody is ready there."""
        service = self._reader.get(SERVICES.resource, namespace, name)
        called = port_name(service, port) if service else None
        if called is None:
            return None
        stored = self._reader.list(ENDPOINT_SLICES.resource, namespace)
        slices = [msgspec.convert(one, EndpointSlice) for one in stored]
        ours = [one for one in slices if service_of(one) == ObjectKey(namespace, name)]
        return next(iter(backends_of(ours, called)), None)
