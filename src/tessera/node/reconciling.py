"""What the kubelet says is held, against what the scheduler gave: strays are told, and tiles that are over removed.

A stray is a container that holds tiles without an allocation, or whose tile was made of other cards than its pod names
now. Nothing is taken from a running container; people are told.
"""

import time
from collections.abc import Callable, Iterable

import structlog

from tessera.errors import KubeletFailed
from tessera.kube.event_series import ObjectReference
from tessera.kube.events import Recorder
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.node.holders import Holder
from tessera.node.kubelet import Kubelet
from tessera.node.pods import Pod
from tessera.node.starting import Starter
from tessera.node.strays import Strays
from tessera.node.tile_store import TileStore
from tessera.node.tiles import Tile

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
EVERY_S = 10.0
YOUNG_S = 300.0
"""A tile is given to a container that may take a while to start: to pull an image, to wait for an init container."""


class Reconciliation:
    """`find_pod` knows the pods of this node by UID, `has_ended` whether a pod's end was seen and told."""

    def __init__(
        self,
        kubelet: Kubelet,
        store: TileStore,
        starter: Starter,
        strays: Strays,
        recorder: Recorder,
        *,
        find_pod: Callable[[str], Pod | None],
        has_ended: Callable[[str], bool],
        removed: Callable[[], None] = lambda: None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._kubelet = kubelet
        self._store = store
        self._starter = starter
        self._strays = strays
        self._recorder = recorder
        self._find_pod = find_pod
        self._has_ended = has_ended
        self._removed = removed
        self._clock = clock
        self.strays: tuple[Tile, ...] = ()

    async def run(self) -> None:
        while True:
            await self._clock.sleep(EVERY_S)
            try:
                await self._kubelet.list_holders()
                self.look(self._kubelet.kept_holders())
            except (KubeletFailed, OSError) as error:
                log.warning("not reconciled", error=str(error))

    def look(self, kept: Iterable[Holder] | None) -> None:
        """Without a checkpoint nobody knows who still comes for a tile, so none is removed."""
        if kept is not None:
            self._remove_over({holder.token for holder in kept})
        strays = self._strays.among(self._store)
        for tile in strays:
            if tile not in self.strays:
                self._tell(tile)
        self.strays = strays

    def _remove_over(self, held: set[str]) -> None:
        known = {tile.token: tile for tile in self._store}
        over = {token for token in self._store.tokens() - held if self._is_over(token, known.get(token))}
        for token in over:
            self._store.remove(token)
        if over:
            self._starter.forget(over)
            log.info("tiles removed", tiles=len(over))
            self._removed()

    def _is_over(self, token: str, tile: Tile | None) -> bool:
        if tile is None:
            return self._store.age_s(token, time.time()) > YOUNG_S
        return self._find_pod(tile.pod.uid) is None and self._has_ended(tile.pod.uid)

    def _tell(self, tile: Tile) -> None:
        about = ObjectReference(kind="Pod", name=tile.pod.name, namespace=tile.pod.namespace, uid=tile.pod.uid)
        cards = ", ".join(share.uuid for share in tile.shares)
        sentence = f"container {tile.container} runs with {cards}, which the pod's annotations do not name any more"
        log.warning("stray container", pod=str(tile.pod), container=tile.container, cards=cards)
        self._recorder.warning(about, "StrayContainer", sentence)
