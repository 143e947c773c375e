"""The addresses of Services: each its own, from one range, kept for as long as the Service is there."""

from collections.abc import Iterable
from ipaddress import IPv4Network

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import Cause, invalid
from tessera.embedded.resources.services import HEADLESS, give_address, needs_address
from tessera.embedded.resources.table import SERVICES
from tessera.embedded.store import Store

RANGE = IPv4Network("10.96.0.0/16")
_FIRST = 10
"""The lowest are left to what every cluster has: the API server itself is the first."""


class Addresses:
    """Asks the store who has what: services are few, and nothing can be forgotten or given twice."""

    def __init__(self, store: Store, range: IPv4Network = RANGE) -> None:
        self._store = store
        self._range = range
        self._next = _FIRST

    def complete(self, service: Document) -> None:
        """Give a new Service its address, unless it wants none; refuse one that another has."""
        wanted = service["spec"].get("clusterIP", HEADLESS)
        if needs_address(service):
            give_address(service, self._free())
        elif wanted != HEADLESS and wanted in self._taken():
            why = f'Invalid value: ["{wanted}"]: failed to allocate IP {wanted}: provided IP is already allocated'
            name = service["metadata"].get("name", "")
            raise invalid(SERVICES, name, [Cause("FieldValueInvalid", why, "spec.clusterIPs")])

    def _free(self) -> str:
        taken = self._taken()
        while True:
            address = str(self._range[self._next])
            self._next = self._next + 1 if self._next + 2 < self._range.num_addresses else _FIRST
            if address not in taken:
                return address

    def _taken(self) -> set[str]:
        services: Iterable[Frozen] = (record.document() for record in self._store.list(SERVICES.resource))
        return {service["spec"].get("clusterIP", "") for service in services}
