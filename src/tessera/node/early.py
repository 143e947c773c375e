"""Without CDI: a container's cards are chosen when the kubelet admits its pod, before it says which pod that is.

An old container runtime takes environment, mounts and device files only from the answer to `Allocate`. So the container
is guessed: of the pods bound to this node whose containers were not answered yet, the first that asks for as many
cards. The scheduler lets no two pods come here at once that could be mistaken for each other, so the guess is right;
when the container starts it is checked, and a container with another's cards is not started.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from tessera.errors import StartRefused
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.model.annotations.keys import VGPU_TIME
from tessera.model.pods import read_pod_ref
from tessera.node.pods import Pod
from tessera.node.preparing import Given, container_names, count_tiles
from tessera.node.starting import Starter
from tessera.node.tile_store import TileStore
from tessera.node.tiles import TileKind
from tessera.node.waiting import wait_for
from tessera.vendors.rendering import ContainerEdits

PATIENCE_S = 5.0
"""While we wait, the kubelet admits nobody else."""
BEGUN = frozenset({"Running", "Succeeded", "Failed"})


class Guess(NamedTuple):
    pod: Pod
    container: str
    given: Given


class EarlyStarter:
    """`pods` are those of this node."""

    def __init__(
        self,
        starter: Starter,
        store: TileStore,
        pods: Callable[[], Iterable[Pod]],
        *,
        patience_s: float = PATIENCE_S,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._starter = starter
        self._store = store
        self._pods = pods
        self._patience_s = patience_s
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()

    async def answer(self, kind: TileKind, ids: frozenset[str]) -> tuple[str, ContainerEdits]:
        async with self._one_at_a_time:
            return await self._answer(kind, ids)

    async def _answer(self, kind: TileKind, ids: frozenset[str]) -> tuple[str, ContainerEdits]:
        async def find_guess() -> Guess | None:
            return self.guess(kind, len(ids))

        deadline_s = self._clock.monotonic_s() + self._patience_s
        guess = await wait_for(
            find_guess,
            f"no pod waits on {self._starter.preparer.node} for {len(ids)} tiles of {kind.resource}, expected"
            " one with an allocation in its annotations; is the scheduler running?",
            deadline_s=deadline_s,
            clock=self._clock,
        )
        where = f"{read_pod_ref(guess.pod)}: container {guess.container}"
        await self._starter.until_deserted(guess.given.shares, where, deadline_s)
        token = self._starter.answer(kind.resource, ids)
        edits = await self._starter.preparer.prepare(
            kind, guess.pod, guess.container, token=token, ids=ids, given=guess.given
        )
        return token, edits

    def guess(self, kind: TileKind, count: int) -> Guess | None:
        answered = {(tile.pod.uid, tile.container) for tile in self._store if tile.resource == kind.resource}
        waiting = [pod for pod in self._pods() if pod.status.phase not in BEGUN and not pod.metadata.deletion_timestamp]
        for pod in sorted(waiting, key=_bound_at):
            for container in container_names(pod):
                if (pod.metadata.uid, container) in answered or count_tiles(pod, container, kind.resource) != count:
                    continue
                with suppress(StartRefused):  # one pod that cannot be read is in nobody else's way
                    if given := self._starter.preparer.given_to(pod, kind.vendor, container):
                        return Guess(pod, container, given)
        return None

    async def start(self, kind: TileKind, ids: frozenset[str]) -> None:
        """What the container is told of was decided before: the guess is checked."""
        tiles = {tile.token: tile for tile in self._store}
        deadline_s = self._clock.monotonic_s() + self._patience_s
        for holder in await self._starter.holders(kind, ids, deadline_s):
            tile = tiles.get(holder.token)
            if tile is None or (tile.pod.uid, tile.container) != (holder.pod_uid, holder.container):
                other = f"{tile.pod}, container {tile.container}" if tile else "nobody"
                raise StartRefused(
                    f"container {holder.container} of the pod with UID {holder.pod_uid} was given the cards of {other},"
                    " because this node's container runtime has no CDI; delete the pod, and enable CDI"
                )
            self._starter.preparer.renew(tile)


def _bound_at(pod: Pod) -> tuple[str, str]:
    return str((pod.metadata.annotations or {}).get(VGPU_TIME, "")), pod.metadata.uid or ""
