"""One pod on its way in: complete it, refuse it, or leave it alone.

The order is HAMi's: a pod without containers is refused, one that is meant for another scheduler is left alone, then
figures are read, and only then is refused what no completion mends. Where HAMi lets through what fails later (a figure
with a unit, a policy that does not exist), the pod is refused here, where its author sees it.
"""

from typing import Any, cast

import msgspec

from tessera.admission.completing import complete_containers, complete_pod
from tessera.admission.patching import make_patch
from tessera.admission.pods import ArrivingPod, read_arriving_pod
from tessera.admission.refusing import (
    refuse_chosen_node,
    refuse_empty,
    refuse_metax_class,
    refuse_over_quota,
    refuse_privileged,
    refuse_unknown_policy,
)
from tessera.admission.settings import DEFAULT_SCHEDULER, NO_QUOTAS, Quotas, Settings
from tessera.errors import InvalidInput
from tessera.model.admission import Operation
from tessera.model.annotations import keys
from tessera.model.catalogue import Catalogue
from tessera.model.pods import read_pod_ref, read_written_request, refine_request
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
    if not _is_ours(pod, settings):
        return UNTOUCHED
    as_said = read_written_request(pod.document, catalogue)
    request = refine_request(pod.ref, as_said, catalogue, refine)
    if not request.wants_devices and not pod.says(keys.CLAIM):
        return UNTOUCHED
    refuse_unknown_policy(pod, request)
    refuse_privileged(pod, request, catalogue)
    refuse_chosen_node(pod, request, catalogue)
    refuse_metax_class(pod, request)
    refuse_over_quota(pod, request, quotas)
    completed = complete_containers(pod, as_said, request, catalogue, settings)
    patch = make_patch(document, (*completed.changes, *complete_pod(pod, request, settings)))
    return Mutation(patch, completed.news) if patch else UNTOUCHED


def _is_ours(pod: ArrivingPod, settings: Settings) -> bool:
    """The pod of a file on a node (its mirror) runs whatever we say; it would only vanish from sight."""
    if pod.has_label(IGNORE_LABEL, IGNORE) or pod.says(_MIRROR):
        return False
    if (pod.spec.scheduler_name or DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER:
        return settings.takes_default
    return pod.spec.scheduler_name in settings.schedulers
