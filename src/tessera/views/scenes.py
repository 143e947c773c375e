"""Which sources a view is made of."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from tessera.kube.client import Client
from tessera.kube.kinds import Selection
from tessera.model.annotations import keys
from tessera.model.catalogue import Catalogue
from tessera.views.documents import POD_WARNINGS, VIEWED_EVENTS, VIEWED_LEASES, VIEWED_NODES, VIEWED_PODS
from tessera.views.holdings import HoldingReader
from tessera.views.looking import Source
from tessera.views.nodes import NodeView, view_nodes
from tessera.views.pods import PodView, view_pods

V = TypeVar("V", covariant=True)
AGENTS = Selection(namespace="kube-system", labels=keys.AGENT_LABEL)
PODS_ON_NODES = Selection(fields="spec.nodeName!=")


class Scene(Protocol[V]):
    """`unread` are sentences about what could not be read and is therefore missing from the view."""

    @property
    def sources(self) -> Sequence[Source[Any]]: ...
    @property
    def unread(self) -> list[str]: ...
    def view(self, now: datetime) -> tuple[V, ...]: ...


class NodeScene:
    def __init__(self, client: Client, catalogue: Catalogue, *, labels: str = "") -> None:
        self._catalogue = catalogue
        self._holdings = HoldingReader(catalogue)
        self._nodes = Source(client, VIEWED_NODES, Selection(labels=labels), required=True)
        self._pods = Source(client, VIEWED_PODS, PODS_ON_NODES)
        self._leases = Source(client, VIEWED_LEASES, AGENTS)

    @property
    def sources(self) -> Sequence[Source[Any]]:
        return (self._nodes, self._pods, self._leases)

    @property
    def unread(self) -> list[str]:
        return _told(("what pods hold", self._pods), ("which agents live", self._leases))

    def view(self, now: datetime) -> tuple[NodeView, ...]:
        pods = self._pods.items
        holdings = None if pods is None else self._holdings.read(pods)
        return view_nodes(self._nodes.items or (), holdings, self._leases.items, self._catalogue, now)


class PodScene:
    """Without a namespace, the pods of all namespaces."""

    def __init__(self, client: Client, catalogue: Catalogue, *, namespace: str = "", labels: str = "") -> None:
        self._catalogue = catalogue
        self._holdings = HoldingReader(catalogue)
        self._pods = Source(client, VIEWED_PODS, Selection(namespace=namespace, labels=labels), required=True)
        self._nodes = Source(client, VIEWED_NODES)
        self._events = Source(client, VIEWED_EVENTS, Selection(namespace=namespace, fields=POD_WARNINGS))

    @property
    def sources(self) -> Sequence[Source[Any]]:
        return (self._pods, self._nodes, self._events)

    @property
    def unread(self) -> list[str]:
        return _told(("which card is which", self._nodes), ("warnings about pods", self._events))

    def view(self, now: datetime) -> tuple[PodView, ...]:  # noqa: ARG002
        holdings = self._holdings.read(self._pods.items or ())
        return view_pods(holdings, self._nodes.items or (), self._events.items or (), self._catalogue)


def _told(*sources: tuple[str, Source[Any]]) -> list[str]:
    return [f"{what} is unknown: {source.trouble}" for what, source in sources if source.trouble]
