"""The GpuNodeStatus of this node, kept as it should be.

Written when it says something else than it should, so a status that is deleted or changed by hand comes back. Nobody
waits for it: where its kind is not installed, that is told once and looked for now and then.
"""

import asyncio
from collections.abc import Callable, Iterable

import structlog

from tessera.errors import KubeError, NotFound
from tessera.kube.client import Client
from tessera.kube.informer import Informer
from tessera.kube.kinds import GPU_NODE_STATUSES, Selection
from tessera.kube.objects import Document, ObjectKey
from tessera.kube.timing import SYSTEM_CLOCK, Backoff, Clock, first_of
from tessera.model.claims import CLAIMABLE
from tessera.node.cards import Cards
from tessera.node.gpu_status import gpu_status
from tessera.node.tiles import Tile

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
MANAGER = "tessera-agent"
LOOK_AGAIN_S = 5.0
"""The end of a pod's processes is not news to anybody."""
NOT_INSTALLED_S = 30.0


class StatusReporter:
    """`run` belongs in a TaskGroup of the caller, beside that of `statuses`, an informer of this one object.

    `held` are the tiles of pods that have not ended. `node_uid` is empty until the Node is known, with which it goes.
    """

    def __init__(
        self,
        client: Client,
        node: str,
        cards: Cards,
        held: Callable[[], Iterable[Tile]],
        node_uid: Callable[[], str],
        *,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._node = node
        self._cards = cards
        self._held = held
        self._node_uid = node_uid
        self._clock = clock
        self._backoff = Backoff(first_s=0.5, most_s=15.0)
        self._stirred = asyncio.Event()
        self._is_missed = False
        self.statuses = Informer(
            client, GPU_NODE_STATUSES, Selection(fields=f"metadata.name={node}"), may_be_absent=True
        )
        self.statuses.subscribe(lambda _: self.stir())
        cards.news.listen(self.stir)

    def stir(self) -> None:
        """Something may have changed."""
        self._stirred.set()

    async def run(self) -> None:
        await self.statuses.synced()
        await self._cards.known()
        failures = 0
        while True:
            self._stirred.clear()
            try:
                await self._report()
                failures, self._is_missed = 0, False
            except NotFound as error:
                self._tell_missing(error)
                await self._clock.sleep(NOT_INSTALLED_S)
            except KubeError as error:
                failures += 1
                log.warning("status of cards not written", node=self._node, error=str(error), failures=failures)
                await self._clock.sleep(self._backoff.wait_s(failures))
            else:
                await first_of(self._clock.sleep(LOOK_AGAIN_S), self._stirred.wait())

    def _tell_missing(self, error: NotFound) -> None:
        if not self._is_missed:
            log.warning("status of cards not written, its kind is not installed", node=self._node, error=str(error))
        self._is_missed = True

    async def _report(self) -> None:
        cards, now = self._cards.of_vendor(CLAIMABLE), self.statuses.get(ObjectKey("", self._node)) or {}
        if not self._node_uid() or not (cards or now):
            return
        head, status = self._head(), gpu_status(cards, self._cards.silent, self._held())
        if not _says(now, head):
            await self._apply(head)
        if now.get("status") != status:
            await self._apply({**self._named(), "status": status}, subresource="status")
            log.info("status of cards written", node=self._node, cards=status["total"])

    async def _apply(self, body: Document, subresource: str = "") -> None:
        await self._client.apply(
            GPU_NODE_STATUSES, self._node, body, manager=MANAGER, subresource=subresource, force=True
        )

    def _head(self) -> Document:
        document = self._named()
        owner = {"apiVersion": "v1", "kind": "Node", "name": self._node, "uid": self._node_uid()}
        document["metadata"]["ownerReferences"] = [owner]
        return {**document, "spec": {"nodeName": self._node}}

    def _named(self) -> Document:
        kind = GPU_NODE_STATUSES
        return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": self._node}}


def _says(now: Document, head: Document) -> bool:
    owners: list[Document] = now.get("metadata", {}).get("ownerReferences") or []
    return now.get("spec") == head["spec"] and head["metadata"]["ownerReferences"][0] in owners
