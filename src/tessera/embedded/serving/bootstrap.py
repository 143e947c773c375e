"""What a server has before anybody asked for anything: its namespaces and what is in them, priorities, its Service.

Each is made once, when it is not there; what somebody changed since is left as it is.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address

from tessera.embedded.access.roles import BUILTIN_ROLES
from tessera.embedded.documents import Document
from tessera.embedded.kinds import Kind
from tessera.embedded.resources import Registry, metadata, table
from tessera.embedded.resources.limits import SYSTEM_PRIORITIES
from tessera.embedded.serving.envelopes import as_stored, decode, encode
from tessera.embedded.serving.furnishing import Furnisher
from tessera.embedded.serving.proxies import SERVICE_LABEL
from tessera.embedded.serving.site import Site
from tessera.embedded.serving.writing import new_uid, now
from tessera.embedded.store import Key

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


async def bootstrap(site: Site) -> None:
    for kind, namespace, document in _seeds(site.service_network[1]):
        key = Key(kind.resource, namespace, document["metadata"]["name"])
        if site.store.get(key) is None:
            site.store.put(key, _completed(site.registry, kind, namespace, document), expected=None)
    _tell_address(site)
    furnisher = Furnisher(site.store, site.authority)
    for namespace in NAMESPACES:
        await furnisher.furnish(namespace)


def _tell_address(site: Site) -> None:
    """Behind the Service `kubernetes` is this server, where it is this time."""
    kind, host, port = table.ENDPOINT_SLICES, *site.address.split(":")
    key, own = Key(kind.resource, "default", "kubernetes"), {"name": "https", "port": int(port), "protocol": "TCP"}
    before = site.store.get(key)
    if before:
        site.store.put(key, {**before.document(), "ports": [own]}, expected=before.version)
        return
    document: Document = {
        "metadata": {"name": "kubernetes", "labels": {SERVICE_LABEL: "kubernetes"}},
        "addressType": "IPv4",
        "ports": [own],
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
    }
    site.store.put(key, _completed(site.registry, kind, "default", document), expected=None)


def _seeds(own_address: IPv4Address) -> Iterator[tuple[Kind, str, Document]]:
    for name in NAMESPACES:
        yield table.NAMESPACES, "", {"metadata": {"name": name}}
    for name, value in SYSTEM_PRIORITIES.items():
        yield table.PRIORITY_CLASSES, "", {"metadata": {"name": name}, "value": value}
    for seeded in BUILTIN_ROLES:
        yield seeded.kind, "", seeded.document
    port = {"name": "https", "port": 443, "protocol": "TCP", "targetPort": 443}
    labels = {"component": "apiserver", "provider": "kubernetes"}
    meta = {"name": "kubernetes", "labels": labels}
    yield table.SERVICES, "default", {"metadata": meta, "spec": {"clusterIP": str(own_address), "ports": [port]}}


def _completed(registry: Registry, kind: Kind, namespace: str, document: Document) -> Document:
    served = registry.find(kind.group, kind.version, kind.plural)
    assert served is not None, "what is seeded is built in"
    begun = metadata.begin(decode(encode(document)), namespace=namespace, now=now(), uid=new_uid(), suffix="")
    return as_stored(served.strategy.prepare_create(served.strategy.default(begun), now()))
