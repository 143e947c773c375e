"""Pods that ask for cards or hold some: what each asks for, what it got, what it waits for."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from tessera.errors import InvalidInput
from tessera.model.allocations import CardShare
from tessera.model.catalogue import Catalogue
from tessera.model.devices import Device
from tessera.model.nodes import read_node
from tessera.model.requests import DeviceRequest, Role
from tessera.views.documents import ViewedEvent, ViewedNode, read_time
from tessera.views.holdings import Holding
from tessera.views.records import Listed, View
from tessera.views.waiting import WaitingView, latest_warnings, view_waiting

Cards = Mapping[tuple[str, str], Device]


class AskView(View, frozen=True, kw_only=True):
    """What one container asks of one vendor; figures are per card, memory in MiB or in percent of a card."""

    container: str
    role: Role
    vendor: str
    count: int
    memory_mib: int
    memory_percent: int
    cores_percent: int


class GivenCardView(View, frozen=True, kw_only=True):
    """`index` and `model` are None where the node could not be read, or no longer has the card.

    `container` is empty for a card that the pod as a whole holds by its claim.
    """

    container: str
    uuid: str
    vendor: str
    index: int | None
    model: str | None
    memory_mib: int
    cores_percent: int


class PodView(Listed, frozen=True, kw_only=True):
    namespace: str
    phase: str
    node: str
    created_at: datetime | None
    claim: str = ""
    asks: tuple[AskView, ...] = ()
    cards: tuple[GivenCardView, ...] = ()
    waits: WaitingView | None = None
    complaints: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


def view_pods(
    holdings: Iterable[Holding], nodes: Iterable[ViewedNode], events: Iterable[ViewedEvent], catalogue: Catalogue
) -> tuple[PodView, ...]:
    """By namespace and name. Nodes tell the index and model of cards, events why a pod does not start."""
    warnings = latest_warnings(events)
    held = tuple(holdings)
    wanted = {holding.pod.spec.node_name for holding in held if holding.allocation}
    cards = _cards_of((node for node in nodes if node.metadata.name in wanted), catalogue)
    views = (_view_pod(holding, cards, warnings) for holding in held)
    return tuple(sorted(views, key=lambda view: (view.namespace, view.name)))


def _cards_of(nodes: Iterable[ViewedNode], catalogue: Catalogue) -> Cards:
    cards: dict[tuple[str, str], Device] = {}
    for node in nodes:
        try:
            devices = read_node(node, catalogue).node.devices
        except InvalidInput:
            continue
        cards |= {(node.metadata.name, card.uuid): card for card in devices}
    return cards


def _view_pod(holding: Holding, cards: Cards, warnings: Mapping[str, ViewedEvent]) -> PodView:
    pod, names = holding.pod, [container.name for container in holding.pod.containers]
    given = list(zip(names, holding.allocation.containers, strict=False)) if holding.allocation else []
    if holding.allocation:
        given.append(("", holding.allocation.claimed))
    return PodView(
        namespace=holding.ref.namespace,
        name=holding.ref.name,
        phase="Terminating" if pod.metadata.deletion_timestamp else pod.status.phase or "Pending",
        node=pod.spec.node_name or "",
        created_at=read_time(pod.metadata.creation_timestamp),
        claim=holding.claim,
        asks=tuple(
            _view_ask(name, container.role, device)
            for name, container in zip(names, holding.request.containers, strict=True)
            for device in container.devices
        ),
        cards=tuple(
            _view_given(name, share, cards.get((pod.spec.node_name or "", share.uuid)))
            for name, shares in given
            for share in shares
        ),
        waits=view_waiting(holding, warnings),
        complaints=holding.complaints,
    )


def _view_ask(container: str, role: Role, device: DeviceRequest) -> AskView:
    return AskView(
        container=container,
        role=role,
        vendor=device.vendor,
        count=device.count,
        memory_mib=device.memory_mib,
        memory_percent=device.memory_percent,
        cores_percent=device.cores_percent,
    )


def _view_given(container: str, share: CardShare, card: Device | None) -> GivenCardView:
    return GivenCardView(
        container=container,
        uuid=share.uuid,
        vendor=share.vendor,
        index=card.index if card else None,
        model=card.model if card else None,
        memory_mib=share.memory_mib,
        cores_percent=share.cores_percent,
    )
