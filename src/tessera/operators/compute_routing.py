"""Whether the route of a Compute leads to it, and where its Gateways are reached. Pure.

A GRPCRoute that was made is not yet one that a Gateway took: each tells on the route whether it did. An address is told
only of a Gateway that took it, and only with the ports of listeners that the route hangs on.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tessera.kube.objects import Document, ObjectKey
from tessera.operators.compute_objects import GATEWAYS, Address
from tessera.operators.compute_pods import Trouble

ACCEPTED, RESOLVED = "Accepted", "ResolvedRefs"


class Parent(NamedTuple):
    """What a route hangs on: a Gateway, or another kind, as a whole or by one of its sections or ports."""

    group: str
    kind: str
    namespace: str
    name: str
    section: str
    port: int | None

    def __str__(self) -> str:
        where = f", section {self.section}" if self.section else ""
        return f"{self.kind} {self.namespace}/{self.name}{where}"

    @property
    def is_gateway(self) -> bool:
        return (self.group, self.kind) == (GATEWAYS.group, GATEWAYS.name)

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)


def find_parents(route: Document) -> tuple[Parent, ...]:
    return tuple(_read_parent(one, route) for one in route["spec"].get("parentRefs") or ())


def find_hindrance(route: Document, parent: Parent) -> Trouble | None:
    """Why a parent does not lead calls by this route. Where several speak for it, one that does is enough."""
    told = [_judge_parent(route, parent, one) for one in _told_by(route, parent)]
    if not told:
        message = f"{parent} has not taken the GRPCRoute yet; is it there, and does a controller look after it?"
        return Trouble("RoutePending", message)
    return None if None in told else told[0]


def read_gateway(gateway: Document, parents: Iterable[Parent]) -> list[Address]:
    """Where it is reached for these, by each port that it listens on for HTTP."""
    status: Document = gateway.get("status") or {}
    told: list[Document] = status.get("addresses") or []
    ports = dict.fromkeys(port for parent in parents for port in _ports_of(gateway, parent))
    return [
        Address(type=one.get("type") or "IPAddress", value=one["value"], port=port)
        for one in told
        if one.get("type", "IPAddress") in ("IPAddress", "Hostname")
        for port in ports
    ]


def _ports_of(gateway: Document, parent: Parent) -> Iterator[int]:
    for one in gateway["spec"].get("listeners") or ():
        is_chosen = parent.section in ("", one.get("name")) and parent.port in (None, one["port"])
        if is_chosen and one.get("protocol") in ("HTTP", "HTTPS"):
            yield one["port"]


def _judge_parent(route: Document, parent: Parent, told: Document) -> Trouble | None:
    """Conditions about an earlier state of the route do not count."""
    present: int = route["metadata"].get("generation") or 0
    conditions: list[Document] = told.get("conditions") or []
    said = {one["type"]: one for one in conditions if one.get("observedGeneration", present) >= present}
    accepted, resolved = said.get(ACCEPTED), said.get(RESOLVED)
    if accepted is None:
        return Trouble("RoutePending", f"{parent} has not said yet whether it takes the GRPCRoute")
    if accepted["status"] != "True":
        return Trouble("RouteNotAccepted", f"{parent} does not take the GRPCRoute: {_words_of(accepted)}")
    if resolved is not None and resolved["status"] == "False":
        return Trouble("RouteNotResolved", f"{parent} does not find what the GRPCRoute leads to: {_words_of(resolved)}")
    return None


def _words_of(condition: Document) -> str:
    return ": ".join(one for one in (condition.get("reason"), condition.get("message")) if one)


def _told_by(route: Document, parent: Parent) -> list[Document]:
    status: Document = route.get("status") or {}
    told: list[Document] = status.get("parents") or []
    return [one for one in told if _read_parent(one["parentRef"], route) == parent]


def _read_parent(reference: Document, route: Document) -> Parent:
    return Parent(
        group=reference.get("group", GATEWAYS.group),
        kind=reference.get("kind") or GATEWAYS.name,
        namespace=reference.get("namespace") or route["metadata"].get("namespace", ""),
        name=reference["name"],
        section=reference.get("sectionName") or "",
        port=reference.get("port"),
    )
