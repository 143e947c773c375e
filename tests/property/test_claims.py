"""Claims on random nodes: as good as the best of all sets of cards, and never on a card that is somebody else's."""

from collections.abc import Iterable
from itertools import combinations, pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tessera.engine.deciding import Decider
from tessera.engine.ledger import Ledger
from tessera.engine.policies import PolicyBook
from tessera.model.claims import WHOLE_CARD
from tessera.model.devices import Device, Node
from tessera.model.refusals import Reason
from tessera.model.requests import (
    CardSelector,
    ClaimPolicy,
    ClaimRequest,
    DeviceRequest,
    PodRequest,
    PolicyChoice,
    TopologyMode,
)
from tests.builders import a_card, a_node, a_pod, a_ref, a_share, a_want, an_allocation

slow = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
NODE = "n"
Wishes = tuple[int, ...]

islands = st.sampled_from(["", "x", "x", "y", "z"])


@st.composite
def cards(draw: st.DrawFn, uuid: str, index: int) -> Device:
    return a_card(
        uuid,
        index=index,
        vendor=draw(st.sampled_from(["NVIDIA"] * 7 + ["DCU"])),
        slots=draw(st.sampled_from([1, 3])),
        memory_mib=1000,
        cores_percent=draw(st.sampled_from([100, 100, 80, 250])),
        island=draw(islands),
        bandwidth_gbps=draw(st.sampled_from([0, 300, 600])),
        numa=draw(st.sampled_from([0, 0, 1])),
        healthy=draw(st.sampled_from([True] * 7 + [False])),
    )


@st.composite
def claim_nodes(draw: st.DrawFn, name: str = NODE, most: int = 7) -> Node:
    indexes = draw(st.lists(st.integers(0, 9), min_size=0, max_size=most, unique=True))
    devices = [draw(cards(f"{name}-{index}", index)) for index in indexes]
    cordoned = [device.uuid for device in devices if draw(st.sampled_from([False] * 7 + [True]))]
    return a_node(name, *devices, cordoned=cordoned)


@st.composite
def claims(draw: st.DrawFn, *, pins: bool = True) -> ClaimRequest:
    card = draw(st.sampled_from([WHOLE_CARD, WHOLE_CARD, a_want(), a_want(memory_mib=400, cores_percent=30)]))
    count = draw(st.integers(1, 5))
    some_ids = st.lists(st.integers(0, 9), max_size=4, unique=True).map(tuple)
    pinned = st.lists(st.integers(0, 9), min_size=count, max_size=count, unique=True).map(tuple)
    return ClaimRequest(
        card=replace(card, count=count, selector=CardSelector(same_numa=draw(st.sampled_from([False, False, True])))),
        policy=draw(st.sampled_from(list(ClaimPolicy))),
        prefer_ids=draw(some_ids),
        topology=draw(st.sampled_from(list(TopologyMode))),
        min_bandwidth_gbps=draw(st.sampled_from([0, 300, 600])),
        pinned_ids=draw(st.one_of(st.just(()), st.just(()), pinned)) if pins else (),
    )


def will_do(claim: ClaimRequest, card: Device, *, cordoned: bool, held: bool) -> bool:
    """Whether one card is to be had; who holds it has a slot, 700 MiB and half the cores of 100."""
    if card.vendor != "NVIDIA" or not card.healthy or cordoned:
        return False
    if claim.pinned_ids and card.index not in claim.pinned_ids:
        return False
    if not held:
        return claim.is_exclusive or claim.card.memory_mib <= card.memory_mib
    return (
        not claim.is_exclusive
        and card.slots > 1
        and claim.card.memory_mib <= card.memory_mib - 700
        and max(claim.card.cores_percent, 1) <= card.cores_percent - 50
    )


def are_joined(claim: ClaimRequest, chosen: tuple[Device, ...]) -> bool:
    if len(chosen) == 1:
        return True
    same = all(card.island and card.island == chosen[0].island for card in chosen)
    return same and min(card.bandwidth_gbps for card in chosen) >= claim.min_bandwidth_gbps


def may_be_given(claim: ClaimRequest, chosen: tuple[Device, ...]) -> bool:
    ids = sorted(card.index for card in chosen)
    return (
        (claim.policy is not ClaimPolicy.CONTIGUOUS or all(after - before == 1 for before, after in pairwise(ids)))
        and (claim.topology is not TopologyMode.REQUIRED or are_joined(claim, chosen))
        and (not claim.card.selector.same_numa or len({card.numa for card in chosen}) == 1)
    )


def wishes_met(claim: ClaimRequest, chosen: tuple[Device, ...]) -> Wishes:
    """The order of docs/policies.md, higher is better, as far as it is the claim's own."""
    named = {card.island for card in chosen}
    together = len(named) == 1 and "" not in named and len(chosen) > 1
    preferred = claim.topology is TopologyMode.PREFERRED and are_joined(claim, chosen)
    match claim.policy:
        case ClaimPolicy.SPREAD:
            return preferred, len(named)
        case ClaimPolicy.PREFER_IDS:
            return preferred, sum(card.index in claim.prefer_ids for card in chosen), together
        case _:
            return preferred, together


class Desk:
    """A ledger over some nodes, and what decides on it."""

    def __init__(self, *nodes: Node) -> None:
        self.ledger = Ledger()
        for node in nodes:
            self.ledger.put_node(node)
        self.decider = Decider(self.ledger, PolicyBook(self.ledger.fleet, self.ledger.live))

    def hold(self, node: Node, uuids: Iterable[str]) -> None:
        for uuid in uuids:
            share = a_share(uuid, 700, 50)
            self.ledger.adopt(a_ref(f"holds-{uuid}"), a_pod(a_want()), an_allocation(node.name, share))


@slow
@given(st.data(), claim_nodes(), claims())
def test_a_claim_gets_the_best_of_all_sets_or_none_where_there_is_none(data, node, claim):
    held = {card.uuid for card in node.devices if data.draw(st.sampled_from([False, False, True]))}
    desk = Desk(node)
    desk.hold(node, held)
    able = [
        card
        for card in node.devices
        if will_do(claim, card, cordoned=card.uuid in node.cordoned_uuids, held=card.uuid in held)
    ]
    sets = [chosen for chosen in combinations(able, claim.card.count) if may_be_given(claim, chosen)]
    request = PodRequest(claim=claim)
    allocation = desk.decider.choose(request)
    assert (allocation is not None) == bool(sets)
    if allocation is None:
        (refusal,) = desk.decider.refusals(request)
        assert refusal.reason is not Reason.CARDS_TOGETHER
        return
    by_uuid = {card.uuid: card for card in node.devices}
    chosen = tuple(by_uuid[share.uuid] for share in allocation.claimed)
    assert [card.index for card in chosen] == sorted(card.index for card in chosen)
    assert set(chosen) in [set(possible) for possible in sets]
    assert wishes_met(claim, chosen) == max(wishes_met(claim, possible) for possible in sets)
    desk.ledger.reserve(a_ref("claims"), request, allocation, expires_at=1.0)


@slow
@given(st.data(), claims(pins=False), st.sampled_from(["defrag", "binpack", "spread"]))
def test_the_best_node_is_one_that_meets_the_most_wishes(data, claim, policy):
    nodes = [data.draw(claim_nodes(name, most=5)) for name in ("a", "b", "c")]
    desk = Desk(*nodes)
    request = PodRequest(claim=claim, policy=PolicyChoice(node=policy))
    met: dict[str, Wishes] = {}
    for node in nodes:
        allocation = desk.decider.allocate(request, desk.ledger.fleet.row_of[node.name])
        if allocation is not None:
            uuids = {share.uuid for share in allocation.claimed}
            found = wishes_met(claim, tuple(card for card in node.devices if card.uuid in uuids))
            met[node.name] = found if claim.policy is ClaimPolicy.CONTIGUOUS else found[:2]
            if claim.policy is ClaimPolicy.ANY:
                met[node.name] = found[:1]
    chosen = desk.decider.choose(request)
    assert (chosen is None) == (not met)
    if chosen is not None:
        assert met[chosen.node] == max(met.values())


@slow
@given(st.data(), claims())
def test_many_nodes_at_once_are_decided_as_each_alone(data, claim):
    """What a node is given does not depend on which other nodes it is looked at with."""
    nodes = [data.draw(claim_nodes(name, most=most)) for name, most in (("a", 3), ("b", 7), ("c", 5))]
    request = PodRequest(claim=claim)
    together = Desk(*nodes)
    fleet = together.ledger.fleet
    fitting = {fleet.names[row] for row in together.decider.candidates(request).rows}
    for node in nodes:
        alone = Desk(node).decider.choose(request)
        assert (node.name in fitting) == (alone is not None)
        assert together.decider.allocate(request, fleet.row_of[node.name]) == alone


fractions = st.builds(
    DeviceRequest,
    vendor=st.just("NVIDIA"),
    count=st.sampled_from([1, 1, 2]),
    memory_mib=st.sampled_from([0, 100, 1000]),
    cores_percent=st.sampled_from([0, 20, 100]),
)
pods = st.one_of(
    st.builds(lambda claim: PodRequest(claim=claim), claims()),
    fractions.map(a_pod),
    st.builds(lambda claim, want: replace(a_pod(want), claim=claim), claims(), fractions),
)


@slow
@given(st.data(), st.lists(pods, min_size=1, max_size=12))
def test_an_exclusive_card_is_one_pods_alone_in_any_order_of_claims_and_fractions(data, arriving):
    nodes = [data.draw(claim_nodes(name, most=4)) for name in ("a", "b")]
    desk = Desk(*nodes)
    for number, request in enumerate(arriving):
        holding = sorted(holding.ref.uid for holding in desk.ledger)
        if holding and data.draw(st.sampled_from([False, False, True])):
            desk.ledger.release(data.draw(st.sampled_from(holding)))
        desk.decider.observe(request)
        allocation = desk.decider.choose(request)
        if allocation is not None:
            desk.ledger.reserve(a_ref(f"pod-{number}"), request, allocation, expires_at=1.0)
            if data.draw(st.booleans()):
                desk.ledger.commit(f"pod-{number}")
        assert_exclusive_cards_are_alone(desk.ledger)
    assert desk.ledger.overcommitted() == []


def assert_exclusive_cards_are_alone(ledger: Ledger) -> None:
    users: dict[str, list[str]] = {}
    exclusive: set[str] = set()
    for holding in ledger:
        for share in holding.allocation.shares:
            users.setdefault(share.uuid, []).append(holding.ref.uid)
        if holding.request.claim is not None and holding.request.claim.is_exclusive:
            exclusive.update(share.uuid for share in holding.allocation.claimed)
    shared = {uuid: users[uuid] for uuid in exclusive if len(users[uuid]) > 1}
    assert not shared
