"""Whether anything but our scores would tell kube-scheduler which node is best.

It weighs what the pod prefers, what pods that are there prefer of their neighbours, and which nodes would rather be
left alone. Usually there is nothing of the kind, and then the node that we score best is the one that it takes.
"""

from tessera.kube.caching import Change
from tessera.kube.objects import ObjectKey
from tessera.kube.pods import Pod
from tessera.model.pod_documents import read_document
from tessera.model.pod_preferences import prefers_neighbours, prefers_nodes
from tessera.scheduler.nodes import CachedNode


class Steering:
    def __init__(self) -> None:
        self._reluctant: set[str] = set()
        self._particular: set[ObjectKey] = set()

    def is_ours(self, pod: object) -> bool:
        """Whether our scores alone decide where the pod goes."""
        return not self._reluctant and not self._particular and not prefers_nodes(read_document(pod))

    def node_changed(self, change: Change[CachedNode]) -> None:
        node, name = change.after, change.key.name
        taints = (node.spec and node.spec.taints) or () if node else ()
        if any(taint.effect == "PreferNoSchedule" for taint in taints):
            self._reluctant.add(name)
        else:
            self._reluctant.discard(name)

    def pod_changed(self, change: Change[Pod]) -> None:
        """Wherever it is: kube-scheduler counts on a pod before we hear that it has a node."""
        pod = change.after
        if pod is not None and prefers_neighbours(pod.spec):
            self._particular.add(change.key)
        else:
            self._particular.discard(change.key)
