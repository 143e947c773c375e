"""Nodes and their cards: what each has, how much of it is given to whom, and whether somebody looks after it."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Self

import msgspec

from tessera.engine.charges import Charge, total_of
from tessera.errors import InvalidInput
from tessera.model.annotations import keys
from tessera.model.annotations.handshakes import HandshakeState, age_seconds, decode_handshake
from tessera.model.catalogue import Catalogue
from tessera.model.devices import Device, Node
from tessera.model.nodes import read_node
from tessera.views.documents import ViewedLease, ViewedNode, read_time
from tessera.views.holdings import Holding
from tessera.views.records import Listed, View

FRESH_S = 300
"""A handshake is written every four minutes; one that is older than five tells of nobody who writes it."""
DEFAULT_LEASE_S = 40


class HolderView(View, frozen=True, kw_only=True):
    """One pod on one card, all its containers together."""

    namespace: str
    pod: str
    shares: int
    memory_mib: int
    cores_percent: int


class CardView(View, frozen=True, kw_only=True):
    """What is used is what was given to pods, not what they really use; None where pods could not be read."""

    uuid: str
    index: int
    vendor: str
    model: str
    memory_mib: int
    memory_used_mib: int | None
    cores_percent: int
    cores_used_percent: int | None
    shares: int
    shares_used: int | None
    numa: int
    island: str
    mode: str
    healthy: bool
    cordoned: bool
    holders: tuple[HolderView, ...] = ()


class HandshakeView(View, frozen=True, kw_only=True):
    vendor: str
    state: HandshakeState
    at: datetime | None
    is_fresh: bool


class AgentStanding(StrEnum):
    ALIVE = "alive"
    SILENT = "silent"
    ABSENT = "absent"  # no agent of ours has ever spoken for the node
    UNKNOWN = "unknown"  # the leases of agents could not be read


class AgentView(View, frozen=True, kw_only=True):
    standing: AgentStanding
    renewed_at: datetime | None = None


class NodeView(Listed, frozen=True, kw_only=True):
    """`limits_trouble` is what the agent says where containers are not kept within their limits."""

    ready: bool
    schedulable: bool
    labelled: bool
    agent: AgentView
    cards: tuple[CardView, ...] = ()
    handshakes: tuple[HandshakeView, ...] = ()
    complaints: tuple[str, ...] = ()
    limits_trouble: str = ""

    def at_rest(self) -> Self:
        return msgspec.structs.replace(
            self,
            agent=AgentView(standing=self.agent.standing),
            handshakes=tuple(msgspec.structs.replace(said, at=None) for said in self.handshakes),
        )


def view_nodes(
    nodes: Iterable[ViewedNode],
    holdings: Iterable[Holding] | None,
    leases: Iterable[ViewedLease] | None,
    catalogue: Catalogue,
    now: datetime,
) -> tuple[NodeView, ...]:
    """By name. `holdings` and `leases` are None where they could not be read."""
    agents = None if leases is None else view_agents(leases, now)
    held = None if holdings is None else _by_node(holdings)
    views = (
        _view_node(node, None if held is None else held.get(node.metadata.name, []), agents, catalogue, now)
        for node in nodes
    )
    return tuple(sorted(views, key=lambda view: view.name))


def view_agents(leases: Iterable[ViewedLease], now: datetime) -> Mapping[str, AgentView]:
    """The agents that have spoken, by their nodes."""
    return {
        node: _view_agent(lease, now)
        for lease in leases
        if (node := (lease.metadata.annotations or {}).get(keys.AGENT_NODE))
    }


def _view_agent(lease: ViewedLease, now: datetime) -> AgentView:
    renewed_at = read_time(lease.spec.renew_time if lease.spec else None)
    lasts_s = (lease.spec.lease_duration_seconds if lease.spec else None) or DEFAULT_LEASE_S
    is_alive = renewed_at is not None and (now - renewed_at).total_seconds() <= lasts_s
    return AgentView(standing=AgentStanding.ALIVE if is_alive else AgentStanding.SILENT, renewed_at=renewed_at)


def _by_node(holdings: Iterable[Holding]) -> dict[str, list[Holding]]:
    by_node: dict[str, list[Holding]] = {}
    for holding in holdings:
        by_node.setdefault(holding.pod.spec.node_name or "", []).append(holding)
    return by_node


def _view_node(
    document: ViewedNode,
    held: list[Holding] | None,
    agents: Mapping[str, AgentView] | None,
    catalogue: Catalogue,
    now: datetime,
) -> NodeView:
    name, labels = document.metadata.name, document.metadata.labels or {}
    unknown = AgentView(standing=AgentStanding.UNKNOWN)
    absent = AgentView(standing=AgentStanding.ABSENT)
    agent = unknown if agents is None else agents.get(name, absent)
    labelled = labels.get("gpu") == "on"
    try:
        reading = read_node(document, catalogue)
    except InvalidInput as error:
        return NodeView(
            name=name, ready=False, schedulable=False, labelled=labelled, agent=agent, complaints=(str(error),)
        )
    holders = None if held is None else _holders_by_card(held)
    return NodeView(
        name=name,
        ready=reading.node.host.ready,
        schedulable=not reading.node.host.unschedulable,
        labelled=labelled,
        agent=agent,
        cards=tuple(_view_card(card, reading.node, holders) for card in reading.node.devices),
        handshakes=_view_handshakes(document, catalogue, now),
        complaints=(*reading.complaints, *_strays(reading.node, holders or {})),
        limits_trouble=document.trouble(keys.LIMITS_HELD),
    )


def _holders_by_card(held: Iterable[Holding]) -> dict[str, list[HolderView]]:
    by_card: dict[str, list[HolderView]] = {}
    for holding in sorted(held, key=lambda holding: (holding.ref.namespace, holding.ref.name)):
        for uuid, charge in holding.charges().items():
            holder = HolderView(
                namespace=holding.ref.namespace,
                pod=holding.ref.name,
                shares=charge.slots,
                memory_mib=charge.memory_mib,
                cores_percent=charge.cores_percent,
            )
            by_card.setdefault(uuid, []).append(holder)
    return by_card


def _view_card(card: Device, node: Node, holders: Mapping[str, list[HolderView]] | None) -> CardView:
    on_card = (holders or {}).get(card.uuid, [])
    used = total_of(Charge(holder.shares, holder.memory_mib, holder.cores_percent) for holder in on_card)
    known = holders is not None
    return CardView(
        uuid=card.uuid,
        index=card.index,
        vendor=card.vendor,
        model=card.model,
        memory_mib=card.memory_mib,
        memory_used_mib=used.memory_mib if known else None,
        cores_percent=card.cores_percent,
        cores_used_percent=used.cores_percent if known else None,
        shares=card.slots,
        shares_used=used.slots if known else None,
        numa=card.numa,
        island=card.island,
        mode=card.mode,
        healthy=card.healthy,
        cordoned=card.uuid in node.cordoned_uuids,
        holders=tuple(on_card),
    )


def _strays(node: Node, holders: Mapping[str, list[HolderView]]) -> list[str]:
    """Pods on cards that the node no longer reports."""
    there = {card.uuid for card in node.devices}
    return [
        f"node {node.name}: pod {holder.namespace}/{holder.pod} holds card {uuid}, which the node does not report"
        for uuid, on_card in holders.items()
        if uuid not in there
        for holder in on_card
    ]


def _view_handshakes(document: ViewedNode, catalogue: Catalogue, now: datetime) -> tuple[HandshakeView, ...]:
    """One for each vendor that has written any; of a key and its aliases the first that says something."""
    said = document.metadata.annotations or {}
    views: dict[str, HandshakeView] = {}
    for vendor in catalogue:
        key = next((key for key in vendor.annotations.handshakes() if said.get(key)), None)
        if key is not None and key not in views:
            handshake = decode_handshake(said[key])
            age_s = age_seconds(handshake, now)
            fresh = handshake.state is not HandshakeState.DELETED and age_s is not None and age_s <= FRESH_S
            views[key] = HandshakeView(vendor=vendor.name, state=handshake.state, at=handshake.at, is_fresh=fresh)
    return tuple(views.values())
