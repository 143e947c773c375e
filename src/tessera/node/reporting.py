"""What this node says about itself on its Node object, said only when it is news.

Every change of a Node wakes all pods that an extender refused, in the whole cluster. So cards are written when they
change, and the handshake every four minutes, by all agents in the same second of the clock and not spread over time.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from datetime import UTC
from typing import Any

import msgspec
import structlog

from tessera.errors import InvalidInput, KubeError
from tessera.kube.client import Client, PatchType
from tessera.kube.informer import Informer
from tessera.kube.kinds import NODES, Selection
from tessera.kube.objects import ObjectKey, ObjectMeta
from tessera.kube.timing import SYSTEM_CLOCK, Backoff, Chance, Clock, first_of
from tessera.model.annotations import keys
from tessera.model.annotations.handshakes import HandshakeState, HandshakeStyle, decode_handshake
from tessera.model.annotations.versioned import decode_inventory
from tessera.model.catalogue import Catalogue
from tessera.node.cards import Cards
from tessera.node.conditions import SaidCondition, condition_document, judge_late_binding, judge_limits, unsaid
from tessera.node.runtimes import CdiChoice, binds_late
from tessera.vendors.managers import Inventory
from tessera.vendors.reporting import report_alive, report_cards

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
HANDSHAKE_EVERY_S = 240
WINDOW_S = 1.0
GPU_LABEL = "gpu"
Said = Mapping[str, str]


class NodeMeta(ObjectMeta, frozen=True, kw_only=True, gc=False):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    pass


class NodeInfo(_Part, frozen=True, kw_only=True):
    container_runtime_version: str = ""


class NodeStatus(_Part, frozen=True, kw_only=True):
    node_info: NodeInfo = NodeInfo()
    conditions: tuple[SaidCondition, ...] | None = None


class OwnNode(_Part, frozen=True, kw_only=True):
    metadata: NodeMeta
    status: NodeStatus = NodeStatus()


OWN_NODES = NODES.decoded_as(OwnNode)


def changes_of(now: Said, wanted: Said, catalogue: Catalogue) -> dict[str, str | None]:
    """The annotations to write, None for one to remove: those of vendors whose cards were told and are here no more."""
    changes: dict[str, str | None] = {key: value for key, value in wanted.items() if now.get(key) != value}
    for vendor in _vendors_told(now) - _vendors_told(wanted):
        known = catalogue.by_name(vendor)
        if known is not None:
            own = (known.annotations.register, known.annotations.links, known.annotations.handshake)
            changes |= {key: None for key in own if key and key in now}
    return changes


def _vendors_told(said: Said) -> set[str]:
    try:
        return {device.vendor for device in decode_inventory(said.get(keys.INVENTORY, ""), "own node")}
    except InvalidInput:
        return set()


class NodeReporter:
    """`run` belongs in a TaskGroup of the caller, beside that of `nodes`, an informer of this one Node.

    `limits_trouble` says in one sentence why some container is not kept within its limits, and nothing if all are.
    """

    def __init__(
        self,
        client: Client,
        node: str,
        catalogue: Catalogue,
        cards: Cards,
        *,
        style: HandshakeStyle = HandshakeStyle.SEED,
        cdi: CdiChoice = "auto",
        limits_trouble: Callable[[], str] = str,
        clock: Clock = SYSTEM_CLOCK,
        chance: Chance = random.random,
    ) -> None:
        self._client = client
        self._node = node
        self._catalogue = catalogue
        self._cards = cards
        self._style = style
        self._cdi: CdiChoice = cdi
        self._limits_trouble = limits_trouble
        self._clock = clock
        self._chance = chance
        self._backoff = Backoff(first_s=0.5, most_s=15.0)
        self._stirred = asyncio.Event()
        self._window: int | None = None
        self.nodes = Informer(client, OWN_NODES, Selection(fields=f"metadata.name={node}"))
        self.nodes.subscribe(lambda _: self._stirred.set())
        cards.news.listen(self._stirred.set)

    async def run(self) -> None:
        await self.nodes.synced()
        await self._cards.known()
        failures = 0
        while True:
            self._stirred.clear()
            try:
                await self._report()
                failures = 0
            except (KubeError, InvalidInput) as error:
                failures += 1
                log.warning("node not reported", node=self._node, error=str(error), failures=failures)
                await self._clock.sleep(self._backoff.wait_s(failures))
                continue
            await self._rest()

    def stir(self) -> None:
        """Something may have to be said."""
        self._stirred.set()

    @property
    def binds_late(self) -> bool | None:
        """None until the node and its container runtime are known."""
        node = self._own()
        runtime = node.status.node_info.container_runtime_version if node else ""
        return binds_late(self._cdi, runtime) if runtime else None

    @property
    def node_uid(self) -> str:
        """Empty until the node is known."""
        node = self._own()
        return (node.metadata.uid if node else None) or ""

    def _own(self) -> OwnNode | None:
        return self.nodes.get(ObjectKey("", self._node))

    async def _report(self) -> None:
        node, inventory = self._own(), self._cards.inventory
        if node is None:
            return
        await self._report_cards(node, inventory)
        await self._report_conditions(node)

    async def _report_cards(self, node: OwnNode, inventory: Inventory) -> None:
        now = node.metadata.annotations or {}
        if not inventory.devices and keys.INVENTORY not in now:
            return
        changes = changes_of(now, self._wanted(inventory, now), self._catalogue)
        label = "on" if inventory.devices else None
        metadata: dict[str, Any] = {"annotations": changes} if changes else {}
        if (node.metadata.labels or {}).get(GPU_LABEL) != label:
            metadata["labels"] = {GPU_LABEL: label}
        if metadata:
            await self._client.patch(NODES, self._node, {"metadata": metadata})
            log.info("node reported", node=self._node, cards=len(inventory.devices), written=sorted(changes))
        self._window = self._window_now()

    async def _report_conditions(self, node: OwnNode) -> None:
        """Said where something is not as others count on, and taken back where it is again."""
        late = [] if self.binds_late is None else [judge_late_binding(self.binds_late)]
        news = unsaid([*late, judge_limits(self._limits_trouble())], node.status.conditions or ())
        if not news:
            return
        at = self._clock.wall().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        change = {"status": {"conditions": [condition_document(verdict, at) for verdict in news]}}
        await self._client.patch(NODES, self._node, change, patch_type=PatchType.STRATEGIC, subresource="status")

    def _wanted(self, inventory: Inventory, now: Said) -> dict[str, str]:
        wanted = report_cards(self._node, inventory, self._catalogue)
        alive = report_alive(inventory, self._catalogue, self._clock.wall(), self._style)
        is_due = self._window != self._window_now()
        return wanted | {key: value for key, value in alive.items() if is_due or _is_unanswered(now.get(key, ""))}

    def _window_now(self) -> int:
        return int(self._clock.wall().timestamp()) // HANDSHAKE_EVERY_S

    async def _rest(self) -> None:
        """Until something changes, or the next window is open."""
        seconds = HANDSHAKE_EVERY_S - self._clock.wall().timestamp() % HANDSHAKE_EVERY_S
        await first_of(self._clock.sleep(seconds + WINDOW_S * self._chance()), self._stirred.wait())


def _is_unanswered(handshake: str) -> bool:
    """A scheduler asks, or nobody has said anything yet."""
    return not handshake or decode_handshake(handshake).state is not HandshakeState.REPORTED
