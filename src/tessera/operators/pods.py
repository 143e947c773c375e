"""What a pod's own document tells of its life, in the words that statuses need."""

from collections.abc import Iterable

from tessera.kube.pods import OVER, Pod
from tessera.model.annotations.keys import CLAIM, CLAIMED, GANG

FAILED = "Failed"
SCHEDULED = "PodScheduled"


def name_of(pod: Pod) -> str:
    return pod.metadata.name or ""


def uid_of(pod: Pod) -> str:
    return pod.metadata.uid or ""


def claim_of(pod: Pod) -> str:
    """The claim that the pod names, of its own namespace, or none."""
    return _annotation(pod, CLAIM)


def gang_named_by(pod: Pod) -> str:
    return _annotation(pod, GANG)


def has_failed(pod: Pod) -> bool:
    return pod.status.phase == FAILED


def has_ended(pod: Pod) -> bool:
    return pod.status.phase in OVER


def is_on_a_node(pod: Pod) -> bool:
    return bool(pod.spec.node_name)


def has_claimed_cards(pod: Pod) -> bool:
    """Whether the scheduler has written which cards the pod holds. A pin alone is only a wish."""
    return is_on_a_node(pod) and bool(_annotation(pod, CLAIMED))


def oldest_first(pods: Iterable[Pod]) -> list[Pod]:
    """Always in the same order, so that messages are the same from look to look."""
    return sorted(pods, key=lambda pod: (pod.metadata.creation_timestamp or "", name_of(pod)))


def why_it_waits(pod: Pod) -> str:
    """What the scheduler said last."""
    said = next((one for one in pod.status.conditions or () if one.type == SCHEDULED), None)
    if is_on_a_node(pod):
        return f"pod {name_of(pod)} is on node {pod.spec.node_name} and has not been given its GPUs yet"
    return (said.message if said else None) or f"pod {name_of(pod)} has not been scheduled yet"


def _annotation(pod: Pod, key: str) -> str:
    value = (pod.metadata.annotations or {}).get(key)
    return value.strip() if isinstance(value, str) else ""
