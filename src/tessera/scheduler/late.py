"""Late allocation: cards for pods that somebody else put on a node.

A pod with a nodeName from the start, a static pod's mirror, a pod of Volcano or of another scheduler comes to its node
without cards. It gets them there, by the same decision and with the same care as at a bind. The agent starts none of
its containers before. Where there are no cards for it that is kept and told once, and it is tried again when some are
freed.

Another scheduler may write its own choice a moment after its binding, so nothing is decided in the first seconds.
"""

from collections.abc import Callable
from functools import partial

import msgspec
import structlog

from tessera.engine.ledger import State
from tessera.errors import BindRefused, Conflict, InvalidInput, KubeError
from tessera.kube.client import Client
from tessera.kube.objects import ObjectKey, identify
from tessera.kube.pods import CACHED_PODS, Pod
from tessera.kube.reconciler import Again
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.model.allocations import Allocation
from tessera.model.requests import HostRequest, PodRef, PodRequest, Toleration
from tessera.scheduler.commits import Commits
from tessera.scheduler.reading import BoundPod, put_pod
from tessera.scheduler.world import World

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

GRACE_S = 2.0
LOOK_AGAIN_S = 1.0
ANY_TAINT = (Toleration(operator="Exists"),)


class LateAllocator:
    """`allocate` belongs in a Reconciler. `may_decide` says whether all is known and nobody else decides.

    `refused` has, for each pod that found no cards, why; `refused_late` is told of each once.
    """

    def __init__(
        self,
        commits: Commits,
        world: World,
        find_pod: Callable[[ObjectKey], Pod | None],
        *,
        may_decide: Callable[[], bool],
        grace_s: float = GRACE_S,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._commits = commits
        self._world = world
        self._find_pod = find_pod
        self._may_decide = may_decide
        self._grace_s = grace_s
        self._clock = clock
        self._first_seen_s: dict[ObjectKey, tuple[str, float]] = {}
        self.refused: dict[ObjectKey, str] = {}
        self.refused_late: Callable[[PodRef, str], None] = lambda _, __: None

    async def allocate(self, key: ObjectKey) -> Again | None:
        """Give the pod its cards, if it still has none."""
        async with self._commits.turn_of(key):
            pod = self._find_pod(key)
            bound = self._still_without(pod)
            if pod is None or bound is None:
                self._forget(key)
                return None
            wait_s = self._wait_s(key, bound.ref.uid)
            if wait_s > 0:
                return Again(wait_s)
            if not self._may_decide() or self._commits.lost_on(bound.ref.uid):
                return Again(LOOK_AGAIN_S)
            return await self._allocate(key, pod, bound)

    def _still_without(self, pod: Pod | None) -> BoundPod | None:
        """The pod, if it has no cards on a node whose cards are ours to give."""
        if pod is None or not self._world.is_undecided(pod):
            return None
        return self._world.reader.bound_pod(pod)

    def _wait_s(self, key: ObjectKey, uid: str) -> float:
        now_s = self._clock.monotonic_s()
        seen = self._first_seen_s.get(key)
        if seen is None or seen[0] != uid:
            seen = self._first_seen_s[key] = uid, now_s
        return seen[1] + self._grace_s - now_s

    async def _allocate(self, key: ObjectKey, pod: Pod, bound: BoundPod) -> Again | None:
        try:
            allocation = self._known_cards(bound) or self._take(bound)
            await self._commits.write(bound.ref, bound.request, allocation, partial(_patch, pod))
        except Conflict:
            self._charge(key, bound.ref.uid)
            return Again(LOOK_AGAIN_S)
        except KubeError:
            self._charge(key, bound.ref.uid)
            raise
        except (BindRefused, InvalidInput) as error:
            self._charge(key, bound.ref.uid)
            self._refuse(key, bound.ref, str(error))
            return None
        self._forget(key)
        log.info("pod allocated late", pod=str(bound.ref), node=bound.node, cards=len(allocation.shares))
        return None

    def _known_cards(self, bound: BoundPod) -> Allocation | None:
        """What the pod holds already: somebody has only wiped it off its annotations."""
        held = self._world.ledger.holding(bound.ref.uid)
        if held is None or held.state is not State.BOUND or not held.allocation.shares:
            return None
        return held.allocation if held.allocation.node == bound.node else None

    def _take(self, bound: BoundPod) -> Allocation:
        """Reserve cards for a pod that is there already: it has passed the node's gate, and its place is its own."""
        held = self._world.ledger.holding(bound.ref.uid)
        if held is not None and held.state is State.BOUND:
            self._world.ledger.release(bound.ref.uid)
        return self._commits.take(bound.ref, bound.request, bound.node, judged=_as_on_node(bound.request))

    def _charge(self, key: ObjectKey, uid: str) -> None:
        """A pod that got no cards still takes its place on the node, for as long as it is there."""
        pod = self._find_pod(key)
        bound = self._world.reader.bound_pod(pod) if pod is not None and pod.metadata.uid == uid else None
        if bound is not None and self._world.ledger.holding(uid) is None:
            put_pod(self._world.ledger, bound)

    def _refuse(self, key: ObjectKey, ref: PodRef, sentence: str) -> None:
        if self.refused.get(key) == sentence:
            return
        is_news = key not in self.refused
        self.refused[key] = sentence
        if is_news:
            log.warning("no cards for a pod on its node", pod=str(ref), reason=sentence)
            self.refused_late(ref, sentence)

    def _forget(self, key: ObjectKey) -> None:
        self._first_seen_s.pop(key, None)
        self.refused.pop(key, None)


def _as_on_node(request: PodRequest) -> PodRequest:
    """Who put the pod there knows the pod's own rules, and nothing of the nodes that a claim or a pin is for."""
    host = HostRequest(
        cpu_milli=request.host.cpu_milli,
        memory_bytes=request.host.memory_bytes,
        node_terms=request.host.node_terms if request.claim else (),
        tolerations=ANY_TAINT,
    )
    return msgspec.structs.replace(request, host=host)


async def _patch(pod: Pod, client: Client, annotations: dict[str, str]) -> None:
    key, uid, version = identify(pod)
    metadata = {"uid": uid, "resourceVersion": version, "annotations": annotations}
    await client.patch(CACHED_PODS, key.name, {"metadata": metadata}, namespace=key.namespace)
