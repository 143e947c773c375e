"""Resources of nodes that are nobody's cards: what anybody may put on a node and pods may ask for.

kube-scheduler counts them; where there is none, we do. CPU, memory and the number of pods are the engine's, cards are
the ledger's. What was promised to a pod counts until the watch shows the pod on its node. Each port of a node is a
resource of which there is one, whatever address a pod wants it at.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from tessera.errors import InvalidQuantity
from tessera.kube.pods import OVER, Pod
from tessera.model.pod_documents import NO_RESOURCES, Container
from tessera.model.pod_hosts import is_sidecar
from tessera.model.quantities import count_of
from tessera.scheduler.nodes import CachedNode

KNOWN = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})
HOST_PORT = "hostPort/"
Amounts = Mapping[str, int]


class _Promise(NamedTuple):
    node: str
    amounts: Amounts


class OtherResources:
    """`is_ours` says whether a resource stands for cards; `pods_on` finds the pods of a node."""

    def __init__(self, is_ours: Callable[[str], bool], pods_on: Callable[[str], Iterable[Pod]]) -> None:
        self._is_ours = is_ours
        self._pods_on = pods_on
        self._promises: dict[str, _Promise] = {}

    def asked_by(self, pod: Pod) -> Amounts:
        """Counted as Kubernetes counts: an init container runs before the others, beside the sidecars so far."""
        keys = dict.fromkeys(key for container in _containers(pod) for key, _ in self._asked(container))
        return {key: self._peak(pod, key) for key in keys} | dict.fromkeys(_host_ports(pod), 1)

    def _peak(self, pod: Pod, key: str) -> int:
        def asked(container: Container) -> int:
            return dict(self._asked(container)).get(key, 0)

        peak = sidecars = 0
        for container in pod.spec.init_containers or ():
            peak = max(peak, sidecars + asked(container))
            sidecars += asked(container) if is_sidecar(container) else 0
        return max(peak, sidecars + sum(map(asked, pod.spec.containers)))

    def lacking(self, asked: Amounts, node: CachedNode) -> str | None:
        """The first resource of which the node has less free than this, None if it has all of it."""
        if not asked:
            return None
        held = list(self._held_on(node.metadata.name))
        for key, amount in sorted(asked.items()):
            if amount > _has(node, key) - sum(amounts.get(key, 0) for amounts in held):
                return key
        return None

    def promise(self, pod: Pod, node: str, asked: Amounts) -> None:
        if asked:
            self._promises[pod.metadata.uid or ""] = _Promise(node, asked)

    def forget(self, uid: str) -> None:
        """The pod did not get there, or is gone."""
        self._promises.pop(uid, None)

    def _held_on(self, node: str) -> Iterator[Amounts]:
        for pod in self._pods_on(node):
            self._promises.pop(pod.metadata.uid or "", None)
            if pod.status.phase not in OVER:
                yield self.asked_by(pod)
        yield from (promise.amounts for promise in self._promises.values() if promise.node == node)

    def _asked(self, container: Container) -> Iterator[tuple[str, int]]:
        for key, value in (container.resources or NO_RESOURCES).first_of_limits().items():
            if key not in KNOWN and not key.startswith("hugepages-") and not self._is_ours(key):
                yield key, _count(value)


def _containers(pod: Pod) -> tuple[Container, ...]:
    return (*(pod.spec.init_containers or ()), *pod.spec.containers)


def _host_ports(pod: Pod) -> Iterator[str]:
    """Of what runs for as long as the pod does."""
    sidecars = [container for container in pod.spec.init_containers or () if is_sidecar(container)]
    for port in (port for container in (*sidecars, *pod.spec.containers) for port in container.ports or ()):
        if port.get("hostPort"):
            yield f"{HOST_PORT}{port.get('protocol') or 'TCP'}/{port['hostPort']}"


def _has(node: CachedNode, key: str) -> int:
    if key.startswith(HOST_PORT):
        return 1
    status = node.status
    amounts = {**((status and status.capacity) or {}), **((status and status.allocatable) or {})}
    return _count(amounts.get(key, 0))


def _count(value: object) -> int:
    """What cannot be read is nothing: the API server lets no such thing in."""
    try:
        return count_of(value) if isinstance(value, str | int | float) else 0
    except InvalidQuantity:
        return 0
