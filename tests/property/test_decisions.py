"""Decisions over random clusters: they agree with a slow reading of the rules, with each other, and with themselves."""

from collections import Counter
from itertools import permutations

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tessera.engine.deciding import Decider
from tessera.engine.hosting import refuse_host
from tessera.engine.policies import PolicyBook
from tessera.model.devices import Device, Node
from tessera.model.refusals import Reason, render
from tessera.model.requests import DeviceRequest, PodRequest, PolicyChoice
from tests.builders import a_card, a_node, a_pod, a_ref, a_want
from tests.property.decision_strategies import (
    DETERMINISTIC,
    Cluster,
    Hold,
    Scene,
    choices,
    nodes,
    pods,
    scenes,
    uuids_of,
    wants,
)

HOST_REASONS = {
    Reason.NODE_NOT_READY,
    Reason.NODE_CORDONED,
    Reason.NODE_SELECTOR,
    Reason.NODE_TAINT,
    Reason.HOST_CPU,
    Reason.HOST_MEMORY,
    Reason.HOST_PODS,
}
slow = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def with_policy(request: PodRequest, choice: PolicyChoice) -> PodRequest:
    return msgspec.structs.replace(request, policy=choice)


def may_have(want: DeviceRequest, card: Device, held: list[Hold], *, cordoned: bool, idle_only: bool) -> bool:
    """Whether one card will do for one request, rule by rule."""
    selector, memory = want.selector, want.memory_mib
    if want.memory_percent:
        memory = card.memory_mib * want.memory_percent // 100
    free_cores = card.cores_percent - sum(hold.cores_percent for hold in held)
    exclusive = idle_only or want.cores_percent >= card.cores_percent
    return (
        card.vendor == want.vendor
        and card.healthy
        and not cordoned
        and (not selector.use_types or any(word.lower() in card.model.lower() for word in selector.use_types))
        and not any(word.lower() in card.model.lower() for word in selector.avoid_types)
        and (not selector.use_uuids or card.uuid in selector.use_uuids)
        and card.uuid not in selector.avoid_uuids
        and (not selector.mode or card.mode == selector.mode)
        and len(held) < card.slots
        and memory <= card.memory_mib - sum(hold.memory_mib for hold in held)
        and max(want.cores_percent, 1) <= free_cores
        and not (exclusive and held)
    )


def finds_cards(want: DeviceRequest, node: Node, holds: list[Hold], *, idle_only: bool) -> bool:
    able = [
        card
        for card in node.devices
        if may_have(
            want,
            card,
            [hold for hold in holds if hold.uuid == card.uuid],
            cordoned=card.uuid in node.cordoned_uuids,
            idle_only=idle_only,
        )
    ]
    together = Counter(card.numa for card in able).values() if want.selector.same_numa else [len(able)]
    return max(together, default=0) >= want.count


def host_takes(request: PodRequest, node: Node, holds: list[Hold]) -> bool:
    host, places = request.host, sum(hold.node == node.name for hold in holds)
    return (
        refuse_host(host, node.host, node.name) is None
        and host.cpu_milli <= node.host.cpu_milli
        and host.memory_bytes <= node.host.memory_bytes
        and places < node.host.pods
    )


@slow
@given(st.data(), scenes(), choices)
def test_a_pod_of_one_request_fits_exactly_where_enough_cards_will_do(data, scene, choice):
    vendor = data.draw(st.sampled_from(["NVIDIA", "DCU"]))
    request = a_pod(data.draw(wants(vendor, uuids_of(scene))), cpu_milli=1000, policy=choice)
    cluster = Cluster(scene)
    (want,) = request.containers[0].devices
    expected = {
        node.name
        for node in scene.nodes
        if host_takes(request, node, scene.holds)
        and finds_cards(want, node, scene.holds, idle_only="mutex" in choice.cards)
    }
    fleet = cluster.ledger.fleet
    assert {fleet.names[row] for row in cluster.decider.candidates(request).rows} == expected
    chosen = cluster.decider.choose(request)
    assert (chosen is None) == (not expected)


@slow
@given(st.data(), scenes(), choices)
def test_a_node_is_refused_with_a_reason_that_holds_or_not_at_all(data, scene, choice):
    request = with_policy(data.draw(pods(uuids_of(scene))), choice)
    cluster = Cluster(scene)
    refusals = {refusal.where: refusal for refusal in cluster.decider.refusals(request)}
    fitting = {cluster.ledger.fleet.names[row] for row in cluster.decider.candidates(request).rows}
    assert set(refusals).isdisjoint(fitting)
    assert set(refusals) | fitting == {node.name for node in scene.nodes}
    wanted = [device for container in request.containers for device in container.devices]
    idle_only = "mutex" in choice.cards
    for node in scene.nodes:
        alone = all(finds_cards(want, node, scene.holds, idle_only=idle_only) for want in wanted)
        takes = host_takes(request, node, scene.holds)
        if node.name in fitting:
            assert alone
            assert takes
            continue
        reason = refusals[node.name].reason
        assert (reason in HOST_REASONS) == (not takes)
        assert (reason is Reason.CARDS_TOGETHER) == (takes and alone)
        if reason is Reason.CARDS_TOGETHER:
            assert len(wanted) > 1


@slow
@given(st.data(), scenes(), choices)
def test_whatever_is_chosen_can_be_reserved_and_is_what_was_asked_for(data, scene, choice):
    request = with_policy(data.draw(pods(uuids_of(scene))), choice)
    cluster = Cluster(scene)
    for row in cluster.decider.candidates(request).rows:
        allocation = cluster.decider.allocate(request, int(row))
        assert allocation is not None
        cluster.ledger.reserve(a_ref("tried"), request, allocation, expires_at=1.0)
        cluster.ledger.release("tried")
        for container, shares in zip(request.containers, allocation.containers, strict=True):
            assert len({share.uuid for share in shares}) == len(shares)
            given_out = Counter(share.vendor for share in shares)
            assert given_out == Counter({device.vendor: device.count for device in container.devices})


@slow
@given(st.data(), scenes(), choices)
def test_asking_twice_gives_the_same_answer_and_the_same_words(data, scene, choice):
    request = with_policy(data.draw(pods(uuids_of(scene))), choice)
    cluster = Cluster(scene)
    first = cluster.decider.choose(request), [render(refusal) for refusal in cluster.decider.refusals(request)]
    again = cluster.decider.choose(request), [render(refusal) for refusal in cluster.decider.refusals(request)]
    other = Cluster(scene).decider
    anew = other.choose(request), [render(refusal) for refusal in other.refusals(request)]
    assert first == again == anew


@slow
@given(st.data(), scenes(), st.sampled_from(DETERMINISTIC))
def test_the_order_in_which_nodes_were_seen_does_not_matter(data, scene, policy):
    choice = PolicyChoice(node=policy, cards=(policy,))
    request = with_policy(data.draw(pods(uuids_of(scene), most_containers=2)), choice)
    shuffled = scene._replace(nodes=data.draw(st.permutations(scene.nodes)))
    assert Cluster(shuffled).decider.choose(request) == Cluster(scene).decider.choose(request)


@pytest.mark.parametrize("policy", DETERMINISTIC)
def test_nor_does_it_where_all_nodes_are_alike_or_nearly_so(policy):
    choice = PolicyChoice(node=policy, cards=(policy,))
    fractions = [a_pod(a_want(memory_mib=mib), policy=choice) for mib in (160, 470, 810)]
    seen = [*fractions * 3, a_pod(a_want(2, memory_percent=100), policy=choice)]
    for sizes in ((1000, 1000, 1000, 1000), (1000, 2000, 1000, 2000)):
        answers: set[object] = set()
        for order in permutations(range(4)):
            built = [
                a_node(f"n{number}", *(a_card(f"{number}{letter}", memory_mib=sizes[number]) for letter in "AB"))
                for number in order
            ]
            cluster = Cluster(Scene(built, [Hold("n2", "2A", "NVIDIA", 190, 0)], seen))
            answers.add(tuple(cluster.decider.choose(request) for request in seen))
        assert len(answers) == 1


class TestMemory:
    """A decider that has seen a cluster change answers as one that sees it for the first time."""

    @slow
    @given(st.data(), scenes(), st.lists(choices, min_size=1, max_size=2))
    def test_kept_verdicts_equal_fresh_ones(self, data, scene, wanted):
        cluster = Cluster(scene)
        asked = [with_policy(data.draw(pods(uuids_of(scene))), choice) for choice in wanted]
        for step in range(data.draw(st.integers(1, 5))):
            self.change(data, cluster, step)
            for request in asked:
                cluster.decider.candidates(request)
            if data.draw(st.booleans()):
                cluster.decider.observe(data.draw(st.sampled_from(asked)))
        for request in asked:
            fresh = Decider(cluster.ledger, cluster.book)
            kept_rows, kept_scores = cluster.decider.candidates(request)
            rows, scores = fresh.candidates(request)
            assert kept_rows.tolist() == rows.tolist()
            assert kept_scores.tolist() == scores.tolist()
            assert cluster.decider.choose(request) == fresh.choose(request)

    @slow
    @given(st.data(), scenes(), choices)
    def test_a_new_book_of_policies_that_do_not_learn_decides_alike(self, data, scene, choice):
        assume({"defrag", "fgd"}.isdisjoint({choice.node, *choice.cards}))
        cluster = Cluster(scene)
        request = with_policy(data.draw(pods(uuids_of(scene))), choice)
        for step in range(data.draw(st.integers(1, 4))):
            self.change(data, cluster, step)
            cluster.decider.candidates(request)
        fresh = Decider(cluster.ledger, PolicyBook(cluster.ledger.fleet, cluster.ledger.live))
        assert cluster.decider.choose(request) == fresh.choose(request)

    def change(self, data: st.DataObject, cluster: Cluster, step: int) -> None:
        ledger, fleet = cluster.ledger, cluster.ledger.fleet
        names = sorted(fleet.row_of)
        match data.draw(st.sampled_from(["put", "drop", "hold", "release"])):
            case "drop" if names:
                ledger.drop_node(data.draw(st.sampled_from(names)))
            case "release" if len(ledger):
                ledger.release(data.draw(st.sampled_from(sorted(holding.ref.uid for holding in ledger))))
            case "hold" if any(fleet.uuids):
                row = data.draw(st.sampled_from([row for row, uuids in enumerate(fleet.uuids) if uuids]))
                uuid = data.draw(st.sampled_from(fleet.uuids[row]))
                cluster.hold(f"step-{step}", Hold(fleet.names[row], uuid, "NVIDIA", 190, 20))
            case _:
                name = data.draw(st.sampled_from([*names, f"new-{step}"]))
                ledger.put_node(data.draw(nodes(name)))
