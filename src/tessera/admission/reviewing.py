"""One pod on its way in: complete it, refuse it, or leave it alone.

The order is HAMi's: a pod without containers is refused, one that is meant for another scheduler is left alone, then
figures are read, and only then is refused what no completion mends. Where HAMi lets through what fails later (a figure
with a unit, a policy that does not exist), the pod is refused here, where its author sees it.
"""

from typing import Any, NamedTuple, cast

import msgspec

from tessera.admission.claiming import Claiming, complete_claiming, read_claiming, shown_to_all
from tessera.admission.completing import Completed, complete_figures, complete_pod, complete_variables
from tessera.admission.ganging import complete_member
from tessera.admission.patching import make_patch
from tessera.admission.pods import ArrivingPod, read_arriving_pod
from tessera.admission.refusing import (
    refuse_chosen_node,
    refuse_empty,
    refuse_lone_marker,
    refuse_metax_class,
    refuse_over_quota,
    refuse_privileged,
    refuse_unknown_policy,
)
from tessera.admission.settings import NO_QUOTAS, Quotas, Settings
from tessera.errors import InvalidInput
from tessera.model.admission import Operation
from tessera.model.catalogue import Catalogue
from tessera.model.claims import without_claimable
from tessera.model.pods import read_pod_ref, read_written_request, refine_request
from tessera.model.requests import PodRequest
from tessera.vendors.rules import refine

IGNORE_LABEL = "hami.io/webhook"
IGNORE = "ignore"
_MIRROR = "kubernetes.io/config.mirror"


class Untouched(msgspec.Struct, frozen=True):
    pass


class Denial(msgspec.Struct, frozen=True):
    sentence: str


class Mutation(msgspec.Struct, frozen=True):
    patch: tuple[Operation, ...]
    warnings: tuple[str, ...] = ()


Verdict = Untouched | Denial | Mutation
UNTOUCHED = Untouched()


class Asked(NamedTuple):
    """What a pod asks for: as its figures stand, after the vendors' rules, and the cards that its containers see.

    The three differ where the pod claims cards: what its figures say of those asks for no more of them.
    """

    said: PodRequest
    meant: PodRequest
    shown: PodRequest


def review(
    pod: object, catalogue: Catalogue, settings: Settings, *, namespace: str = "", quotas: Quotas = NO_QUOTAS
) -> Verdict:
    """`namespace` is the one that the admission request names; the pod may not know its own yet."""
    try:
        return _review(_placed_in(namespace, pod), catalogue, settings, quotas)
    except InvalidInput as error:
        return Denial(str(error))


def _placed_in(namespace: str, pod: object) -> object:
    if not isinstance(pod, dict):
        return pod
    document = cast("dict[str, Any]", pod)
    metadata = document.get("metadata")
    if not namespace or not isinstance(metadata, dict):
        return document
    return document | {"metadata": cast("dict[str, Any]", metadata) | {"namespace": namespace}}


def _review(document: object, catalogue: Catalogue, settings: Settings, quotas: Quotas) -> Verdict:
    pod = read_arriving_pod(document, read_pod_ref(document))
    refuse_empty(pod)
    if _is_left_alone(pod):
        return UNTOUCHED
    claiming = read_claiming(pod)
    if claiming is None:
        refuse_lone_marker(pod)
        if not settings.are_for(pod.spec.scheduler_name):
            return UNTOUCHED
    asked = _read(pod, catalogue, claiming)
    if not asked.shown.wants_devices:
        patch = make_patch(document, complete_member(pod, settings))
        return Mutation(patch) if patch else UNTOUCHED
    _refuse(pod, asked, catalogue, quotas)
    completed = _complete(pod, asked, catalogue, settings, claiming)
    patch = make_patch(document, completed.changes)
    return Mutation(patch, completed.news) if patch else UNTOUCHED


def _is_left_alone(pod: ArrivingPod) -> bool:
    """The pod of a file on a node (its mirror) runs whatever we say; it would only vanish from sight."""
    return pod.has_label(IGNORE_LABEL, IGNORE) or pod.says(_MIRROR)


def _read(pod: ArrivingPod, catalogue: Catalogue, claiming: Claiming | None) -> Asked:
    said = read_written_request(pod.document, catalogue)
    meant = refine_request(pod.ref, said, catalogue, refine)
    if claiming is None:
        return Asked(said, meant, meant)
    return Asked(without_claimable(said), without_claimable(meant), shown_to_all(meant))


def _refuse(pod: ArrivingPod, asked: Asked, catalogue: Catalogue, quotas: Quotas) -> None:
    refuse_unknown_policy(pod, asked.meant)
    refuse_privileged(pod, asked.shown, catalogue)
    refuse_chosen_node(pod, asked.shown, catalogue)
    refuse_metax_class(pod, asked.meant)
    refuse_over_quota(pod, asked.meant, quotas)


def _complete(
    pod: ArrivingPod, asked: Asked, catalogue: Catalogue, settings: Settings, claiming: Claiming | None
) -> Completed:
    figures = complete_figures(pod, asked.said, asked.meant, catalogue)
    claimed = complete_claiming(pod, asked.shown, claiming) if claiming else Completed()
    changes = (
        *figures.changes,
        *claimed.changes,
        *complete_variables(pod, asked.shown, catalogue, settings),
        *complete_pod(pod, asked.shown, settings, settings.claim_scheduler if claiming else settings.scheduler),
    )
    return Completed(changes, (*figures.news, *claimed.news))
