"""What the controller knows of MPIJobs, and which of them is to be looked at when something changes.

What is made for a job has a label, and only what has it is followed.
"""

from collections.abc import Callable, Iterable

from tessera.kube.caching import Change
from tessera.kube.client import Client
from tessera.kube.informer import Informer
from tessera.kube.informer_group import InformerGroup
from tessera.kube.kinds import GPU_GANGS, Kind, Selection
from tessera.kube.objects import Document, ObjectKey
from tessera.operators.mpi_objects import CHILDREN, JOB_LABEL, MPI_JOBS, OPERATOR, OPERATOR_LABEL
from tessera.operators.mpi_pods import MPI_PODS, MpiPod

BY_OWNER = "owner"
LABELLED = Selection(labels=f"{OPERATOR_LABEL}={OPERATOR}")


class WatchedMpiJobs(InformerGroup):
    """`mark` is told which job may have changed, or something that is its own."""

    def __init__(self, client: Client, mark: Callable[[ObjectKey], None]) -> None:
        self.jobs = Informer(client, MPI_JOBS)
        self._pods = Informer(client, MPI_PODS, LABELLED, indexes={BY_OWNER: _owner_of})
        kinds = (*CHILDREN, GPU_GANGS)
        self._children = {kind.plural: Informer(client, kind, LABELLED) for kind in kinds}
        super().__init__(self.jobs, self._pods, *self._children.values())
        self._mark = mark
        self.jobs.subscribe(lambda change: mark(change.key))
        self._pods.subscribe(self._pod_changed)
        for informer in self._children.values():
            informer.subscribe(self._child_changed)

    def mark_all(self) -> None:
        for job in self.jobs:
            self._mark(job.key)

    def child(self, kind: Kind[Document], key: ObjectKey) -> Document | None:
        return self._children[kind.plural].get(key)

    def pod(self, key: ObjectKey) -> MpiPod | None:
        return self._pods.get(key)

    def pods_of(self, owner_uid: str) -> list[MpiPod]:
        """Those that it manages; anybody's pod may have the labels."""
        return sorted(self._pods.find(BY_OWNER, owner_uid), key=lambda pod: (len(pod.name), pod.name))

    def _pod_changed(self, change: Change[MpiPod]) -> None:
        pod = change.after or change.before
        if pod is not None and (name := (pod.metadata.labels or {}).get(JOB_LABEL)):
            self._mark(ObjectKey(change.key.namespace, name))

    def _child_changed(self, change: Change[Document]) -> None:
        document = change.after or change.before
        if document is not None and (name := document["metadata"]["labels"].get(JOB_LABEL)):
            self._mark(ObjectKey(change.key.namespace, name))


def _owner_of(pod: MpiPod) -> Iterable[str]:
    return (pod.owner_uid,)
