"""Nodes that must know which pod comes next: those whose container runtime has no CDI.

Their kubelet asks for devices without saying for whom, and what a container gets cannot be changed afterwards. So pods
that ask for the same number of cards go there one after the other: the next when the kubelet has taken the last one in.
"""

from collections.abc import Callable

from tessera.engine.ledger import Holding
from tessera.errors import BindRefused
from tessera.kube.objects import ObjectKey
from tessera.kube.pods import Pod
from tessera.model.annotations.keys import CLAIM, LATE_BINDING
from tessera.model.requests import PodRef, PodRequest
from tessera.scheduler.nodes import CachedNode
from tessera.scheduler.world import FOREVER, World

TAKEN_IN = frozenset({"Initialized", "PodReadyToStartContainers", "ContainersReady"})
"""Conditions that the kubelet sets, and only once it has admitted a pod."""


class EarlyNodes:
    """`find_node` and `find_pod` know them as they were last seen."""

    def __init__(
        self,
        world: World,
        find_node: Callable[[ObjectKey], CachedNode | None],
        find_pod: Callable[[ObjectKey], Pod | None],
    ) -> None:
        self._world = world
        self._find_node = find_node
        self._find_pod = find_pod

    def check(self, ref: PodRef, request: PodRequest, node: str) -> None:
        """BindRefused, while a pod that could be mistaken for this one is on its way to the node."""
        if not self._is_early(node):
            return
        wanted = _counts(request, claims=request.claim is not None)
        for holding in self._world.ledger.holdings_on(node):
            alike = wanted & _counts(holding.request, claims=bool(holding.allocation.claimed))
            if holding.ref.uid != ref.uid and alike and self._is_on_its_way(holding):
                raise BindRefused(
                    f"{ref}: {node} has no CDI and is about to start {holding.ref}, which asks for as many cards;"
                    " the pod is tried again"
                )

    def _is_early(self, node: str) -> bool:
        found = self._find_node(ObjectKey("", node))
        conditions = (found.status.conditions if found is not None and found.status else None) or ()
        return any(said.type == LATE_BINDING and said.status == "False" for said in conditions)

    def _is_on_its_way(self, holding: Holding) -> bool:
        """Not so for a pod that was only offered the node, nor for one that is gone."""
        pod = self._find_pod(ObjectKey(holding.ref.namespace, holding.ref.name))
        if holding.expires_at < FOREVER or pod is None or pod.metadata.uid != holding.ref.uid:
            return False
        return not any(said.type in TAKEN_IN for said in pod.status.conditions or ())


def _counts(request: PodRequest, *, claims: bool) -> set[tuple[str, int]]:
    """What the kubelet is asked for; by every container of a pod with a claim the same."""
    asked = {(device.vendor, device.count) for container in request.containers for device in container.devices}
    return {*asked, *([(CLAIM, 1)] if claims else [])}
