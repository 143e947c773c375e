"""What nobody tells the operator by itself, so that it asks: events of a pod, all nodes, Gateways. Each sparingly.

Following every event of every pod, or every heartbeat of every node, would cost far more than the few questions about
Computes in trouble. Answers are kept for a while and shared by all who ask.
"""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

import msgspec
import structlog

from tessera.errors import KubeError
from tessera.kube.client import Client
from tessera.kube.kinds import NODES
from tessera.kube.objects import Document, ObjectKey
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.model.catalogue import Catalogue
from tessera.operators.compute_fitting import DatedNode, EmptyNodes, find_surveyed
from tessera.operators.compute_objects import GATEWAYS, Address, Compute
from tessera.operators.compute_pod_events import events_of_pod, find_volume_trouble, is_node_coming
from tessera.operators.compute_pods import ComputePod, Trouble, words_of_scheduler
from tessera.operators.compute_refusals import TOLD, Event
from tessera.operators.compute_routing import Parent, find_hindrance, find_parents, read_gateway

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
NODES_KEPT_S = 20.0
EVENTS_KEPT_S = 5.0


class Asking:
    def __init__(self, client: Client, catalogue: Catalogue, clock: Clock = SYSTEM_CLOCK) -> None:
        self._client = client
        self._placing = Placing(client, catalogue, clock)
        self._clock = clock
        self._events: dict[str, tuple[float, tuple[Event, ...] | None]] = {}

    async def volume_trouble(self, compute: Compute, waiting: Sequence[ComputePod], now: datetime) -> Trouble | None:
        """Of pods that their nodes have not started."""
        tls_secret = compute.spec.tls.secret_name if compute.spec.tls else ""
        for pod in waiting:
            if trouble := find_volume_trouble(await self._events_of(pod) or (), tls_secret, now):
                return trouble
        return None

    async def is_unplaceable(self, waiting: Sequence[ComputePod], now: datetime) -> bool:
        """Whether one of them can find no node, however long it waits."""
        for pod in waiting:
            events = await self._events_of(pod)
            if events is None or is_node_coming(events, now):
                continue
            if await self._placing.can_never_be_placed(pod):
                return True
        return False

    async def look_at_gateways(self, route: Document) -> tuple[tuple[Address, ...], Trouble | None]:
        """Where the route is reached, and why not by all that it hangs on."""
        taken: dict[ObjectKey, list[Parent]] = defaultdict(list)
        trouble: Trouble | None = None
        for parent in find_parents(route):
            hindrance = find_hindrance(route, parent)
            trouble = trouble or hindrance
            if hindrance is None and parent.is_gateway:
                taken[parent.key].append(parent)
        found: list[Address] = []
        for key, parents in taken.items():
            try:
                found += read_gateway(await self._client.get(GATEWAYS, key.name, namespace=key.namespace), parents)
            except KubeError as error:
                trouble = trouble or Trouble("GatewayNotRead", f"where Gateway {key} is reached is not known: {error}")
        return tuple(found), trouble

    async def _events_of(self, pod: ComputePod) -> tuple[Event, ...] | None:
        now_s, uid = self._clock.monotonic_s(), pod.metadata.uid or ""
        self._events = {one: kept for one, kept in self._events.items() if now_s - kept[0] < EVENTS_KEPT_S}
        if uid not in self._events:
            self._events[uid] = (now_s, await self._list_events(pod))
        return self._events[uid][1]

    async def _list_events(self, pod: ComputePod) -> tuple[Event, ...] | None:
        """None where they cannot be had: what else is known of a Compute is told all the same."""
        try:
            return tuple((await self._client.list(TOLD, events_of_pod(pod))).items)
        except KubeError as error:
            log.warning("events not read", pod=pod.name, namespace=pod.metadata.namespace, error=str(error))
            return None


class Placing:
    """Tries pods on all nodes, one at a time and beside the event loop: with many nodes that takes a while.

    A node that cannot be read may still do.
    """

    def __init__(self, client: Client, catalogue: Catalogue, clock: Clock) -> None:
        self._client = client
        self._catalogue = catalogue
        self._clock = clock
        self._listed_at_s: float | None = None
        self._are_all_read = True
        self._seen: tuple[Sequence[DatedNode], frozenset[str]] = ((), frozenset())
        self._nodes = EmptyNodes(*self._seen, catalogue)
        self._verdicts: dict[bytes, bool] = {}
        self._one_at_a_time = asyncio.Lock()

    async def can_never_be_placed(self, pod: ComputePod) -> bool:
        asked = _digest(pod)
        async with self._one_at_a_time:
            try:
                await self._look_at_nodes()
            except KubeError as error:
                log.warning("nodes not read", error=str(error))
                return False
            if asked not in self._verdicts:
                self._verdicts[asked] = await asyncio.to_thread(self._nodes.can_never_hold, pod)
            return self._verdicts[asked] and self._are_all_read

    async def _look_at_nodes(self) -> None:
        now_s = self._clock.monotonic_s()
        if self._listed_at_s is not None and now_s - self._listed_at_s < NODES_KEPT_S:
            return
        page = await self._client.list(NODES.decoded_as(DatedNode))
        listed, self._are_all_read = page.items, not page.undecodable
        seen = (listed, find_surveyed(listed, self._catalogue, self._clock.wall()))
        if seen != self._seen:
            self._nodes = await asyncio.to_thread(EmptyNodes, *seen, self._catalogue)
            self._seen, self._verdicts = seen, {}
        self._listed_at_s = now_s


def _digest(pod: ComputePod) -> bytes:
    """Of what matters for where it can be, which another pod of the same Compute has too."""
    wanted = (pod.metadata.annotations, pod.spec, words_of_scheduler(pod))
    return hashlib.sha256(msgspec.json.encode(wanted, order="deterministic")).digest()
