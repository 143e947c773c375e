"""Claims, and nodes whose cards have ids and islands, in as few words as a test needs."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from tessera.model.claims import WHOLE_CARD
from tessera.model.devices import Node
from tessera.model.requests import ANY_CARD, CardSelector, ClaimRequest, ContainerRequest, DeviceRequest, PodRequest
from tests.builders import a_card, a_node, a_pod

BANDWIDTH_GBPS = 600


def a_wired_node(
    name: str,
    islands: str,
    *,
    bandwidths: Sequence[int] = (),
    sick: Sequence[int] = (),
    cordoned: Sequence[int] = (),
    **card: Any,
) -> Node:
    """A card for each letter of `islands`, a blank for one whose island is not known. Its id is its UUID."""
    devices = (
        a_card(
            str(index),
            index=index,
            island=letter.strip(),
            bandwidth_gbps=bandwidths[index] if bandwidths else BANDWIDTH_GBPS,
            healthy=index not in sick,
            **card,
        )
        for index, letter in enumerate(islands)
    )
    return a_node(name, *devices, cordoned=[str(index) for index in cordoned])


def a_claim_pod(
    count: int,
    *containers: ContainerRequest | DeviceRequest,
    shared: dict[str, Any] | None = None,
    selector: CardSelector = ANY_CARD,
    **claim: Any,
) -> PodRequest:
    """A pod with a claim to so many cards, alone or `shared` with what it asks of each."""
    card = WHOLE_CARD if shared is None else DeviceRequest(vendor=WHOLE_CARD.vendor, count=1, **shared)
    asked = ClaimRequest(card=replace(card, count=count, selector=selector), **claim)
    return replace(a_pod(*containers), claim=asked)
