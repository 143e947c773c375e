"""Who owns whom, among everything there is, and what that means for one thing. Pure.

Owners count by uid. One that is neither known nor known to be gone has to be asked for: the watch of its kind may be
behind that of what it owns.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from tessera.embedded.controllers.objects import Metadata, OwnerReference, Thing
from tessera.embedded.controllers.watching import Resource
from tessera.kube.client import Propagation

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_REMEMBERED = 10_000


class Node(NamedTuple):
    resource: Resource
    metadata: Metadata

    @property
    def uid(self) -> str:
        return self.metadata.uid

    def is_held_by(self, finalizer: str) -> bool:
        return self.metadata.is_going and finalizer in (self.metadata.finalizers or ())

    @property
    def awaits_dependents(self) -> bool:
        return self.is_held_by(FOREGROUND) or self.is_held_by(ORPHAN)


class Graph:
    """Everything by uid, and what has which owner."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, dict[str, None]] = {}
        self._gone: OrderedDict[str, None] = OrderedDict()

    def get(self, uid: str) -> Node | None:
        return self._nodes.get(uid)

    def uids_of(self, resource: Resource) -> list[str]:
        return [uid for uid, node in self._nodes.items() if node.resource == resource]

    def dependents(self, uid: str) -> list[Node]:
        return [self._nodes[one] for one in self._dependents.get(uid, ())]

    def note_gone(self, uid: str) -> None:
        """A uid never comes back."""
        self._gone[uid] = None
        if len(self._gone) > _REMEMBERED:
            self._gone.popitem(last=False)

    def is_gone(self, uid: str) -> bool:
        return uid in self._gone

    def put(self, resource: Resource, thing: Thing) -> set[str]:
        """Take in a state of something; returns who has to be looked at."""
        node = Node(resource, thing.metadata)
        before = self._nodes.get(node.uid)
        self._nodes[node.uid] = node
        former, owners = _owner_uids(before), _owner_uids(node)
        self._unlink(node.uid, former - owners)
        for owner in owners:
            self._dependents.setdefault(owner, {})[node.uid] = None
        concerned = {uid for uid in former | owners if self._awaits_dependents(uid)}
        if owners or node.awaits_dependents:
            concerned.add(node.uid)
        if before is None or node.is_held_by(FOREGROUND):
            concerned.update(self._dependents.get(node.uid, ()))
        return concerned

    def remove(self, uid: str) -> set[str]:
        """Something is no more; returns who has to be looked at."""
        node = self._nodes.pop(uid, None)
        self.note_gone(uid)
        owners = _owner_uids(node)
        self._unlink(uid, owners)
        return {*self._dependents.get(uid, ()), *(owner for owner in owners if self._awaits_dependents(owner))}

    def ancestors(self, node: Node) -> set[str]:
        """Everything that owns it, or owns an owner of it."""
        found: set[str] = set()
        open_uids = [owner.uid for owner in node.metadata.owners]
        while open_uids:
            uid = open_uids.pop()
            owner = self._nodes.get(uid)
            if uid not in found and owner is not None:
                found.add(uid)
                open_uids += [one.uid for one in owner.metadata.owners]
        return found

    def _awaits_dependents(self, uid: str) -> bool:
        node = self._nodes.get(uid)
        return node is not None and node.awaits_dependents

    def _unlink(self, uid: str, owners: set[str]) -> None:
        for owner in owners:
            dependents = self._dependents[owner]
            del dependents[uid]
            if not dependents:
                del self._dependents[owner]


class Ask(NamedTuple):
    """Nobody knows these owners; look whether they exist."""

    owners: Sequence[OwnerReference]


class Collect(NamedTuple):
    propagation: Propagation


class Disown(NamedTuple):
    """Strike these owners off each of the dependents."""

    dependents: Sequence[Node]
    owners: frozenset[str]


class Release(NamedTuple):
    """Take the collector's own finalizer off: nothing holds the thing back any more."""

    finalizer: str


Verdict = Ask | Collect | Disown | Release


def judge(node: Node, graph: Graph) -> Verdict | None:
    """What to do with something now; None leaves it."""
    if node.metadata.is_going:
        return _judge_going(node, graph)
    if not node.metadata.owners:
        return None
    unknown = [owner for owner in node.metadata.owners if not graph.get(owner.uid) and not graph.is_gone(owner.uid)]
    if unknown:
        return Ask(unknown)
    return _judge_owned(node, graph)


def _judge_going(node: Node, graph: Graph) -> Verdict | None:
    dependents = graph.dependents(node.uid)
    if node.is_held_by(ORPHAN):
        return Disown(dependents, frozenset((node.uid,))) if dependents else Release(ORPHAN)
    if node.is_held_by(FOREGROUND):
        above = graph.ancestors(node)  # in a circle, everybody would wait for everybody
        holding = [one for one in dependents if _blocks(one, node.uid) and one.uid not in above]
        return None if holding else Release(FOREGROUND)
    return None


def _judge_owned(node: Node, graph: Graph) -> Verdict | None:
    found = [(owner.uid, _reachable(graph.get(owner.uid), node)) for owner in node.metadata.owners]
    waiting = {uid for uid, owner in found if owner is not None and owner.is_held_by(FOREGROUND)}
    gone = {uid for uid, owner in found if owner is None}
    if len(waiting | gone) < len({uid for uid, _ in found}):
        return Disown([node], frozenset(waiting | gone)) if waiting or gone else None
    if waiting and graph.dependents(node.uid):
        return Collect("Foreground")
    return Collect("Background")


def _reachable(owner: Node | None, dependent: Node) -> Node | None:
    """Nothing is owned by something in another namespace."""
    if owner is None or owner.metadata.namespace in ("", dependent.metadata.namespace):
        return owner
    return None


def _blocks(dependent: Node, uid: str) -> bool:
    return any(owner.uid == uid and owner.block_owner_deletion for owner in dependent.metadata.owners)


def _owner_uids(node: Node | None) -> set[str]:
    return {owner.uid for owner in node.metadata.owners} if node else set()
