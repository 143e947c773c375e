"""Which pods have really ended: the kernel's word for it, not the API's.

A pod that is deleted by force is gone from the API at once and frees its cards for others, while its processes may go
on for minutes. They are in the pod's control group, and the kubelet removes that only when they are gone.
"""

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import structlog

from tessera.kube.caching import Change
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.node.pods import Pod
from tessera.node.tiles import Tile

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
DEEPEST = 6
MOST_TOLD = 256
"""More than a kubelet runs: all pods of a node may end at once."""
LOOK_AGAIN_S = 1.0
_POD = re.compile(r"pod[0-9a-f][0-9a-f_-]{31,35}(\.slice)?$")


class PodGroups:
    """The control groups of pods, as either driver of the kubelet and either version of the kernel names them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._kept_in: dict[str, Path] = {}

    def alive(self, uids: Collection[str]) -> set[str]:
        """Those of the pods that are alive. All groups are walked once, and only for pods whose group is not known."""
        living = {uid for uid in uids if (known := self._kept_in.get(uid)) and _holds_processes(known)}
        rest = set(uids) - living
        for uid in rest & self._kept_in.keys():
            del self._kept_in[uid]
        for uid, group in self._find(rest) if rest else ():
            if uid not in living and _holds_processes(group):
                self._kept_in[uid] = group
                living.add(uid)
        return living

    def _find(self, uids: Collection[str]) -> Iterator[tuple[str, Path]]:
        names = {f"pod{uid}": uid for uid in uids} | {f"pod{uid.replace('-', '_')}.slice": uid for uid in uids}
        for directory, below, _ in os.walk(self._root):
            pods = [name for name in below if _POD.search(name)]
            for name in pods:
                uid = names.get(name[name.rindex("pod") :])
                if uid:
                    yield uid, Path(directory, name)
            if directory.count(os.sep) - str(self._root).count(os.sep) >= DEEPEST:
                below.clear()
            below[:] = [name for name in below if name not in pods]


def _holds_processes(group: Path) -> bool:
    for directory, _, files in os.walk(group):
        if "cgroup.procs" in files:
            try:
                if Path(directory, "cgroup.procs").read_text().strip():
                    return True
            except OSError:
                continue
    return False


class Endings:
    """Follows pods of this node that vanished from the API.

    `ended` are those that are over, the latest last: what the scheduler waits for. `told` is called when one is added;
    whoever has passed it on says so by `confirm`.
    """

    def __init__(
        self,
        tiles: Callable[[], Sequence[Tile]],
        alive: Callable[[Collection[str]], set[str]],
        is_known: Callable[[str], bool],
        *,
        told: Callable[[], None] = lambda: None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._tiles = tiles
        self._alive = alive
        self._is_known = is_known
        self._told = told
        self._clock = clock
        self._vanished: set[str] = set()
        self._confirmed: frozenset[str] = frozenset()
        self.ended: tuple[str, ...] = ()

    def recall(self, ended: Sequence[str]) -> None:
        """What an agent before us has told of this node."""
        self.ended = (*ended, *self.ended)[-MOST_TOLD:]
        self.confirm(ended)

    def confirm(self, ended: Sequence[str]) -> None:
        self._confirmed = frozenset(ended)

    def is_told(self, uid: str) -> bool:
        """Whether the scheduler can know that the pod has ended: only then may its tiles be forgotten."""
        return uid in self._confirmed

    def pod_changed(self, change: Change[Pod]) -> None:
        uid = (change.before.metadata.uid if change.before else None) or ""
        if change.after is None and uid:
            self._vanished.add(uid)

    def lingering(self) -> list[Tile]:
        """Tiles of pods that the API does not know any more and whose processes still run."""
        unknown = self._unknown()
        alive = self._alive(unknown)
        return [tile for tile in self._tiles() if tile.pod.uid in alive]

    def _unknown(self) -> set[str]:
        return {tile.pod.uid for tile in self._tiles() if not self._is_known(tile.pod.uid)}

    async def run(self) -> None:
        while True:
            self.look()
            await self._clock.sleep(LOOK_AGAIN_S)

    def look(self) -> None:
        """Also of pods that vanished while no agent was here: their tiles are still on disk."""
        self._vanished |= self._unknown() - set(self.ended)
        over = sorted(self._vanished - self._alive(self._vanished))
        if not over:
            return
        self._vanished.difference_update(over)
        self.ended = (*self.ended, *over)[-MOST_TOLD:]
        log.info("pods ended", uids=over)
        self._told()
