"""How a Compute goes: by garbage collection, which takes with it all that it owns.

A client that wants its pod to have another time to end than usual says so on the Compute and holds it by a finalizer.
Then the pod is deleted here with that time before the Compute is let go. A time that runs cannot be prolonged, and a
kubelet that has told its runtime of one does not shorten it: so the pod is deleted before its StatefulSet learns that
it must go. A pod without any time is gone at once, and its StatefulSet must know before, or it makes another.
"""

import structlog

from tessera.errors import Conflict, NotFound
from tessera.kube.client import Client, Deletion
from tessera.kube.kinds import PODS
from tessera.kube.objects import Document, ObjectKey
from tessera.operators.compute_children import set_name
from tessera.operators.compute_objects import (
    COMPUTE_DOCUMENTS,
    DELETION_FINALIZER,
    GRACE_ANNOTATION,
    STATEFUL_SETS,
    Compute,
    is_owned,
)
from tessera.operators.compute_watching import WatchedComputes

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Ender:
    def __init__(self, client: Client, watched: WatchedComputes) -> None:
        self._client = client
        self._watched = watched

    async def let_go(self, compute: Compute) -> None:
        """Whoever comes too late finds it changed or gone, which is told anew or does not matter."""
        finalizers = compute.metadata.finalizers or ()
        if DELETION_FINALIZER not in finalizers:
            return
        grace_s = read_grace_s(compute)
        if grace_s is not None:
            await self._end_pods(compute, grace_s)
        others = [one for one in finalizers if one != DELETION_FINALIZER]
        body = {"metadata": {"resourceVersion": compute.metadata.resource_version, "finalizers": others}}
        try:
            await self._client.patch(COMPUTE_DOCUMENTS, compute.name, body, namespace=compute.namespace)
        except (Conflict, NotFound):
            return
        log.info("compute let go", compute=str(compute.key), grace_s=grace_s)

    async def _end_pods(self, compute: Compute, grace_s: int) -> None:
        stateful_set = self._watched.child(STATEFUL_SETS, ObjectKey(compute.namespace, set_name(compute)))
        if stateful_set is not None and not is_owned(stateful_set, compute):
            return
        if grace_s > 0:
            await self._delete_pods(compute, grace_s)
        if stateful_set is not None:
            await self._empty(stateful_set)
        if grace_s == 0:
            await self._delete_pods(compute, grace_s)

    async def _delete_pods(self, compute: Compute, grace_s: int) -> None:
        for pod in self._watched.pods_of(compute):
            how = Deletion(uid=pod.metadata.uid or "", grace_s=grace_s)
            try:
                await self._client.delete(PODS, pod.name, namespace=compute.namespace, how=how)
            except (Conflict, NotFound):
                continue

    async def _empty(self, stateful_set: Document) -> None:
        metadata: Document = stateful_set["metadata"]
        body = {"metadata": {"uid": metadata["uid"]}, "spec": {"replicas": 0}}
        try:
            await self._client.patch(STATEFUL_SETS, metadata["name"], body, namespace=metadata["namespace"])
        except (Conflict, NotFound):
            return


def read_grace_s(compute: Compute) -> int | None:
    """None, if none is told that can be used: then it is as usual."""
    told = (compute.metadata.annotations or {}).get(GRACE_ANNOTATION, "")
    return int(told) if told.isascii() and told.isdecimal() else None
