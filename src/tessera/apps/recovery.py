"""What keeps the ledger true without anybody asking, put together.

Writes whose answer was lost, pods that came to their node without cards, pods that are gone and not yet ended, and
figures that do not agree with the API.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from tessera.kube.client import Client
from tessera.kube.informer import Informer
from tessera.kube.objects import ObjectKey
from tessera.kube.pods import Pod
from tessera.kube.reconciler import Again, Reconciler
from tessera.kube.timing import Backoff
from tessera.scheduler.card_leases import CardLeases
from tessera.scheduler.commits import Commits
from tessera.scheduler.draining import AGENT_LEASES, AGENTS, Draining
from tessera.scheduler.drift import Drift
from tessera.scheduler.late import LOOK_AGAIN_S, LateAllocator
from tessera.scheduler.nodes import CachedNode
from tessera.scheduler.offers import Offers
from tessera.scheduler.world import World

PROMPT = Backoff(first_s=0.2, most_s=5.0)


class Recovery:
    """`may_write` and `decides` are those of the process: whether we lead, and whether all is known besides."""

    def __init__(
        self,
        client: Client,
        world: World,
        offers: Offers,
        pods: Informer[Pod],
        nodes: Informer[CachedNode],
        *,
        leases: CardLeases,
        may_write: Callable[[], bool],
        decides: Callable[[], bool],
    ) -> None:
        self._lost: Reconciler[ObjectKey] = Reconciler("lost writes", self._clear_up, backoff=PROMPT)
        self._lacking: Reconciler[ObjectKey] = Reconciler("pods without cards", self._allocate, backoff=PROMPT)
        self.agents = Informer(client, AGENT_LEASES, AGENTS)
        self.commits = Commits(client, world, offers, leases=leases, may_write=may_write, lost=self._lost.mark)
        self.late = LateAllocator(self.commits, world, pods.get, may_decide=decides)
        self.draining = Draining(world, lambda name: not nodes.is_synced or nodes.get(ObjectKey("", name)) is not None)
        self.drift = Drift(client, world, is_ready=lambda: pods.is_synced and nodes.is_synced)
        world.lacks_cards = self._lacking.mark
        world.lingers = self.draining.lingers
        nodes.subscribe(self.draining.node_changed)
        self.agents.subscribe(self.draining.agent_changed)

    def look_again(self) -> None:
        """There may be room for pods that found no cards on their node."""
        for key in self.late.refused:
            self._lacking.queue.mark_later(key, LOOK_AGAIN_S)

    def works(self) -> list[Coroutine[Any, Any, None]]:
        return [self.agents.run(), self._lost.run(), self._lacking.run(), self.drift.run()]

    async def _clear_up(self, key: ObjectKey) -> None:
        await self.commits.clear_up(key)

    async def _allocate(self, key: ObjectKey) -> Again | None:
        return await self.late.allocate(key)
