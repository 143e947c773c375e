"""What no completion mends: each function lets a pod pass or raises the sentence with which it is refused."""

from collections.abc import Iterator

import msgspec

from tessera.admission.pods import ArrivingPod, Asking
from tessera.admission.settings import Quotas
from tessera.engine.policies import check_choice
from tessera.errors import InvalidPolicy, InvalidRequest
from tessera.model.annotations import keys, metax
from tessera.model.catalogue import Catalogue
from tessera.model.refusals import render
from tessera.model.requests import PodRequest

_METAX_SHARED = "Metax-SGPU"


def refuse_empty(pod: ArrivingPod) -> None:
    if not pod.spec.containers:
        raise InvalidRequest(f"{pod.ref}: spec.containers is empty, expected at least one container; add one")


def refuse_unknown_policy(pod: ArrivingPod, request: PodRequest) -> None:
    try:
        check_choice(request.policy)
    except InvalidPolicy as error:
        raise InvalidPolicy(f"{pod.ref}: {error}; see {keys.NODE_POLICY} and {keys.CARD_POLICY}") from None


def refuse_privileged(pod: ArrivingPod, request: PodRequest, catalogue: Catalogue) -> None:
    privileged = (asking for asking in pod.asking(request) if asking.container.is_privileged)
    for asking in privileged:
        for key in _keys_of(asking, catalogue):
            raise InvalidRequest(
                f"{pod.ref}: securityContext.privileged of {asking.label} is true, expected false beside {key};"
                " a privileged container sees every card of its node, so drop one of the two"
            )


def refuse_chosen_node(pod: ArrivingPod, request: PodRequest, catalogue: Catalogue) -> None:
    """Who names the node goes past the scheduler, and so past whoever chooses cards."""
    node = pod.spec.node_name
    if not node:
        return
    key = next(key for asking in pod.asking(request) for key in _keys_of(asking, catalogue))
    raise InvalidRequest(
        f'{pod.ref}: spec.nodeName is "{node}", expected none beside {key}, because only the scheduler can give'
        f' cards; set nodeSelector to kubernetes.io/hostname: "{node}" instead'
    )


def refuse_lone_marker(pod: ArrivingPod) -> None:
    """Who asks for the marker and claims nothing would be started with nothing in it."""
    for container in (*(pod.spec.init_containers or ()), *pod.spec.containers):
        if keys.CLAIM in container.figures:
            raise InvalidRequest(
                f"{pod.ref}: container {container.name} asks for the resource {keys.CLAIM}, expected the annotation"
                f" {keys.CLAIM} with the name of a GpuClaim; set it and drop the resource, which is added then"
            )


def refuse_metax_class(pod: ArrivingPod, request: PodRequest) -> None:
    devices = [device for asking in pod.asking(request) for device in asking.request.devices]
    counts = [device.count for device in devices if device.vendor == _METAX_SHARED]
    if not counts:
        return
    wishes = metax.read_wishes(pod.annotations, str(pod.ref))
    if wishes.app_class and max(counts) > 1:
        raise InvalidRequest(
            f'{pod.ref}: {metax.APP_CLASS} is "{wishes.app_class}", expected none beside {max(counts)} cards;'
            " ask for one card or drop the annotation"
        )


def refuse_over_quota(pod: ArrivingPod, request: PodRequest, quotas: Quotas) -> None:
    refusal = quotas.check(pod.ref.namespace, request)
    if refusal is not None:
        why = render(msgspec.structs.replace(refusal, where=""))
        raise InvalidRequest(
            f"{pod.ref}: {why}; ask for less, remove pods of the namespace, or have its ResourceQuota raised"
        )


def _keys_of(asking: Asking, catalogue: Catalogue) -> Iterator[str]:
    """For each vendor whose cards the container sees, the resource by which it asked for them."""
    for vendor, _ in asking.by_vendor(catalogue):
        yield next(iter(asking.container.keys_of(vendor)), keys.CLAIM)
