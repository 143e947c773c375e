"""Services as they are now, from two caches that somebody else keeps."""

from collections.abc import Callable, Collection, Sequence

from tessera.embedded.controllers.objects import EndpointSlice, Service
from tessera.embedded.doors.backends import Backend, Name, backends_of, hosts_entry, names_of, service_of
from tessera.kube.caching import Change
from tessera.kube.informer import Informer
from tessera.kube.objects import ObjectKey


class Services:
    """The informers belong to the caller, and run beside this."""

    def __init__(self, services: Informer[Service], slices: Informer[EndpointSlice]) -> None:
        self._services = services
        self._slices: dict[ObjectKey, dict[ObjectKey, EndpointSlice]] = {}
        self._names: dict[ObjectKey, Sequence[Name]] = {}
        self._watchers: list[Callable[[ObjectKey], None]] = []
        services.subscribe(lambda change: self._tell(change.key))
        slices.subscribe(self._note_slice)

    def watch(self, watcher: Callable[[ObjectKey], None]) -> None:
        """Tell which Services are there, and from then on each that has changed, or whose pods have."""
        self._watchers.append(watcher)
        for service in self._services:
            watcher(service.metadata.key)

    def get(self, key: ObjectKey) -> Service | None:
        return self._services.get(key)

    def slices_of(self, namespace: str, name: str) -> Collection[EndpointSlice]:
        return self._slices.get(ObjectKey(namespace, name), {}).values()

    def backends(self, key: ObjectKey, port_name: str) -> list[Backend]:
        return backends_of(self._slices.get(key, {}).values(), port_name)

    def hosts(self, namespace: str) -> Sequence[tuple[str, str]]:
        """Addresses and what they are called, for the /etc/hosts of a pod in this namespace."""
        return [hosts_entry(name, namespace) for names in self._names.values() for name in names]

    def note_names(self, key: ObjectKey) -> bool:
        """Take in what a Service is called now; whether it was called otherwise."""
        service = self._services.get(key)
        names = names_of(service, self._slices.get(key, {}).values()) if service else []
        if names == self._names.get(key, []):
            return False
        self._names[key] = names
        if not names:
            del self._names[key]
        return True

    def _note_slice(self, change: Change[EndpointSlice]) -> None:
        for one, is_there in ((change.before, False), (change.after, True)):
            key = service_of(one) if one else None
            if key is None or one is None:
                continue
            known = self._slices.setdefault(key, {})
            if is_there:
                known[change.key] = one
            else:
                known.pop(change.key, None)
            if not known:
                del self._slices[key]
            self._tell(key)

    def _tell(self, key: ObjectKey) -> None:
        for watcher in self._watchers:
            watcher(key)
