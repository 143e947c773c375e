"""What was offered to a pod with a claim is taken only for what the claim still is."""

import pytest

from tessera.model.pods import read_pod_ref
from tests.unit.scheduler.claimants import Claimants, a_claimant

FOUR = "4xA100-SXM4-80GB"


@pytest.fixture
def claimants() -> Claimants:
    return Claimants(a=FOUR, b=FOUR)


def offered(claimants: Claimants, pod: dict[str, object], node: str) -> object:
    """What is left of the offer, for what the pod asks for now."""
    return claimants.phases.offers.take(read_pod_ref(pod).uid, claimants.world.request_of(pod), node)


def test_an_offer_is_taken_as_it_was_made(claimants: Claimants):
    claimants.claim("mine")
    pod = claimants.see(a_claimant("web", "mine"))
    (node,) = claimants.phases.choose(pod, ["a", "b"], 0.0).passed
    assert offered(claimants, pod, node) is not None


def test_an_offer_is_over_when_the_claim_is_edited(claimants: Claimants):
    claimants.claim("mine")
    pod = claimants.see(a_claimant("web", "mine"))
    (node,) = claimants.phases.choose(pod, ["a", "b"], 0.0).passed
    claimants.claim("mine", 3)
    assert offered(claimants, pod, node) is None


def test_an_offer_is_over_when_another_pod_has_got_the_cards_of_the_shared_claim(claimants: Claimants):
    claimants.claim("ours", exclusivity="Shared")
    first, second = claimants.see(a_claimant("first", "ours")), claimants.see(a_claimant("second", "ours"))
    (node,) = claimants.phases.choose(second, ["a"], 0.0).passed
    claimants.hold(first, "b")
    assert offered(claimants, second, node) is None
