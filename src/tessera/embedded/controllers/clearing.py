"""A taint NoExecute clears a node: pods that do not bear it go at once, those that bear it for a time go after it."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime

import structlog

from tessera.embedded.controllers.objects import NODES, Node, reference_to
from tessera.embedded.controllers.placing import NO_EXECUTE, bears
from tessera.embedded.controllers.pods import PODS, Pod
from tessera.embedded.controllers.times import write_time
from tessera.embedded.controllers.watching import Watching
from tessera.embedded.controllers.writes import carry_out_one, delete
from tessera.errors import Conflict, NotFound
from tessera.kube.caching import Change
from tessera.kube.client import Client, PatchType
from tessera.kube.events import Recorder
from tessera.kube.objects import Document, ObjectKey
from tessera.kube.reconciler import Again, Reconciler
from tessera.kube.timing import SYSTEM_CLOCK, Clock

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def clearing_taints(node: Node | None) -> Sequence[Document]:
    return [taint for taint in (node.spec.taints if node else None) or () if taint.get("effect") == NO_EXECUTE]


def borne_for_s(pod: Pod, taints: Sequence[Document]) -> float | None:
    """How long the pod may stay with these; None for ever. The toleration that runs out first decides."""
    tolerations = pod.spec.tolerations or ()
    limits: list[float] = []
    for taint in taints:
        bearing = [one for one in tolerations if bears(one, taint)]
        if not bearing:
            return 0.0
        limits += [max(0.0, one["tolerationSeconds"]) for one in bearing if one.get("tolerationSeconds") is not None]
    return min(limits, default=None)


def disruption(at: datetime) -> Document:
    """What a pod says of itself that goes through no fault of its own."""
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint",
        "lastTransitionTime": write_time(at),
    }


class Clearing:
    """`run` belongs in a TaskGroup of the caller, beside that of `watching`."""

    def __init__(
        self,
        client: Client,
        watching: Watching,
        recorder: Recorder,
        clock: Clock = SYSTEM_CLOCK,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._clock = clock
        self._monotonic_s = monotonic_s
        self._nodes = watching.follow(NODES)
        self._pods = watching.follow(PODS)
        self._tainted_since_s: dict[ObjectKey, float] = {}
        self._reconciler: Reconciler[ObjectKey] = Reconciler("pods on tainted nodes", self._reconcile)
        self._nodes.subscribe(self._notice_node)
        self._pods.subscribe(self._notice_pod)

    async def run(self) -> None:
        await self._nodes.synced()
        await self._pods.synced()
        await self._reconciler.run()

    def _notice_node(self, change: Change[Node]) -> None:
        if clearing_taints(change.before) != clearing_taints(change.after):
            for pod in self._pods:
                if pod.spec.node_name == change.key.name:
                    self._reconciler.mark(pod.metadata.key)

    def _notice_pod(self, change: Change[Pod]) -> None:
        if change.after is None:
            self._tainted_since_s.pop(change.key, None)
        elif self._taints_around(change.after):
            self._reconciler.mark(change.key)

    def _taints_around(self, pod: Pod) -> Sequence[Document]:
        return clearing_taints(self._nodes.get(ObjectKey("", pod.spec.node_name)))

    async def _reconcile(self, key: ObjectKey) -> Again | None:
        pod = self._pods.get(key)
        taints = self._taints_around(pod) if pod is not None and not pod.metadata.is_going else ()
        if pod is None or not taints:
            self._tainted_since_s.pop(key, None)
            return None
        since_s = self._tainted_since_s.setdefault(key, self._monotonic_s())
        limit_s = borne_for_s(pod, taints)
        if limit_s is None:
            return None
        left_s = since_s + limit_s - self._monotonic_s()
        if left_s > 0:
            return Again(left_s)
        await self._drive_off(pod)
        return None

    async def _drive_off(self, pod: Pod) -> None:
        metadata = pod.metadata
        log.info("pod driven off by a taint", pod=str(metadata.key), node=pod.spec.node_name)
        about = reference_to(PODS, metadata)
        self._recorder.normal(about, "TaintManagerEviction", f"Marking for deletion Pod {metadata.key}")
        told = {"metadata": {"uid": metadata.uid}, "status": {"conditions": [disruption(self._clock.wall())]}}
        try:
            await self._client.patch(
                PODS.decoded_as(Document),
                metadata.name,
                told,
                namespace=metadata.namespace,
                patch_type=PatchType.STRATEGIC,
                subresource="status",
            )
        except (Conflict, NotFound):
            return
        await carry_out_one(self._client, delete(PODS, metadata))
