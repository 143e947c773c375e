"""Drift: the ledger compared with the API now and then, healed where they do not agree, and shown.

The ledger follows events, and a mistake in following them would stay for as long as the process. So a second ledger is
made from a fresh list, in slices, so that nobody waits for it. Events between the list and now make the two differ for
a moment. What differs is therefore looked at once more, a little later, and counts only if it differs in the same way.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import datetime
from typing import TypeVar

import structlog

from tessera.engine.ledger import State
from tessera.errors import KubeError, NotFound
from tessera.kube.caching import Change
from tessera.kube.client import Client
from tessera.kube.kinds import Kind, Selection
from tessera.kube.listing import Page
from tessera.kube.objects import ObjectKey, identify
from tessera.kube.pods import CACHED_PODS, Pod
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.scheduler.nodes import CACHED_NODES, CachedNode
from tessera.scheduler.rebuilding import Difference, Rebuilt, compare_node
from tessera.scheduler.world import World

T = TypeVar("T")
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

EVERY_S = 300.0
SETTLE_S = 2.0
PAGE = 100
SLICE = 4
NODE_SLICE = 64


class Drift:
    """The figures are for whoever shows them; `standing` is how much the last check found."""

    def __init__(
        self,
        client: Client,
        world: World,
        *,
        is_ready: Callable[[], bool],
        every_s: float = EVERY_S,
        settle_s: float = SETTLE_S,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._world = world
        self._is_ready = is_ready
        self._every_s = every_s
        self._settle_s = settle_s
        self._clock = clock
        self.found_total = 0
        self.checks_total = 0
        self.standing = 0
        self.last_checked_at: datetime | None = None

    async def run(self) -> None:
        while True:
            await self._clock.sleep(self._every_s)
            if not self._is_ready():
                continue
            try:
                await self.check()
            except KubeError as error:
                log.warning("drift not checked", error=str(error))

    async def check(self) -> list[Difference]:
        """Compare once, heal what does not agree, and say what it was."""
        suspects = await self._suspects(await self._rebuild())
        if suspects:
            await self._clock.sleep(self._settle_s)
        found = [difference for node, first in suspects.items() for difference in await self._look_again(node, first)]
        self.standing = len(found)
        self.found_total += len(found)
        self.checks_total += 1
        self.last_checked_at = self._clock.wall()
        return found

    async def _rebuild(self) -> Rebuilt:
        rebuilt = Rebuilt(self._world.reader)
        async for nodes in self._pages(CACHED_NODES):
            await self._in_slices(nodes.items, rebuilt.put_nodes)
        async for pods in self._pages(CACHED_PODS):
            await self._in_slices(pods.items, rebuilt.put_pods)
            rebuilt.unread |= {odd.identity.uid for odd in pods.undecodable}
        return rebuilt

    async def _pages(self, kind: Kind[T]) -> AsyncGenerator[Page[T]]:
        page = await self._client.list_page(kind, limit=PAGE)
        yield page
        while page.next:
            page = await self._client.list_page(kind, limit=PAGE, after=page.next)
            yield page

    async def _in_slices(self, things: Sequence[T], put: Callable[[Sequence[T]], None]) -> None:
        """Others have their turn between two slices."""
        for begin in range(0, len(things), SLICE):
            put(things[begin : begin + SLICE])
            await self._clock.sleep(0)

    async def _suspects(self, rebuilt: Rebuilt) -> dict[str, list[Difference]]:
        """Nodes on which we and the list do not agree, some of them only because the list is older than we are."""
        ours, suspects = self._world.ledger, dict[str, list[Difference]]()
        names = sorted({*ours.fleet.row_of, *rebuilt.ledger.fleet.row_of})
        for begin in range(0, len(names), NODE_SLICE):
            for name in names[begin : begin + NODE_SLICE]:
                if differences := compare_node(ours, rebuilt, name):
                    suspects[name] = differences
            await self._clock.sleep(0)
        return suspects

    async def _look_again(self, name: str, first: list[Difference]) -> list[Difference]:
        """What still differs in the same way, and is healed now."""
        node = await self._read_node(name)
        pods = await self._client.list(CACHED_PODS, Selection(fields=f"spec.nodeName={name}"))
        rebuilt = Rebuilt(self._world.reader)
        rebuilt.unread = {odd.identity.uid for odd in pods.undecodable}
        rebuilt.put_nodes([node] if node is not None else [])
        rebuilt.put_pods(pods.items)
        if compare_node(self._world.ledger, rebuilt, name) != first:
            return []
        for difference in first:
            log.error("drift", **difference._asdict())
        self._heal(name, node, pods.items, rebuilt)
        if compare_node(self._world.ledger, rebuilt, name):
            log.error("drift not healed", node=name)
        return first

    async def _read_node(self, name: str) -> CachedNode | None:
        try:
            return await self._client.get(CACHED_NODES, name)
        except NotFound:
            return None

    def _heal(self, name: str, node: CachedNode | None, pods: Sequence[Pod], rebuilt: Rebuilt) -> None:
        """Take the node and its pods anew. What is promised and not in the API yet stays promised."""
        world, shown = self._world, {holding.ref.uid for holding in rebuilt.ledger}
        for holding in list(world.ledger.holdings_on(name)):
            uid = holding.ref.uid
            if holding.state is State.BOUND and uid not in rebuilt.without_cards and uid not in rebuilt.unread:
                world.ledger.release(uid)
        for pod in pods:
            if pod.metadata.uid in shown:
                world.pod_changed(Change(identify(pod).key, None, pod))
        world.node_changed(Change(ObjectKey("", name), None, node))
