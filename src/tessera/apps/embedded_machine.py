"""The Node objects that this machine stands for: there, ready, and with what a kubelet would say they have.

Level-based: whatever takes a node's readiness or its figures away, or the node itself, is put right again. What others
put on a node is theirs and stays.
"""

import string
from collections.abc import Sequence
from datetime import UTC, datetime

import structlog

from tessera.apps.embedded_node import EmbeddedNode
from tessera.apps.embedded_node_status import Shares, is_ours, new_node, node_status, unsaid
from tessera.apps.working import Work
from tessera.errors import AlreadyExists, NotFound
from tessera.kube.caching import Change
from tessera.kube.client import Client, PatchType
from tessera.kube.heartbeats import Heartbeat
from tessera.kube.informer import Informer
from tessera.kube.kinds import NODES
from tessera.kube.objects import Document, ObjectKey
from tessera.kube.reconciler import Reconciler
from tessera.model.annotations.keys import INVENTORY

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
LEASES = "kube-node-lease"
NO_SHARES: Shares = {}


def node_names(count: int) -> list[str]:
    """node-a to node-z, then node-aa and so on."""
    return [f"node-{_letters(number)}" for number in range(count)]


def _letters(number: int) -> str:
    rest, last = divmod(number, 26)
    return (_letters(rest - 1) if rest else "") + string.ascii_lowercase[last]


class Machine:
    """`works` belong in a TaskGroup of the caller."""

    def __init__(self, client: Client, nodes: Sequence[EmbeddedNode]) -> None:
        self._client = client
        self._nodes = {node.name: node for node in nodes}
        self._known = Informer(client, NODES)
        self._reconciler: Reconciler[str] = Reconciler("nodes of this machine", self._reconcile)
        self._known.subscribe(self._notice)
        for node in nodes:
            node.cards.news.listen(lambda name=node.name: self._reconciler.mark(name))

    def works(self) -> list[Work]:
        return [self._known.run(), self._run(), *map(self._beat, self._nodes)]

    def is_ready(self) -> bool:
        """Whether every node has told what it has."""
        return all(self._has_told(name) for name in self._nodes)

    def _has_told(self, name: str) -> bool:
        node = self._find(name)
        return node is not None and self._shows_cards(node) and not unsaid(node, self._status_of(node))

    async def _run(self) -> None:
        await self._known.synced()
        for name in (*self._nodes, *(node["metadata"]["name"] for node in self._known)):
            self._reconciler.mark(name)
        await self._reconciler.run()

    async def _beat(self, name: str) -> None:
        await Heartbeat(self._client, ObjectKey(LEASES, name), name).run()

    def _notice(self, change: Change[Document]) -> None:
        if change.key.name in self._nodes:
            self._reconciler.mark(change.key.name)

    async def _reconcile(self, name: str) -> None:
        node = self._find(name)
        if name not in self._nodes:
            await self._remove(name)
        elif node is None:
            await self._make(name)
        elif missing := unsaid(node, self._status_of(node)):
            change = {"status": missing}
            await self._client.patch(NODES, name, change, patch_type=PatchType.STRATEGIC, subresource="status")

    async def _make(self, name: str) -> None:
        try:
            await self._client.create(NODES, new_node(name))
        except AlreadyExists:
            return
        log.info("node made", node=name)

    async def _remove(self, name: str) -> None:
        """An engine with more nodes may have been here before."""
        node = self._find(name)
        if node is None or not is_ours(node):
            return
        try:
            await self._client.delete(NODES, name)
        except NotFound:
            return
        log.info("node removed", node=name)

    def _status_of(self, node: Document) -> Document:
        """Tiles are told after the cards behind them: figures without cards would be taken for cards of their own."""
        name: str = node["metadata"]["name"]
        shares = self._nodes[name].shares() if self._shows_cards(node) else NO_SHARES
        return node_status(name, shares, datetime.now(UTC))

    def _shows_cards(self, node: Document) -> bool:
        cards = self._nodes[node["metadata"]["name"]].cards.inventory.devices
        return not cards or INVENTORY in (node["metadata"].get("annotations") or {})

    def _find(self, name: str) -> Document | None:
        return self._known.get(ObjectKey("", name))
