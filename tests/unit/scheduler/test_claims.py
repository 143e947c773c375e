"""What a pod asks for by its claim, and why it waits where it cannot have that."""

import pytest

from tests.unit.scheduler.claimants import Claimants, a_claimant
from tests.unit.scheduler.cluster import a_pod

FOUR = "4xA100-SXM4-80GB"
PIN = "gpu.scheduling/allocated"


@pytest.fixture
def claimants() -> Claimants:
    return Claimants(a=FOUR)


def test_a_claim_that_is_not_there_is_waited_for(claimants: Claimants):
    pod = claimants.see(a_claimant("web", "mine"))
    assert "there is no GpuClaim default/mine" in claimants.filter(pod)
    claimants.claim("mine", 2)
    assert claimants.filter(pod) == "a"


def test_a_claim_in_another_namespace_is_not_there(claimants: Claimants):
    claimants.claim("mine", namespace="theirs")
    assert "there is no GpuClaim default/mine" in claimants.filter(claimants.see(a_claimant("web", "mine")))


def test_a_claim_that_is_edited_while_its_pod_waits_counts_as_it_is_now(claimants: Claimants):
    pod = claimants.see(a_claimant("web", "mine"))
    claimants.claim("mine", 5)
    assert claimants.filter(pod) == "5 cards wanted, the node has 4"
    claimants.claim("mine", 4)
    assert claimants.filter(pod) == "a"


def test_slices_of_cards_are_refused_with_a_sentence(claimants: Claimants):
    claimants.claim("mine", exclusivity="MIG")
    assert "exclusivity is MIG, which is not supported yet" in claimants.filter(claimants.see(a_claimant("w", "mine")))


def test_a_claim_that_cannot_be_read_is_told_with_what_is_wrong(claimants: Claimants):
    claimants.claim_as("mine", {"devices": {"count": 0}})
    assert "claim default/mine: spec" in claimants.filter(claimants.see(a_claimant("web", "mine")))


def test_a_claim_to_cards_of_ones_own_serves_one_pod_at_a_time(claimants: Claimants):
    claimants.claim("mine")
    first, second = claimants.see(a_claimant("first", "mine")), claimants.see(a_claimant("second", "mine"))
    assert claimants.hold(first) == (0,)
    assert "the pod default/first has it" in claimants.filter(second)
    claimants.lose(first)
    assert claimants.filter(second) == "a"


def test_pods_that_share_a_claim_share_its_cards(claimants: Claimants):
    claimants.claim("ours", 2, exclusivity="Shared")
    first, second = claimants.see(a_claimant("first", "ours")), claimants.see(a_claimant("second", "ours"))
    assert claimants.hold(first) == claimants.hold(second)


def test_a_card_that_is_shared_is_nobodys_own(claimants: Claimants):
    claimants.claim("ours", 4, exclusivity="Shared")
    claimants.claim("mine")
    claimants.hold(claimants.see(a_claimant("sharing", "ours")))
    assert claimants.filter(claimants.see(a_claimant("alone", "mine"))) == "1 card that nobody uses wanted, 0 idle"


def test_a_pod_that_is_pinned_gets_these_cards_or_none(claimants: Claimants):
    pinned = claimants.see(a_claimant("pinned", **{PIN: "a:1,3"}))
    assert claimants.hold(pinned) == (1, 3)
    again = claimants.filter(claimants.see(a_claimant("again", **{PIN: "a:3"})))
    assert again.startswith("the pod is pinned to cards of which some cannot be had: 3"), again


def test_a_pin_and_a_claim_must_agree_on_how_many(claimants: Claimants):
    claimants.claim("mine", 1)
    pod = claimants.see(a_claimant("web", "mine", **{PIN: "a:1,3"}))
    assert "spec.devices.count is 1, expected 2" in claimants.filter(pod)


def test_a_pin_that_cannot_be_read_is_told(claimants: Claimants):
    assert 'gpu.scheduling/allocated is "a-1"' in claimants.filter(claimants.see(a_claimant("web", **{PIN: "a-1"})))


def test_what_a_claiming_pods_containers_say_of_cards_asks_for_no_more(claimants: Claimants):
    claimants.claim("mine", 4)
    pod = a_claimant("web", "mine")
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "4"
    assert claimants.hold(claimants.see(pod)) == (0, 1, 2, 3)


def test_figures_of_containers_limit_a_claim_to_shared_cards(claimants: Claimants):
    claimants.claim("ours", exclusivity="Shared")
    pod = a_claimant("web", "ours")
    pod["spec"]["containers"][0]["resources"]["limits"] |= {"nvidia.com/gpumem": "8000", "nvidia.com/gpucores": "30"}
    claimants.hold(claimants.see(pod))
    (share,) = claimants.world.ledger.holding("uid-web").allocation.claimed  # pyright: ignore[reportOptionalMemberAccess]
    assert (share.memory_mib, share.cores_percent) == (8000, 30)


def test_a_claim_and_a_pod_that_takes_a_part_never_have_the_same_card(claimants: Claimants):
    claimants.claim("mine", 3)
    claimants.hold(claimants.see(a_pod("part", memory=1000)))
    assert len(claimants.hold(claimants.see(a_claimant("web", "mine")))) == 3
    claimants.claim("more")
    assert claimants.filter(claimants.see(a_claimant("late", "more"))) == "1 card that nobody uses wanted, 0 idle"


def test_a_bound_pod_keeps_its_cards_when_its_claim_is_gone(claimants: Claimants):
    claimants.claim("mine", 4)
    pod = claimants.see(a_claimant("web", "mine"))
    claimants.hold(pod)
    uuids = claimants.world.ledger.fleet.uuids[0]
    listed = "".join(f"{uuid},NVIDIA,81920,100:" for uuid in uuids)
    bound = {**pod, "spec": {**pod["spec"], "nodeName": "a"}}
    bound["metadata"]["annotations"]["gpu.scheduling/devices"] = listed
    claimants.see(bound)
    claimants.drop_claim("mine")
    assert claimants.filter(claimants.see(a_pod("part", memory=1))) == "no card has 1 MiB free, the roomiest has 0 MiB"


def test_the_claims_selector_restricts_the_nodes():
    claimants = Claimants(a=FOUR, b=FOUR)
    claimants.claim_as("mine", {"devices": {"count": 1}, "selector": {"matchLabels": {"kubernetes.io/hostname": "b"}}})
    assert claimants.filter(claimants.see(a_claimant("web", "mine"))) in ("b", SELECTOR)


SELECTOR = "the node's labels do not match the node selector of the pod or its claim"
