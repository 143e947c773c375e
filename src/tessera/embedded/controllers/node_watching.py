"""The shell of nodes: leases and conditions in, taints out; and pods of nodes that are gone."""

import time
from collections.abc import Callable
from typing import Any

import structlog

from tessera.embedded.controllers import nodes
from tessera.embedded.controllers.objects import LEASES, NODES, Lease, Node
from tessera.embedded.controllers.pods import PODS, Pod
from tessera.embedded.controllers.watching import Watching, Work
from tessera.embedded.controllers.writes import Delete, carry_out, carry_out_one
from tessera.kube.caching import Change
from tessera.kube.client import Client, Deletion
from tessera.kube.objects import ObjectKey
from tessera.kube.reconciler import Again, Reconciler
from tessera.kube.timing import SYSTEM_CLOCK, Clock

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

NODE_LEASES = "kube-node-lease"


class Nodes:
    """`works` belong in a TaskGroup of the caller, beside that of `watching`."""

    def __init__(
        self,
        client: Client,
        watching: Watching,
        clock: Clock = SYSTEM_CLOCK,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._clock = clock
        self._monotonic_s = monotonic_s
        self._nodes = watching.follow(NODES)
        self._leases = watching.follow(LEASES)
        self._pods = watching.follow(PODS)
        self._renewed_at_s: dict[str, float] = {}
        self._missing_since_s: dict[ObjectKey, float] = {}
        self._tainting: Reconciler[str] = Reconciler("nodes", self._taint)
        self._removing: Reconciler[ObjectKey] = Reconciler("pods without a node", self._remove)
        self._nodes.subscribe(self._notice_node)
        self._leases.subscribe(self._notice_lease)
        self._pods.subscribe(self._notice_pod)

    def works(self) -> list[Work]:
        return [self._run(self._tainting), self._run(self._removing)]

    async def _run(self, reconciler: Reconciler[Any]) -> None:
        for informer in (self._nodes, self._leases, self._pods):
            await informer.synced()
        await reconciler.run()

    def _notice_node(self, change: Change[Node]) -> None:
        self._tainting.mark(change.key.name)
        if change.after is None:
            for pod in self._pods:
                if pod.spec.node_name == change.key.name:
                    self._removing.mark(pod.metadata.key)

    def _notice_lease(self, change: Change[Lease]) -> None:
        """How long ago it was renewed is judged by our own clock, from when we saw it."""
        if change.key.namespace != NODE_LEASES:
            return
        if change.after is None:
            self._renewed_at_s.pop(change.key.name, None)
        else:
            self._renewed_at_s[change.key.name] = self._monotonic_s()
            if change.before is None:
                self._tainting.mark(change.key.name)

    def _notice_pod(self, change: Change[Pod]) -> None:
        if change.after is None:
            self._missing_since_s.pop(change.key, None)
        elif change.after.spec.node_name and self._is_alone(change.after):
            self._removing.mark(change.key)

    def _is_alone(self, pod: Pod) -> bool:
        """So it looks too while the nodes are still being listed; nothing is removed before they all are."""
        return self._nodes.get(ObjectKey("", pod.spec.node_name)) is None

    async def _taint(self, name: str) -> Again | None:
        node = self._nodes.get(ObjectKey("", name))
        if node is None:
            return None
        renewed_at_s = self._renewed_at_s.get(name)
        silent_s = None if renewed_at_s is None else self._monotonic_s() - renewed_at_s
        await carry_out(self._client, nodes.plan(node, silent_s, self._clock.wall()))
        return None if silent_s is None else Again(max(1.0, nodes.SILENCE_S - silent_s))

    async def _remove(self, key: ObjectKey) -> Again | None:
        """At once for nobody: a node may be made just after its pods."""
        pod = self._pods.get(key)
        if pod is None or not pod.spec.node_name or not self._is_alone(pod):
            self._missing_since_s.pop(key, None)
            return None
        since_s = self._missing_since_s.setdefault(key, self._monotonic_s())
        left_s = since_s + nodes.ORPHANED_S - self._monotonic_s()
        if left_s > 0:
            return Again(left_s)
        log.info("pod removed whose node is gone", pod=str(key), node=pod.spec.node_name)
        await carry_out_one(self._client, Delete(PODS, key, Deletion(uid=pod.metadata.uid, grace_s=0)))
        return None
