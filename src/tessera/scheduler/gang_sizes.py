"""How many pods a gang takes: a GpuGang says so, else a PodGroup of scheduling.x-k8s.io, else the pods themselves."""

import re
from collections.abc import Iterable

import msgspec

from tessera.kube.caching import Change
from tessera.kube.kinds import GPU_GANGS, POD_GROUPS
from tessera.kube.objects import ObjectKey, ObjectMeta
from tessera.model.annotations import keys
from tessera.scheduler.claims import annotations_of

_SIZE = re.compile("[1-9][0-9]{0,8}")


class GangSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    min_member: int = 0


class GangObject(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A GpuGang or a PodGroup: of both the same is read."""

    metadata: ObjectMeta
    spec: GangSpec | None = None

    @property
    def min_member(self) -> int | None:
        return self.spec.min_member if self.spec and self.spec.min_member > 0 else None


CACHED_GANGS = GPU_GANGS.decoded_as(GangObject)
CACHED_GROUPS = POD_GROUPS.decoded_as(GangObject)


class GangSizes:
    """`gang_changed` and `group_changed` are handlers of informers."""

    def __init__(self) -> None:
        self._gangs: dict[ObjectKey, int] = {}
        self._groups: dict[ObjectKey, int] = {}

    def gang_changed(self, change: Change[GangObject]) -> None:
        _put(self._gangs, change)

    def group_changed(self, change: Change[GangObject]) -> None:
        _put(self._groups, change)

    def of(self, gang: ObjectKey, members: Iterable[object]) -> int | None:
        """None, if nothing tells. Of what several members say the most counts."""
        told = self._gangs.get(gang) or self._groups.get(gang)
        if told is not None:
            return told
        said = (annotations_of(pod).get(keys.GANG_SIZE, "") for pod in members)
        return max((int(size) for size in said if _SIZE.fullmatch(size)), default=None)


def _put(sizes: dict[ObjectKey, int], change: Change[GangObject]) -> None:
    size = change.after.min_member if change.after else None
    if size is None:
        sizes.pop(change.key, None)
    else:
        sizes[change.key] = size
