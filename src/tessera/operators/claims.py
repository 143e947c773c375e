"""What a GpuClaim says of itself, judged from the claim, the pods that name it and the leases of cards. Pure.

A claim is for a pod as a whole and goes with it: when the pod has ended, the claim waits for the next one. Failed is
only what does not get better by waiting. A pod that is gone from the API while its cards are still leased keeps the
claim Bound: its processes may still be there.
"""

from collections.abc import Iterable, Sequence

import msgspec

from tessera.errors import InvalidInput
from tessera.kube.pods import Pod
from tessera.model.annotations.claims import Pin, read_pin
from tessera.model.annotations.keys import CLAIM
from tessera.model.card_leases import Document, card_of, holders_in
from tessera.model.claims import join_claim, read_claim_spec
from tessera.model.requests import PodRequest
from tessera.operators.objects import Claim, ClaimStatus, Condition, Phase, keep_times, name_some
from tessera.operators.pods import has_claimed_cards, has_ended, name_of, oldest_first, uid_of, why_it_waits

ACCEPTED, ALLOCATED = "Accepted", "Allocated"
NO_POD = f"no pod names this claim (annotation {CLAIM})"


def judge_claim(claim: Claim, pods: Iterable[Pod], leases: Sequence[Document]) -> ClaimStatus:
    """`pods` are those that name the claim, `leases` those of cards. Conditions have no times yet."""
    fault = find_fault(claim)
    status, reason = _judge_pods(claim.status, oldest_first(pods), leases, fault)
    return msgspec.structs.replace(status, conditions=_conditions(claim, status, reason, fault))


def find_fault(claim: Claim) -> str:
    """Why no pod can ever get what the claim asks for, or nothing."""
    where = f"claim {claim.metadata.namespace}/{claim.metadata.name}"
    try:
        join_claim(PodRequest(), read_claim_spec(claim.spec, where), where)
    except InvalidInput as error:
        return str(error)
    return ""


Judgement = tuple[ClaimStatus, str]
"""A status, and in one word why it is so."""


def _judge_pods(before: ClaimStatus, pods: Sequence[Pod], leases: Sequence[Document], fault: str) -> Judgement:
    living = [pod for pod in pods if not has_ended(pod)]
    bound = [pod for pod in living if has_claimed_cards(pod)]
    if bound:
        return _bound(bound, [pod for pod in living if not has_claimed_cards(pod)]), "Bound"
    if before.pod_uid and before.pod_uid not in map(uid_of, pods) and (held := _held_by(before.pod_uid, leases)):
        return _lingering(before, held, living), "PodGone"
    for pod in living:
        if held := _held_by(uid_of(pod), leases):
            return _reserved(pod, held), "Reserved"
    if fault:
        return ClaimStatus(phase=Phase.FAILED, message=fault), "Unusable"
    if living:
        return _waiting(living), "Waiting"
    if pods:
        return _over(pods[-1]), "PodEnded"
    return ClaimStatus(phase=Phase.PENDING, message=NO_POD), "NoPod"


def _bound(holders: Sequence[Pod], others: Sequence[Pod]) -> ClaimStatus:
    first = holders[0]
    said = "Successfully allocated" if len(holders) == 1 else f"Successfully allocated to {len(holders)} pods"
    try:
        pin, doubt = read_pin(first.metadata.annotations or {}, f"pod {name_of(first)}"), ""
    except InvalidInput as error:
        pin, doubt = None, f"; which GPUs cannot be read: {error}"
    if pin is None:
        pin = Pin(first.spec.node_name or "", ())
    return _about(first, Phase.BOUND, pin, said + doubt + _waiting_too(others))


def _lingering(before: ClaimStatus, held: Pin, living: Sequence[Pod]) -> ClaimStatus:
    said = f"pod {before.pod_name} is gone, its GPUs are freed when its processes have ended"
    return msgspec.structs.replace(
        _cards(Phase.BOUND, held, said + _waiting_too(living)), pod_name=before.pod_name, pod_uid=before.pod_uid
    )


def _reserved(pod: Pod, held: Pin) -> ClaimStatus:
    return _about(pod, Phase.RESERVED, held, f"reserved for pod {name_of(pod)}, which is about to be bound")


def _waiting(living: Sequence[Pod]) -> ClaimStatus:
    first, *others = living
    return _about(first, Phase.PENDING, None, why_it_waits(first) + _waiting_too(others))


def _over(pod: Pod) -> ClaimStatus:
    how = f"pod {name_of(pod)} has ended ({pod.status.phase})"
    return ClaimStatus(phase=Phase.PENDING, message=f"{how}; the next pod that names this claim gets GPUs anew")


def _about(pod: Pod, phase: Phase, cards: Pin | None, message: str) -> ClaimStatus:
    status = _cards(phase, cards, message)
    return msgspec.structs.replace(status, pod_name=name_of(pod), pod_uid=uid_of(pod))


def _cards(phase: Phase, cards: Pin | None, message: str) -> ClaimStatus:
    if cards is None:
        return ClaimStatus(phase=phase, message=message)
    ids = cards.ids or None
    return ClaimStatus(
        phase=phase, node_name=cards.node, gpu_ids=ids, allocated=str(cards) if ids else None, message=message
    )


def _held_by(uid: str, leases: Iterable[Document]) -> Pin | None:
    """The cards that are leased to a pod, all of them on one node."""
    held = [card_of(lease) for lease in leases if any(pod.uid == uid for pod in holders_in(lease))]
    cards = [card for card in held if card is not None]
    return Pin(cards[0].node, tuple(sorted(card.id for card in cards))) if cards else None


def _waiting_too(pods: Sequence[Pod]) -> str:
    if not pods:
        return ""
    verb = "waits" if len(pods) == 1 else "wait"
    return f"; {name_some([name_of(pod) for pod in pods])} {verb} for this claim too"


def _conditions(claim: Claim, status: ClaimStatus, reason: str, fault: str) -> tuple[Condition, ...]:
    def condition(kind: str, is_so: bool, why: str, message: str) -> Condition:
        generation = claim.metadata.generation
        return Condition(type=kind, status=str(is_so), reason=why, message=message, observed_generation=generation)

    return (
        condition(ACCEPTED, not fault, "Unusable" if fault else "Usable", fault),
        condition(ALLOCATED, status.phase is Phase.BOUND, reason, status.message or ""),
    )


def with_times(status: ClaimStatus, before: ClaimStatus, now: str) -> ClaimStatus:
    """The same, with the moment since which each condition is as it is."""
    return msgspec.structs.replace(status, conditions=keep_times(status.conditions, before.conditions, now))
