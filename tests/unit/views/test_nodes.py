from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.model.annotations.handshakes import HandshakeState
from tessera.model.annotations.registers import RegisterFormat, encode_register
from tessera.model.annotations.versioned import decode_inventory
from tessera.views.nodes import AgentStanding, NodeView, view_nodes
from tests.unit.views.making import (
    CATALOGUE,
    HANDSHAKE,
    NOW,
    a_node,
    a_pod,
    ago,
    an_agent_lease,
    held,
    uuids_of,
)

INVENTORY, REGISTER = "tessera.io/inventory", "hami.io/node-nvidia-register"


def view(*nodes: Any, pods: Any = (), leases: Any = ()) -> tuple[NodeView, ...]:
    holdings = None if pods is None else held(*pods)
    return view_nodes(nodes, holdings, leases, CATALOGUE, NOW)


def test_a_card_shows_what_pods_were_given_of_it_and_who_they_are():
    node = a_node()
    first, second = uuids_of(node)
    pods = [
        a_pod("one", node="gpu-a", cards={first: 8000}),
        a_pod("two", namespace="train", node="gpu-a", cards={first: 1000, second: 500}),
        a_pod("elsewhere", node="gpu-b", cards={first: 7}),
    ]
    one, other = view(node, pods=pods)[0].cards

    assert (one.memory_mib, one.memory_used_mib, one.shares_used) == (81920, 9000, 2)
    assert (other.memory_used_mib, other.shares_used) == (500, 1)
    assert [(holder.namespace, holder.pod, holder.memory_mib) for holder in one.holders] == [
        ("default", "one", 8000),
        ("train", "two", 1000),
    ]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_is_over_holds_nothing(phase: str):
    node = a_node()
    pod = a_pod(node="gpu-a", cards={uuids_of(node)[0]: 8000}, phase=phase)

    assert view(node, pods=[pod])[0].cards[0].memory_used_mib == 0


@pytest.mark.parametrize("form", [RegisterFormat.SEED, RegisterFormat.HAMI, RegisterFormat.JSON])
def test_every_form_of_register_gives_the_same_cards(form: RegisterFormat):
    ours = a_node()
    devices = decode_inventory((ours.metadata.annotations or {})[INVENTORY], "node")
    theirs = a_node(annotations={INVENTORY: "", REGISTER: encode_register(devices, form)})

    def shown(node: Any) -> list[tuple[str, str, int, int]]:
        return [(card.uuid, card.model, card.memory_mib, card.shares) for card in view(node)[0].cards]

    assert shown(theirs) == shown(ours)


def test_what_is_used_is_unknown_where_pods_may_not_be_read():
    card = view(a_node(), pods=None)[0].cards[0]

    assert (card.memory_used_mib, card.cores_used_percent, card.shares_used) == (None, None, None)


def test_a_cordoned_card_and_an_ill_one_are_told():
    first, second = uuids_of(a_node())
    devices = decode_inventory((a_node().metadata.annotations or {})[INVENTORY], "node")
    ill = [msgspec.structs.replace(card, healthy=card.uuid != second) for card in devices]
    register = encode_register(ill, RegisterFormat.HAMI)
    node = a_node(annotations={INVENTORY: "", REGISTER: register, "hami.io/device-cordon": first})

    assert [(card.cordoned, card.healthy) for card in view(node)[0].cards] == [(True, True), (False, False)]


@pytest.mark.parametrize(
    ("text", "state", "is_fresh"),
    [
        (f"Reported {ago(minutes=4)}", HandshakeState.REPORTED, True),
        (f"Reported {ago(minutes=6)}", HandshakeState.REPORTED, False),
        (f"Requesting_{ago(minutes=1)}", HandshakeState.REQUESTING, True),
        (f"Deleted_{ago(minutes=1)}", HandshakeState.DELETED, False),
        ("Reported", HandshakeState.REPORTED, False),
    ],
)
def test_a_handshake_is_fresh_for_five_minutes(text: str, state: HandshakeState, is_fresh: bool):
    (said,) = view(a_node(annotations={HANDSHAKE: text}))[0].handshakes

    assert (said.state, said.is_fresh) == (state, is_fresh)


def test_an_agent_is_alive_while_it_renews_its_lease():
    nodes = [a_node("a"), a_node("b"), a_node("c")]
    leases = [an_agent_lease("a"), an_agent_lease("b", minutes=2)]

    standings = [node.agent.standing for node in view(*nodes, leases=leases)]
    assert standings == [AgentStanding.ALIVE, AgentStanding.SILENT, AgentStanding.ABSENT]
    assert view(nodes[0], leases=None)[0].agent.standing is AgentStanding.UNKNOWN


def test_a_pod_on_a_card_that_the_node_does_not_report_is_told():
    (node,) = view(a_node(), pods=[a_pod(node="gpu-a", cards={"GPU-gone": 8000})])

    assert node.complaints == ("node gpu-a: pod default/train holds card GPU-gone, which the node does not report",)


def test_a_node_that_cannot_be_read_is_shown_with_its_complaint():
    (node,) = view(a_node(status={"allocatable": {"cpu": "much"}}))

    assert node.cards == ()
    assert node.complaints == ('node gpu-a: allocatable cpu is "much", expected a quantity such as "15500m"',)


def test_two_views_at_rest_differ_only_if_somebody_did_something():
    before = view(a_node(), leases=[an_agent_lease("gpu-a")])[0]
    later = view(
        a_node(annotations={HANDSHAKE: f"Reported {ago(seconds=2)}"}), leases=[an_agent_lease("gpu-a", seconds=1)]
    )[0]
    silent = view(a_node(), leases=[an_agent_lease("gpu-a", minutes=5)])[0]

    assert before != later
    assert before.at_rest() == later.at_rest()
    assert before.at_rest() != silent.at_rest()


@given(amounts=st.lists(st.tuples(st.booleans(), st.integers(0, 90_000)), max_size=6))
def test_what_holders_hold_adds_up_to_what_is_used(amounts: list[tuple[bool, int]]):
    node = a_node()
    uuids = uuids_of(node)
    pods = [
        a_pod(f"pod-{number}", node="gpu-a", cards={uuids[on_first]: mib})
        for number, (on_first, mib) in enumerate(amounts)
    ]
    (seen,) = view(node, pods=pods)

    for card in seen.cards:
        assert card.memory_used_mib == sum(holder.memory_mib for holder in card.holders)
        assert card.shares_used == len(card.holders)
    assert sum(card.memory_used_mib or 0 for card in seen.cards) == sum(mib for _, mib in amounts)


def test_a_view_survives_json():
    seen = view(
        a_node(), pods=[a_pod(node="gpu-a", cards={uuids_of(a_node())[0]: 1})], leases=[an_agent_lease("gpu-a")]
    )

    assert msgspec.json.decode(msgspec.json.encode(seen), type=tuple[NodeView, ...]) == seen
