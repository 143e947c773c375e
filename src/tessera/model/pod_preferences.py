"""What a pod would like of its node or of its neighbours, beyond what it needs.

These are the preferences that kube-scheduler weighs against each other with scores. Where there are none, the scores
for cards decide alone.
"""

from tessera.model.pod_documents import Affinity, PodDocument, Spec

NO_AFFINITY = Affinity()


def prefers_nodes(pod: PodDocument) -> bool:
    """Whether some nodes may be dearer to the pod than others, or to who gives it what it claims."""
    spec = pod.spec
    nodes = (spec.affinity or NO_AFFINITY).node_affinity
    prefers = nodes is not None and nodes.preferred_during_scheduling_ignored_during_execution
    return bool(prefers or spec.topology_spread_constraints or spec.resource_claims) or prefers_neighbours(spec)


def prefers_neighbours(spec: Spec) -> bool:
    """Whether the pod draws others to it or keeps them off. To be drawn is a wish even where it is a need as well."""
    affinity = spec.affinity or NO_AFFINITY
    near, far = affinity.pod_affinity, affinity.pod_anti_affinity
    drawn = near is not None and (
        near.required_during_scheduling_ignored_during_execution
        or near.preferred_during_scheduling_ignored_during_execution
    )
    return bool(drawn or (far is not None and far.preferred_during_scheduling_ignored_during_execution))
