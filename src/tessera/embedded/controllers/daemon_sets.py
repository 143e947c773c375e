"""DaemonSets: one pod on each node that its template may be on.

Pods are made for their node, by a node affinity that the scheduler obeys, and bear what nodes go through. A template is
known by its hash, on the pods. Pods of an older one are replaced in place, so many at a time as may be missing; that
a new pod could come first (`maxSurge`) is not known.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from tessera.embedded.controllers.hashing import hash_of
from tessera.embedded.controllers.objects import DAEMON_SETS, DaemonSet, Node
from tessera.embedded.controllers.placing import NO_EXECUTE, may_be_on
from tessera.embedded.controllers.pods import ENDED, Pod, is_available, make_pod, named
from tessera.embedded.controllers.replica_sets import Change
from tessera.embedded.controllers.rollouts import amount_of
from tessera.embedded.controllers.stateful_sets import REVISION
from tessera.embedded.resources.parts import each, inside
from tessera.kube.objects import Document

_TAINTS = "node.kubernetes.io/"
_BORNE = (
    ("not-ready", NO_EXECUTE),
    ("unreachable", NO_EXECUTE),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_NO_NETWORK = ("network-unavailable", "NoSchedule")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Posts(NamedTuple):
    """The nodes that want a pod and those that put up with one, and the pods that are not going, by node."""

    wanted: Sequence[str]
    allowed: frozenset[str]
    pods: Mapping[str, Sequence[Pod]]

    def holder(self, node: str) -> Pod | None:
        """The pod that counts there: the oldest."""
        working = [pod for pod in self.pods.get(node, ()) if pod.status.phase not in ENDED]
        return min(working, key=_age, default=None)


def survey(daemon_set: DaemonSet, pods: Sequence[Pod], nodes: Sequence[Node]) -> Posts:
    spec = _pod_spec(daemon_set)
    by_node: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if not pod.metadata.is_going:
            by_node[node_of(pod)].append(pod)
    return Posts(
        wanted=sorted(node.metadata.name for node in nodes if may_be_on(spec, node)),
        allowed=frozenset(node.metadata.name for node in nodes if may_be_on(spec, node, effects=(NO_EXECUTE,))),
        pods=by_node,
    )


def plan(daemon_set: DaemonSet, posts: Posts, suffixes: Iterator[str], now: datetime) -> Change:
    """Pods for nodes that have none; away with those that ended, are too many or have no place. Then the older ones."""
    if daemon_set.metadata.is_going:
        return Change()
    unwanted = [pod for node, there in posts.pods.items() for pod in there if not _may_stay(posts, node, pod)]
    empty = [node for node in posts.wanted if not posts.pods.get(node)]
    if unwanted or empty:
        return Change(make=[_make(daemon_set, node, next(suffixes)) for node in empty], remove=unwanted)
    return Change(remove=_outdated(daemon_set, posts, now))


def status_of(daemon_set: DaemonSet, posts: Posts, now: datetime) -> Document:
    held = [pod for node in posts.wanted if (pod := posts.holder(node))]
    available = sum(_works(daemon_set, pod, now) for pod in held)
    counted = {
        "updatedNumberScheduled": sum(_is_new(daemon_set, pod) for pod in held),
        "numberAvailable": available,
        "numberUnavailable": len(posts.wanted) - available,
    }
    return {
        "currentNumberScheduled": len(held),
        "numberMisscheduled": sum(posts.holder(node) is not None for node in posts.pods if node not in posts.wanted),
        "desiredNumberScheduled": len(posts.wanted),
        "numberReady": sum(pod.is_ready for pod in held),
        "observedGeneration": daemon_set.metadata.generation,
        **{name: figure for name, figure in counted.items() if figure},
    }


def node_of(pod: Pod) -> str:
    """Where it is, or is to be."""
    if pod.spec.node_name:
        return pod.spec.node_name
    terms = each(inside(inside(pod.spec.affinity or {}, "nodeAffinity"), _REQUIRED), "nodeSelectorTerms")
    names = [value for term in terms for field in each(term, "matchFields") for value in each(field, "values")]
    return names[0] if names else ""


def _may_stay(posts: Posts, node: str, pod: Pod) -> bool:
    return node in posts.allowed and pod is posts.holder(node)


def _outdated(daemon_set: DaemonSet, posts: Posts, now: datetime) -> Sequence[Pod]:
    """Those that do not work anyway; of the others, no more than may be missing."""
    strategy = daemon_set.spec.update_strategy
    if strategy.get("type") == "OnDelete":
        return ()
    old = [pod for node in posts.wanted if (pod := posts.holder(node)) and not _is_new(daemon_set, pod)]
    idle = [pod for pod in old if not _works(daemon_set, pod, now)]
    missing = sum(not ((pod := posts.holder(node)) and _works(daemon_set, pod, now)) for node in posts.wanted)
    most = inside(strategy, "rollingUpdate").get("maxUnavailable", 1)
    spare = max(1, amount_of(most, len(posts.wanted), rounds_up=True)) - missing
    return [*idle, *[pod for pod in old if pod not in idle][: max(0, spare)]]


def _make(daemon_set: DaemonSet, node: str, suffix: str) -> Document:
    revision = {REVISION: hash_of(daemon_set.spec.template)}
    name = named(f"{daemon_set.metadata.name}-", suffix)
    pod = make_pod(daemon_set.spec.template, DAEMON_SETS, daemon_set.metadata, labels=revision, **name)
    spec, affinity = _pod_spec(daemon_set), inside(pod["spec"], "affinity")
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    on_node = {**inside(affinity, "nodeAffinity"), _REQUIRED: {"nodeSelectorTerms": [here]}}
    return {**pod, "spec": {**spec, "affinity": {**affinity, "nodeAffinity": on_node}}}


def _pod_spec(daemon_set: DaemonSet) -> Document:
    """The template's, with what every pod of a DaemonSet bears."""
    spec: Document = daemon_set.spec.template["spec"]
    borne = [*_BORNE, _NO_NETWORK] if spec.get("hostNetwork") else _BORNE
    added = [{"key": _TAINTS + key, "operator": "Exists", "effect": effect} for key, effect in borne]
    told = each(spec, "tolerations")
    return {**spec, "tolerations": [*told, *(one for one in added if one not in told)]}


def _is_new(daemon_set: DaemonSet, pod: Pod) -> bool:
    return (pod.metadata.labels or {}).get(REVISION) == hash_of(daemon_set.spec.template)


def _works(daemon_set: DaemonSet, pod: Pod, now: datetime) -> bool:
    return is_available(pod, daemon_set.spec.min_ready_seconds, now)


def _age(pod: Pod) -> tuple[bool, str, str]:
    """One that has its node before one that waits for it."""
    return (not pod.spec.node_name, pod.metadata.creation_timestamp, pod.metadata.name)
