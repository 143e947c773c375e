"""What the Lease of a card says, and what is read back from it."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from tessera.model.card_leases import (
    SHARED,
    CardRef,
    Hold,
    card_of,
    holders_in,
    is_shared,
    lease_for,
    says_the_same,
)
from tessera.model.requests import PodRef

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CARD = CardRef("node-a", 0, "GPU-a")
labels = st.text("abcdefghij0123456789-", min_size=1, max_size=60).map(lambda name: f"a{name}z")
nodes = st.lists(labels, min_size=1, max_size=5).map(".".join)
pods = st.builds(PodRef, labels, labels, st.uuids().map(str))


def test_a_lease_is_named_after_its_node_and_its_card():
    assert CARD.lease_name == "gpu-node-a-0"
    lease = lease_for(CARD, Hold((PodRef("default", "web", "u1"),), is_shared=False), NOW)
    assert lease["spec"]["holderIdentity"] == "u1"
    assert "ownerReferences" not in lease["metadata"]


def test_a_hold_expires_until_its_pod_is_bound_and_not_afterwards():
    pod = PodRef("default", "web", "u1")
    reserved = lease_for(CARD, Hold((pod,), is_shared=False, until_bound=True), NOW)
    assert reserved["spec"]["leaseDurationSeconds"] > 0
    bound = lease_for(CARD, Hold((pod,), is_shared=False), NOW, reserved)
    assert "leaseDurationSeconds" not in bound["spec"]
    assert bound["spec"]["acquireTime"] == reserved["spec"]["acquireTime"]
    assert not says_the_same(reserved, bound)


def test_a_card_that_is_shared_lists_its_pods():
    hold = Hold((PodRef("a", "one", "u2"), PodRef("b", "two", "u1")), is_shared=True)
    lease = lease_for(CARD, hold, NOW)
    assert lease["spec"]["holderIdentity"] == SHARED
    assert is_shared(lease)
    assert holders_in(lease) == (PodRef("b", "two", "u1"), PodRef("a", "one", "u2"))


def test_a_lease_that_somebody_wrote_by_hand_has_a_holder_and_is_none_of_ours():
    lease = {"metadata": {"name": "gpu-node-a-0"}, "spec": {"holderIdentity": "abc-123"}}
    assert holders_in(lease) == (PodRef("", "", "abc-123"),)
    assert card_of(lease) is None


def test_what_others_have_put_on_a_lease_stays_there():
    before = {"metadata": {"name": "gpu-node-a-0", "resourceVersion": "7", "labels": {"team": "red"}}, "spec": {}}
    lease = lease_for(CARD, Hold((PodRef("default", "web", "u1"),), is_shared=False), NOW, before)
    assert lease["metadata"]["resourceVersion"] == "7"
    assert lease["metadata"]["labels"]["team"] == "red"


@given(nodes, st.integers(0, 255))
def test_a_lease_name_is_one_that_kubernetes_takes(node: str, card: int):
    name = CardRef(node, card, "GPU-a").lease_name
    assert len(name) <= 253
    assert all(part and part[0] != "-" and part[-1] != "-" for part in name.split("."))


@given(st.lists(st.tuples(nodes, st.integers(0, 255)), unique=True, max_size=20))
def test_no_two_cards_have_the_same_lease(cards: list[tuple[str, int]]):
    assert len({CardRef(node, card, "").lease_name for node, card in cards}) == len(cards)


@given(nodes, st.integers(0, 255), st.lists(pods, min_size=1, max_size=4, unique_by=lambda pod: pod.uid), st.booleans())
def test_what_is_written_is_read_back(node: str, card: int, holders: list[PodRef], expires: bool):
    ref = CardRef(node, card, "GPU-x")
    lease = lease_for(ref, Hold(tuple(holders), is_shared=len(holders) > 1, until_bound=expires), NOW)
    assert card_of(lease) == ref
    assert set(holders_in(lease)) == set(holders)
