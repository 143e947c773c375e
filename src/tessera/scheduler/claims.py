"""Claims to cards, as the API last showed them, and what a pod asks for by the one that it names.

A claim is looked up in the pod's own namespace, and its state at that moment counts. A claim to cards of one's own
serves one pod at a time; of a claim to shared cards every further pod gets the same cards.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from tessera.errors import ClaimUnmet, InvalidInput, InvalidRequest
from tessera.kube.caching import Change
from tessera.kube.kinds import GPU_CLAIMS
from tessera.kube.objects import ObjectKey, ObjectMeta
from tessera.model.annotations import keys
from tessera.model.annotations.claims import Pin, read_pin
from tessera.model.annotations.selectors import read_selector
from tessera.model.catalogue import Catalogue
from tessera.model.claims import CLAIMABLE, ClaimSpec, Exclusivity, join_claim, pinned_spec, read_claim_spec
from tessera.model.pod_documents import read_head
from tessera.model.pods import read_pod_ref
from tessera.model.refusals import Reason, Refusal, render
from tessera.model.requests import ANY_CARD, CardSelector, PodRef, PodRequest


class GpuClaim(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    metadata: ObjectMeta
    spec: Any = None


CACHED_CLAIMS = GPU_CLAIMS.decoded_as(GpuClaim)


class Holder(NamedTuple):
    """A pod that has cards by a claim."""

    pod: PodRef
    cards: Pin


def annotations_of(pod: object) -> dict[str, str]:
    said = read_head(pod).annotations or {}
    return {key: value.strip() for key, value in said.items() if isinstance(value, str)}


def names_claim(annotations: dict[str, str]) -> bool:
    """Whether the pod is to get its cards by a claim, or names them itself."""
    return bool(annotations.get(keys.CLAIM) or annotations.get(keys.PIN))


def claim_of(pod: object) -> tuple[str, ...]:
    """The claim that a pod names, as an index over pods has it."""
    name = annotations_of(pod).get(keys.CLAIM)
    return (str(ObjectKey(read_head(pod).namespace or "", name)),) if name else ()


class Claims:
    """`holders_of` are the pods that have cards by a claim."""

    def __init__(self, catalogue: Catalogue) -> None:
        vendor = catalogue.by_name(CLAIMABLE)
        self._selector_keys = vendor.annotations.selector_keys if vendor else None
        self._specs: dict[ObjectKey, ClaimSpec | str] = {}
        self._in_gang: dict[ObjectKey, set[ObjectKey]] = {}
        self.holders_of: Callable[[ObjectKey], Iterable[Holder]] = lambda _: ()

    def claim_changed(self, change: Change[GpuClaim]) -> None:
        self._forget(change.key)
        if change.after is None:
            return
        try:
            spec = read_claim_spec(change.after.spec, f"claim {change.key}")
        except InvalidRequest as error:
            self._specs[change.key] = str(error)
            return
        self._specs[change.key] = spec
        if spec.gang_ref:
            self._in_gang.setdefault(ObjectKey(change.key.namespace, spec.gang_ref), set()).add(change.key)

    def _forget(self, key: ObjectKey) -> None:
        spec = self._specs.pop(key, None)
        if isinstance(spec, ClaimSpec) and spec.gang_ref:
            self._in_gang[ObjectKey(key.namespace, spec.gang_ref)].discard(key)

    def gang_of(self, key: ObjectKey) -> str:
        """The gang that a claim is for; empty, if it is for none."""
        spec = self._specs.get(key)
        return spec.gang_ref if isinstance(spec, ClaimSpec) else ""

    def in_gang(self, gang: ObjectKey) -> Iterator[ObjectKey]:
        """The claims that are for this gang."""
        return iter(self._in_gang.get(gang, ()))

    def join(self, pod: object, request: PodRequest) -> PodRequest:
        """The request with what the pod's claim adds to it. ClaimUnmet, if that cannot be had, or not yet."""
        said = annotations_of(pod)
        if not names_claim(said):
            return request
        ref, name = read_pod_ref(pod), said.get(keys.CLAIM, "")
        try:
            pin = read_pin(said, str(ref))
            if not name:
                assert pin is not None  # else it would name no claim
                return join_claim(request, pinned_spec(pin), str(ref), pin=pin, selector=self._selector(said))
            return self._join(ref, ObjectKey(ref.namespace, name), request, pin, self._selector(said))
        except ClaimUnmet:
            raise
        except InvalidInput as error:
            raise _unmet(Reason.CLAIM_INVALID, str(error)) from None

    def _join(
        self, ref: PodRef, key: ObjectKey, request: PodRequest, pin: Pin | None, selector: CardSelector
    ) -> PodRequest:
        spec = self._specs.get(key)
        if spec is None:
            raise _unmet(Reason.CLAIM_MISSING, str(key))
        if isinstance(spec, str):
            raise _unmet(Reason.CLAIM_INVALID, spec)
        others = [holder for holder in self.holders_of(key) if holder.pod.uid != ref.uid]
        if others:
            pin = _shared_cards(key, spec, others[0], pin)
        return join_claim(request, spec, f"claim {key}", pin=pin, selector=selector)

    def _selector(self, said: dict[str, str]) -> CardSelector:
        return read_selector(said, self._selector_keys) if self._selector_keys else ANY_CARD


def _shared_cards(key: ObjectKey, spec: ClaimSpec, holder: Holder, pin: Pin | None) -> Pin:
    """Those that the claim has already."""
    if spec.devices.exclusivity is not Exclusivity.SHARED:
        raise _unmet(Reason.CLAIM_IN_USE, str(holder.pod))
    if pin not in (None, holder.cards):
        detail = f"claim {key} has {holder.cards}, expected {pin}, to which the pod's {keys.PIN} pins it"
        raise _unmet(Reason.CLAIM_INVALID, detail)
    return holder.cards


def _unmet(reason: Reason, detail: str) -> ClaimUnmet:
    return ClaimUnmet(render(Refusal(reason, detail=detail)))
