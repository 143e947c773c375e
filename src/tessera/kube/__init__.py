"""The only Kubernetes transport: verbs, caches that follow, work queues, leases and events.

What talks to an API server does it through here; nothing else imports aiohttp. What is decided from what was read
belongs in `engine`, what an annotation means in `model`. One implementation, asyncio: whoever is not asynchronous
runs it in a loop of its own.

    async with Client(find_access()) as client:
        pod = await client.get(PODS, "web-0", namespace="default")

`Informer` follows a kind, `Reconciler` works through keys, `Election` decides who writes, `Recorder` tells people.
"""

from tessera.kube.access import Access, find_access, in_cluster_access
from tessera.kube.caching import Change
from tessera.kube.client import Client, Deletion, PatchType
from tessera.kube.events import Recorder
from tessera.kube.heartbeats import Heartbeat
from tessera.kube.informer import Informer
from tessera.kube.kinds import Kind, Selection, kind_of
from tessera.kube.leases import Election
from tessera.kube.objects import Document, ObjectKey, ObjectMeta
from tessera.kube.reconciler import Again, Reconciler
from tessera.kube.transport import Limits

__all__ = [
    "Access",
    "Again",
    "Change",
    "Client",
    "Deletion",
    "Document",
    "Election",
    "Heartbeat",
    "Informer",
    "Kind",
    "Limits",
    "ObjectKey",
    "ObjectMeta",
    "PatchType",
    "Reconciler",
    "Recorder",
    "Selection",
    "find_access",
    "in_cluster_access",
    "kind_of",
]
