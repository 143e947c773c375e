"""Whether anything but our scores would tell kube-scheduler which node is best.

It weighs what the pod prefers, what other pods prefer of it as a neighbour, and which nodes would rather be left
alone. Usually there is nothing of the kind, and then the node that we score best is the one that it takes.
"""

from collections import Counter
from collections.abc import Mapping

from tessera.engine.hosting import matches_rule
from tessera.kube.caching import Change
from tessera.kube.objects import ObjectKey
from tessera.kube.pods import OVER, Pod
from tessera.model.pod_documents import read_document
from tessera.model.pod_preferences import Neighbours, prefers_nodes, wanted_neighbours
from tessera.scheduler.nodes import CachedNode


class Steering:
    def __init__(self) -> None:
        self._reluctant: set[str] = set()
        self._wanted: Counter[Neighbours] = Counter()
        self._wanted_by: dict[ObjectKey, tuple[Neighbours, ...]] = {}

    def is_ours(self, pod: object) -> bool:
        """Whether our scores alone decide where the pod goes.

        What it wants of its neighbours counts from now on: kube-scheduler may place it before our watch shows it.
        """
        document = read_document(pod)
        head = document.metadata
        namespace = (head and head.namespace) or "default"
        wanted = wanted_neighbours(document.spec, namespace)
        if wanted and head is not None and head.name:
            self._note(ObjectKey(namespace, head.name), wanted)
        prefers = wanted or prefers_nodes(document.spec) or self._reluctant
        return not prefers and not self._is_wanted(namespace, (head and head.labels) or {})

    def _is_wanted(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """By somebody who is there already, near or far."""
        return any(
            (not wanted.namespaces or namespace in wanted.namespaces)
            and all(matches_rule(rule, labels) for rule in wanted.rules)
            for wanted in self._wanted
        )

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
        is_there = pod is not None and pod.status.phase not in OVER
        self._note(change.key, wanted_neighbours(pod.spec, change.key.namespace) if pod and is_there else ())

    def _note(self, key: ObjectKey, wanted: tuple[Neighbours, ...]) -> None:
        before = self._wanted_by.pop(key, ())
        if wanted:
            self._wanted_by[key] = wanted
        if before != wanted:
            self._wanted += Counter(wanted)
            self._wanted -= Counter(before)
