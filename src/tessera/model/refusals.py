"""Why something was refused: one word and its numbers, and the one place that makes a sentence of them.

Events, command line, dashboard, metrics and docs/reasons.md show the same word. The sentence depends on nothing but
the refusal, so it is the same from try to try while the state is.
"""

from enum import StrEnum

import msgspec


class Reason(StrEnum):
    NODE_UNKNOWN = "NodeUnknown"
    NODE_NOT_READY = "NodeNotReady"
    NODE_CORDONED = "NodeCordoned"
    NODE_SELECTOR = "NodeSelector"
    NODE_TAINT = "NodeTaint"
    HOST_CPU = "HostCpu"
    HOST_MEMORY = "HostMemory"
    HOST_PODS = "HostPods"
    NO_CARDS = "NoCards"
    TOO_FEW_CARDS = "TooFewCards"
    CARD_UNHEALTHY = "CardUnhealthy"
    CARD_CORDONED = "CardCordoned"
    CARD_TYPE = "CardType"
    CARD_UUID = "CardUuid"
    CARD_MODE = "CardMode"
    CARD_SLOTS = "CardSlots"
    CARD_MEMORY = "CardMemory"
    CARD_CORES = "CardCores"
    CARD_EXCLUSIVE = "CardExclusive"
    CARD_NUMA = "CardNuma"
    CARD_PINNED = "CardPinned"
    CARDS_ISLAND = "CardsIsland"
    CARDS_BANDWIDTH = "CardsBandwidth"
    CARDS_ADJACENT = "CardsAdjacent"
    CARDS_TOGETHER = "CardsTogether"
    QUOTA = "Quota"
    CLAIM_MISSING = "ClaimMissing"
    CLAIM_INVALID = "ClaimInvalid"
    CLAIM_IN_USE = "ClaimInUse"
    GANG_UNKNOWN = "GangUnknown"
    GANG_INCOMPLETE = "GangIncomplete"
    GANG_UNPLACED = "GangUnplaced"
    GANG_SCATTERED = "GangScattered"


class Refusal(msgspec.Struct, frozen=True):
    """`need` and `have` are in the unit of the reason; `where` is the node, the namespace for a quota, or the claim.

    `cards` is how many cards the refused container wanted, which decides how the sentence is put.
    """

    reason: Reason
    need: int = 0
    have: int = 0
    where: str = ""
    detail: str = ""
    cards: int = 1


_SENTENCES: dict[Reason, str] = {
    Reason.NODE_UNKNOWN: "the node has not registered any cards",
    Reason.NODE_NOT_READY: "the node is not ready",
    Reason.NODE_CORDONED: "the node is cordoned",
    Reason.NODE_SELECTOR: "the node's labels do not match the node selector of the pod or its claim",
    Reason.NODE_TAINT: "the pod does not tolerate the taint {detail}",
    Reason.HOST_CPU: "{need}m CPU wanted, {have}m free",
    Reason.HOST_MEMORY: "{need} bytes of memory wanted, {have} free",
    Reason.HOST_PODS: "the node runs all the pods it may, {have} of {need} places are free",
    Reason.NO_CARDS: "the node has no {detail} cards",
    Reason.TOO_FEW_CARDS: "{wanted} wanted, the node has {have}",
    Reason.CARD_UNHEALTHY: "{wanted} wanted, {have} healthy",
    Reason.CARD_CORDONED: "{wanted} wanted, {have} not cordoned",
    Reason.CARD_TYPE: "{wanted} wanted, {have} of an accepted type",
    Reason.CARD_UUID: "{wanted} wanted, {have} among the accepted UUIDs",
    Reason.CARD_MODE: "{wanted} wanted, {have} in a mode that will do",
    Reason.CARD_SLOTS: "{wanted} with a free slot wanted, the node has {have}",
    Reason.CARD_MEMORY: "no card has {need} MiB free, the roomiest has {have} MiB",
    Reason.CARD_CORES: "no card has {need} % of its cores free, the idlest has {have} %",
    Reason.CARD_EXCLUSIVE: "{wanted} that nobody uses wanted, {have} idle",
    Reason.CARD_NUMA: "{wanted} on one NUMA node wanted, at most {have} together",
    Reason.CARD_PINNED: "the pod is pinned to cards of which some cannot be had: {detail}",
    Reason.CARDS_ISLAND: "{wanted} in one island wanted, at most {have} together",
    Reason.CARDS_BANDWIDTH: "{wanted} joined at {detail} GB/s wanted, the best set has {have} GB/s",
    Reason.CARDS_ADJACENT: "{wanted} with adjacent ids wanted, at most {have} in a row",
    Reason.CARDS_TOGETHER: "each container finds cards alone, but not all of them together",
    Reason.QUOTA: "{detail} would be {need}, the quota allows {have}",
    Reason.CLAIM_MISSING: "there is no GpuClaim {detail}, and a claim is looked for in the pod's own namespace",
    Reason.CLAIM_INVALID: "the GpuClaim cannot be met as it is: {detail}",
    Reason.CLAIM_IN_USE: "the GpuClaim is exclusive, and the pod {detail} has it",
    Reason.GANG_UNKNOWN: "no GpuGang, no PodGroup and no gpu.scheduling/gang-size tells the size of the gang {detail}",
    Reason.GANG_INCOMPLETE: "the gang {detail} has {have} of {need} members",
    Reason.GANG_UNPLACED: "the gang {detail} does not fit as a whole: {have} of {need} members find a place",
    Reason.GANG_SCATTERED: "not all members of the gang {detail} came to be bound together, they are tried again",
}
_SEVERAL: dict[Reason, str] = {
    Reason.CARD_MEMORY: "fewer than {cards} cards have {need} MiB free, the {cards} roomiest have {have} MiB each",
    Reason.CARD_CORES: "fewer than {cards} cards have {need} % of their cores free, the {cards} idlest {have} % each",
}


def render(refusal: Refusal) -> str:
    """The sentence for people."""
    several = _SEVERAL.get(refusal.reason) if refusal.cards > 1 else None
    template = several or _SENTENCES[refusal.reason]
    wanted = "1 card" if refusal.need == 1 else f"{refusal.need} cards"
    sentence = template.format(
        need=refusal.need, have=refusal.have, detail=refusal.detail, cards=refusal.cards, wanted=wanted
    )
    return f"{refusal.where}: {sentence}" if refusal.where else sentence
