"""Which container a request means. Pure."""

from collections.abc import Mapping, Sequence

from tessera.embedded.documents import Frozen
from tessera.embedded.refusals import bad_request
from tessera.embedded.resources.parts import each, inside

_NOTHING: Frozen = {}
_LISTS = ("containers", "initContainers", "ephemeralContainers")


def choose_container(pod: Frozen, query: Mapping[str, str]) -> str:
    """The one that is named, or the only one."""
    name, pod_name = query.get("container", ""), pod["metadata"]["name"]
    if name:
        if not any(name in _names(pod, kept) for kept in _LISTS):
            raise bad_request(f"container {name} is not valid for pod {pod_name}")
        return name
    names, first = _names(pod, "containers"), _names(pod, "initContainers")
    if len(names) == 1:
        return names[0]
    choice = f"a container name must be specified for pod {pod_name}, choose one of: [{' '.join(names)}]"
    raise bad_request(f"{choice} or one of the init containers: [{' '.join(first)}]" if first else choice)


def told_of(pod: Frozen, container: str) -> Frozen:
    """What the pod's status says of a container; nothing, where it does not mention it."""
    status = inside(pod, "status")
    told: tuple[Frozen, ...] = (*each(status, "containerStatuses"), *each(status, "initContainerStatuses"))
    return next((one for one in told if one["name"] == container), _NOTHING)


def _names(pod: Frozen, kept: str) -> Sequence[str]:
    return [container["name"] for container in each(pod["spec"], kept)]
