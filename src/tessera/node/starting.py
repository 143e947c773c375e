"""A container is about to start: find out whose it is, and make its tiles what the scheduler gave it.

The kubelet names tiles only. Who holds them is asked of the kubelet, what they were given is read from the pod. Where
either is not known yet we wait a little; the kubelet tries again later by itself. Rather than start a container with
the wrong cards or without limits, it is not started, and one sentence says why.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.model.pods import read_pod_ref
from tessera.node.holders import Holder, holders_of
from tessera.node.kubelet import Kubelet
from tessera.node.pods import Pod
from tessera.node.preparing import Given, Preparer, Shares
from tessera.node.tile_store import TileStore
from tessera.node.tiles import Tile, TileKind
from tessera.node.waiting import wait_for

T = TypeVar("T")
PATIENCE_S = 20.0
"""For the whole of a start: the kubelet waits half a minute for us, and then nobody hears why."""


class Starter:
    """`find_pod` knows the pods of this node; `lingering` are tiles of pods that are gone but whose processes run."""

    def __init__(
        self,
        preparer: Preparer,
        kubelet: Kubelet,
        store: TileStore,
        *,
        find_pod: Callable[[Holder], Pod | None],
        lingering: Callable[[], Sequence[Tile]],
        patience_s: float = PATIENCE_S,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.preparer = preparer
        self._kubelet = kubelet
        self._store = store
        self._find_pod = find_pod
        self._lingering = lingering
        self._patience_s = patience_s
        self._clock = clock
        self._answered: dict[tuple[str, frozenset[str]], list[str]] = {}

    def answer(self, resource: str, ids: frozenset[str]) -> str:
        """A new tile for a container that the kubelet admits; which one it is, is known when it starts."""
        token = self._store.new_token()
        self._answered.setdefault((resource, ids), []).append(token)
        return token

    def forget(self, tokens: set[str]) -> None:
        """These tiles are over."""
        for key, answered in list(self._answered.items()):
            self._answered[key] = [token for token in answered if token not in tokens]
            if not self._answered[key]:
                del self._answered[key]

    async def start(self, kind: TileKind, ids: frozenset[str]) -> None:
        """Returns once every container for which these tiles may be is ready to be made."""
        deadline_s = self._clock.monotonic_s() + self._patience_s
        for holder in await self.holders(kind, ids, deadline_s):
            await self._prepare(kind, holder, deadline_s)

    async def holders(self, kind: TileKind, ids: frozenset[str], deadline_s: float) -> tuple[Holder, ...]:
        """Several where an app container took over the tiles of an init container."""
        resource, named = kind.resource, ", ".join(sorted(ids))
        return await self._until(
            lambda: self._find_holders(resource, ids),
            f"{resource} {named}: the kubelet names no container for it",
            deadline_s,
        )

    async def _find_holders(self, resource: str, ids: frozenset[str]) -> tuple[Holder, ...] | None:
        answered = self._answered.get((resource, ids), ())
        kept = self._kubelet.kept_holders() or ()
        return holders_of(resource, ids, (), kept, answered) or (
            holders_of(resource, ids, await self._kubelet.list_holders(), kept, answered) or None
        )

    async def _prepare(self, kind: TileKind, holder: Holder, deadline_s: float) -> None:
        name = f"{holder.namespace}/{holder.pod}" if holder.pod else f"with UID {holder.pod_uid}"
        node = self.preparer.node

        async def find_pod() -> Pod | None:
            return self._find_pod(holder)

        pod = await self._until(find_pod, f"pod {name} is not known to the API server as one of {node}", deadline_s)
        where = f"{read_pod_ref(pod)}: container {holder.container}"

        async def find_given() -> Given | None:
            return self.preparer.given_to(self._find_pod(holder) or pod, kind.vendor, holder.container)

        given = await self._until(
            find_given,
            f"{where} was given no {kind.resource} by the scheduler, expected an allocation in the pod's"
            f" annotations; is the scheduler running, and does the pod fit on {node}?",
            deadline_s,
        )
        await self.until_deserted(given.shares, where, deadline_s)
        await self.preparer.prepare(kind, pod, holder.container, token=holder.token, ids=holder.ids, given=given)

    async def until_deserted(self, shares: Shares, where: str, deadline_s: float) -> None:
        """Processes of a pod that was deleted by force may still be on a card: wait for their end."""
        cards = {share.uuid for share in shares}

        async def find_none() -> bool | None:
            crowded = any(share.uuid in cards for tile in self._lingering() for share in tile.shares)
            return None if crowded else True

        crowded = f"{where} would share a card with a pod that was deleted and still runs there"
        await self._until(find_none, crowded, deadline_s)

    async def _until(self, attempt: Callable[[], Awaitable[T | None]], otherwise: str, deadline_s: float) -> T:
        return await wait_for(attempt, otherwise, deadline_s=deadline_s, clock=self._clock)
