"""A pod that claims cards as a whole, by a GpuClaim or by a pin, and what its containers are given for it.

Every container asks for the marker resource, so that kube-scheduler and the kubelet both call us. Which cards the pod
gets is not known yet. So CUDA_VISIBLE_DEVICES refers to an annotation that the scheduler writes with the Binding, and a
container resolves it when it starts; until then it names no card. A pin is known at once and stands there as it is.
"""

import re
from collections.abc import Iterator

import msgspec

from tessera.admission.completing import Completed
from tessera.admission.patching import Change
from tessera.admission.pods import ArrivingPod, Asking, EnvironmentVariable
from tessera.admission.variables import set_variable
from tessera.errors import InvalidRequest
from tessera.model.annotations import keys
from tessera.model.annotations.claims import Pin, read_pin
from tessera.model.claims import CLAIMABLE, WHOLE_CARD
from tessera.model.mismatches import show
from tessera.model.pod_documents import Values
from tessera.model.requests import ContainerRequest, PodRequest

VARIABLE = "CUDA_VISIBLE_DEVICES"
ONE = "1"
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_LONGEST = 253


class Claiming(msgspec.Struct, frozen=True):
    """`pin` are the only cards that will do, if the pod was made with some."""

    pin: Pin | None = None

    @property
    def visible(self) -> Values:
        """What stands beside the variable's name, as an API server completes it."""
        if self.pin is not None:
            return {"value": ",".join(map(str, self.pin.ids))}
        path = f"metadata.annotations['{keys.VISIBLE_DEVICES}']"
        return {"valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def read_claiming(pod: ArrivingPod) -> Claiming | None:
    claim, pin = pod.annotations.get(keys.CLAIM), read_pin(pod.annotations, str(pod.ref))
    if claim is None and pin is None:
        return None
    if claim is not None and not (_NAME.fullmatch(claim) and len(claim) <= _LONGEST):
        raise InvalidRequest(
            f"{pod.ref}: {keys.CLAIM} is {show(claim)}, expected the name of a GpuClaim in the pod's namespace;"
            " see kubectl get gpuclaims"
        )
    return Claiming(pin)


def shown_to_all(request: PodRequest) -> PodRequest:
    """The same request with a card for each container, because each of them sees those that are claimed."""
    containers = tuple(
        container
        if any(device.vendor == CLAIMABLE for device in container.devices)
        else ContainerRequest(container.role, (*container.devices, WHOLE_CARD))
        for container in request.containers
    )
    return msgspec.structs.replace(request, containers=containers)


def complete_claiming(pod: ArrivingPod, shown: PodRequest, claiming: Claiming) -> Completed:
    changes: list[Change] = []
    news: list[str] = []
    for asking in pod.asking(shown):
        changes += [*_mark(asking), set_variable(asking, VARIABLE, claiming.visible)]
        news += [f"{pod.ref}: {sentence}" for sentence in _tell_replaced(asking, claiming.visible)]
    return Completed(tuple(changes), tuple(news))


def _mark(asking: Asking) -> Iterator[Change]:
    for figures in ("limits", "requests"):
        yield Change((*asking.path, "resources", figures, keys.CLAIM), ONE)


def _tell_replaced(asking: Asking, visible: Values) -> Iterator[str]:
    """What a user wrote must not widen what the container sees, and the user should know."""
    count = asking.container.figures.get(keys.CLAIM)
    if count is not None and str(count) != ONE:
        yield f'{keys.CLAIM} of {asking.label} was {show(count)} and is now "{ONE}"'
    before = asking.container.last_variable(VARIABLE)
    if before is not None and _content(before[1]) != visible:
        yield f"{VARIABLE} of {asking.label} was {_describe(before[1])} and names the claimed cards now"


def _content(variable: EnvironmentVariable) -> Values:
    return {"valueFrom": variable.value_from} if variable.value_from else {"value": variable.value or ""}


def _describe(variable: EnvironmentVariable) -> str:
    return "taken from elsewhere" if variable.value_from else show(variable.value or "")
