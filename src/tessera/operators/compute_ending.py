"""How a Compute goes: by garbage collection, which takes with it all that it owns.

A client that wants its pod to have another time to end than usual says so on the Compute and holds it by a finalizer.
Then the pod is deleted here with that time, and the Compute is let go when its pod is gone, as it is where the whole is
deleted in the foreground. A time that runs cannot be prolonged, and a kubelet that has told its runtime of one does not
shorten it: so the pod is deleted before its StatefulSet learns that it must go. A pod without any time is gone at once,
and its StatefulSet must know before, or it makes another.
"""

from contextlib import suppress

import structlog

from tessera.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound
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
)
from tessera.operators.compute_watching import WatchedComputes
from tessera.operators.owning import is_owned
from tessera.operators.turns import Turn

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
LONGEST_GRACE_S = 2**31 - 1


class Ender:
    def __init__(self, client: Client, watched: WatchedComputes, turn: Turn) -> None:
        self._client = client
        self._watched = watched
        self._turn = turn

    async def let_go(self, compute: Compute) -> None:
        """Once its pods are gone. Their end is told, and so it is looked at again then.

        Whoever comes too late finds it changed or gone, which is told anew or does not matter.
        """
        finalizers = compute.metadata.finalizers or ()
        if DELETION_FINALIZER not in finalizers:
            return
        grace_s = read_grace_s(compute)
        if grace_s is not None and not await self._has_ended(compute, grace_s):
            return
        others = [one for one in finalizers if one != DELETION_FINALIZER]
        body = {"metadata": {"resourceVersion": compute.metadata.resource_version, "finalizers": others}}
        try:
            await self._turn.pen(self._client).patch(COMPUTE_DOCUMENTS, compute.name, body, namespace=compute.namespace)
        except (Conflict, NotFound):
            return
        log.info("compute let go", compute=str(compute.key), grace_s=grace_s)

    async def _has_ended(self, compute: Compute, grace_s: int) -> bool:
        """A Compute must not stay for ever because its pod cannot be ended in a special way: then it is as usual."""
        stateful_set = self._watched.child(STATEFUL_SETS, ObjectKey(compute.namespace, set_name(compute)))
        if stateful_set is None or not is_owned(stateful_set, compute):
            return True
        try:
            return await self._end_pods(stateful_set, grace_s)
        except (BadRequest, Forbidden, Invalid) as error:
            log.warning("grace refused", compute=str(compute.key), grace_s=grace_s, error=str(error))
            return True

    async def _end_pods(self, stateful_set: Document, grace_s: int) -> bool:
        """Whether there are none any more, and none that is about to be made."""
        if grace_s > 0:
            await self._delete_pods(stateful_set, grace_s)
        emptied = await self._empty(stateful_set)
        if grace_s == 0:
            await self._delete_pods(stateful_set, grace_s)
        return (emptied is None or has_seen_its_end(emptied)) and not self._watched.pods_of(stateful_set)

    async def _delete_pods(self, stateful_set: Document, grace_s: int) -> None:
        for pod in self._watched.pods_of(stateful_set):
            how = Deletion(uid=pod.metadata.uid or "", grace_s=grace_s)
            with suppress(Conflict, NotFound):
                await self._turn.pen(self._client).delete(
                    PODS, pod.name, namespace=pod.metadata.namespace or "", how=how
                )

    async def _empty(self, stateful_set: Document) -> Document | None:
        """None if it is gone, and another of its name may be there."""
        with suppress(Conflict, NotFound):
            return await empty(self._turn.pen(self._client), stateful_set)
        return None


async def empty(client: Client, stateful_set: Document) -> Document:
    """Of this very StatefulSet, whatever else is wanted of it."""
    metadata: Document = stateful_set["metadata"]
    body = {"metadata": {"uid": metadata["uid"]}, "spec": {"replicas": 0}}
    return await client.patch(STATEFUL_SETS, metadata["name"], body, namespace=metadata["namespace"])


def has_seen_its_end(stateful_set: Document) -> bool:
    """Whether its controller knows that no pod is wanted: until then it may be about to make one."""
    status: Document = stateful_set.get("status") or {}
    return status.get("observedGeneration", 0) >= stateful_set["metadata"]["generation"]


def read_grace_s(compute: Compute) -> int | None:
    """None, if none is told that can be used: then it is as usual."""
    told = (compute.metadata.annotations or {}).get(GRACE_ANNOTATION, "")
    if not told.isascii() or not told.isdecimal() or len(told) > len(str(LONGEST_GRACE_S)):
        return None
    return int(told) if int(told) <= LONGEST_GRACE_S else None
