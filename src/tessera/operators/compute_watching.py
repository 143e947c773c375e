"""What the operator knows of Computes, and which of them is to be looked at when something changes.

What was made for a Compute has a label, and only what has it is followed. A Secret is not: whoever may follow secrets
may read all of them, so the one of a Compute is asked for by name whenever the Compute is looked at.
"""

from collections.abc import Callable, Iterable

from tessera.kube.caching import Change
from tessera.kube.client import Client
from tessera.kube.informer import Informer
from tessera.kube.informer_group import InformerGroup
from tessera.kube.kinds import SERVICES, Kind, Selection
from tessera.kube.objects import Document, ObjectKey
from tessera.operators.compute_objects import COMPUTES, GRPC_ROUTES, NAME_LABEL, STATEFUL_SETS
from tessera.operators.compute_pods import COMPUTE_PODS, ComputePod
from tessera.operators.compute_refusals import OF_STATEFUL_SETS, TOLD, Event

BY_OWNER, BY_SET = "owner", "set"
LABELLED = Selection(labels=NAME_LABEL)


class WatchedComputes(InformerGroup):
    """`mark` is told which Compute may have changed, or something that is its own."""

    def __init__(self, client: Client, mark: Callable[[ObjectKey], None]) -> None:
        self.computes = Informer(client, COMPUTES)
        self.pods = Informer(client, COMPUTE_PODS, LABELLED, indexes={BY_OWNER: _owner_of})
        self._events = Informer(client, TOLD, OF_STATEFUL_SETS, indexes={BY_SET: _set_of})
        self._children: dict[str, Informer[Document]] = {
            STATEFUL_SETS.plural: Informer(client, STATEFUL_SETS, LABELLED),
            SERVICES.plural: Informer(client, SERVICES, LABELLED),
            GRPC_ROUTES.plural: Informer(client, GRPC_ROUTES, LABELLED, may_be_absent=True),
        }
        super().__init__(self.computes, self.pods, self._events, *self._children.values())
        self._mark = mark
        self.computes.subscribe(lambda change: mark(change.key))
        self.pods.subscribe(self._pod_changed)
        self._events.subscribe(self._event_told)
        for informer in self._children.values():
            informer.subscribe(self._child_changed)

    def mark_all(self) -> None:
        for compute in self.computes:
            self._mark(compute.key)

    def child(self, kind: Kind[Document], key: ObjectKey) -> Document | None:
        return self._children[kind.plural].get(key)

    def pods_of(self, stateful_set: Document) -> tuple[ComputePod, ...]:
        """Those that it manages; anybody's pod may have our labels.

        Always in the same order, so that messages are the same from look to look.
        """
        return tuple(sorted(self.pods.find(BY_OWNER, stateful_set["metadata"]["uid"]), key=lambda pod: pod.name))

    def told_of(self, stateful_set: Document) -> tuple[Event, ...]:
        return tuple(self._events.find(BY_SET, stateful_set["metadata"]["uid"]))

    def _pod_changed(self, change: Change[ComputePod]) -> None:
        pod = change.after or change.before
        if pod is not None:
            self._mark(ObjectKey(change.key.namespace, pod.compute))

    def _child_changed(self, change: Change[Document]) -> None:
        for document in (change.before, change.after):
            if document is not None:
                self._mark(ObjectKey(change.key.namespace, document["metadata"]["labels"][NAME_LABEL]))

    def _event_told(self, change: Change[Event]) -> None:
        """A StatefulSet that we do not follow is not ours."""
        if change.after is None:
            return
        about = ObjectKey(change.key.namespace, change.after.involved_object.name)
        stateful_set = self.child(STATEFUL_SETS, about)
        if stateful_set is not None:
            self._mark(ObjectKey(about.namespace, stateful_set["metadata"]["labels"][NAME_LABEL]))


def _owner_of(pod: ComputePod) -> Iterable[str]:
    return (pod.owner_uid,)


def _set_of(event: Event) -> Iterable[str]:
    return (event.involved_object.uid,)
