"""Resources of nodes that are nobody's cards: what anybody may put on a node and pods may ask for.

kube-scheduler counts them; where there is none, we do. CPU, memory and the number of pods are the engine's, cards are
the ledger's.
"""

from collections.abc import Callable, Iterable, Mapping

from tessera.errors import InvalidQuantity
from tessera.kube.pods import Pod
from tessera.model.pod_documents import NO_RESOURCES, Resources
from tessera.model.quantities import count_of
from tessera.scheduler.nodes import CachedNode
from tessera.scheduler.reading import OVER

KNOWN = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})
Amounts = Mapping[str, int]


class OtherResources:
    """`is_ours` says whether a resource stands for cards; `pods_on` finds the pods of a node."""

    def __init__(self, is_ours: Callable[[str], bool], pods_on: Callable[[str], Iterable[Pod]]) -> None:
        self._is_ours = is_ours
        self._pods_on = pods_on

    def asked_by(self, pod: Pod) -> Amounts:
        """An init container runs before the others, so the larger of the two counts."""
        apps, most = dict[str, int](), dict[str, int]()
        for container in pod.spec.containers:
            for key, amount in self._asked(container.resources or NO_RESOURCES):
                apps[key] = apps.get(key, 0) + amount
        for container in pod.spec.init_containers or ():
            for key, amount in self._asked(container.resources or NO_RESOURCES):
                most[key] = max(most.get(key, 0), amount)
        return {key: max(apps.get(key, 0), most.get(key, 0)) for key in apps.keys() | most.keys()}

    def lacking(self, asked: Amounts, node: CachedNode) -> str | None:
        """The first resource of which the node has less free than this, None if it has all of it."""
        if not asked:
            return None
        held = [self.asked_by(pod) for pod in self._pods_on(node.metadata.name) if pod.status.phase not in OVER]
        for key, amount in sorted(asked.items()):
            if amount > self._has(node, key) - sum(pod.get(key, 0) for pod in held):
                return key
        return None

    def _asked(self, resources: Resources) -> Iterable[tuple[str, int]]:
        for key, value in resources.first_of_limits().items():
            if key not in KNOWN and not key.startswith("hugepages-") and not self._is_ours(key):
                yield key, _count(value)

    @staticmethod
    def _has(node: CachedNode, key: str) -> int:
        status = node.status
        amounts = {**((status and status.capacity) or {}), **((status and status.allocatable) or {})}
        return _count(amounts.get(key, 0))


def _count(value: object) -> int:
    """What cannot be read is nothing: the API server lets no such thing in."""
    try:
        return count_of(value) if isinstance(value, str | int | float) else 0
    except InvalidQuantity:
        return 0
