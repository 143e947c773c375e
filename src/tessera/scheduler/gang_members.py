"""Who belongs to a gang, and who of them still waits.

A pod belongs to the gang that its annotation names, else to that of its claim. Members that are bound, or have done
their work, count: one that is made anew need not wait for its whole gang. Those on their way out do not, nor those that
a gate holds back.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tessera.kube.objects import ObjectKey
from tessera.kube.pods import Pod
from tessera.model.annotations import keys
from tessera.model.pod_documents import read_head
from tessera.scheduler.claims import annotations_of
from tessera.scheduler.gang_sizes import GangSizes
from tessera.scheduler.world import FOREVER, World

SUCCEEDED, FAILED = "Succeeded", "Failed"


def gang_said_by(pod: object) -> tuple[str, ...]:
    """The gang that a pod names itself, as an index over pods has it."""
    name = annotations_of(pod).get(keys.GANG)
    return (str(ObjectKey(read_head(pod).namespace or "", name)),) if name else ()


def standing_of(pod: Pod) -> tuple[object, ...]:
    """What of a member may change whether its gang can go; not when it was last woken."""
    said = {key: value for key, value in annotations_of(pod).items() if key not in (keys.WOKEN_AT, keys.FENCED_AT)}
    return said, pod.spec, pod.status.phase, pod.metadata.deletion_timestamp


class Muster(NamedTuple):
    """A gang as it stands: how many are there, how many it takes, and who has no place yet."""

    present: int
    size: int | None
    waiting: list[Pod]

    @property
    def needed(self) -> int:
        """How many of those who wait must go for it to be whole."""
        return (self.size or 0) - (self.present - len(self.waiting))

    @property
    def is_short(self) -> bool:
        """Whether fewer are on their nodes, or have done their work, than it takes."""
        return self.size is None or self.needed > 0


class GangMembers:
    """`saying` are the pods that name a gang themselves."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.sizes = GangSizes()
        self.saying: Callable[[ObjectKey], Iterable[Pod]] = lambda _: ()

    def gang_of(self, pod: object) -> ObjectKey | None:
        said, namespace = annotations_of(pod), read_head(pod).namespace or "default"
        name = said.get(keys.GANG, "")
        if not name and keys.CLAIM in said:
            name = self._world.claims.gang_of(ObjectKey(namespace, said[keys.CLAIM]))
        return ObjectKey(namespace, name) if name else None

    def muster(self, gang: ObjectKey) -> Muster:
        members = list(self._members(gang))
        return Muster(len(members), self.sizes.of(gang, members), list(filter(self.is_waiting, members)))

    def is_waiting(self, pod: Pod) -> bool:
        held = self._world.ledger.holding(pod.metadata.uid or "")
        is_decided = held is not None and held.expires_at == FOREVER
        return not (pod.spec.node_name or is_decided or pod.status.phase == SUCCEEDED)

    def _members(self, gang: ObjectKey) -> Iterator[Pod]:
        found: dict[str, Pod] = {}
        for pods in (self.saying(gang), *(self._world.naming(claim) for claim in self._world.claims.in_gang(gang))):
            found |= {pod.metadata.uid or "": pod for pod in pods if self.gang_of(pod) == gang}
        for pod in found.values():
            is_held = pod.spec.scheduling_gates and not pod.spec.node_name
            if pod.status.phase != FAILED and pod.metadata.deletion_timestamp is None and not is_held:
                yield pod
