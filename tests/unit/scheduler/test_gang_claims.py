"""Gangs whose members share claims, want certain nodes, or cannot be read: still all of them or none."""

import msgspec
import pytest

from tessera.engine.ledger import figures
from tessera.errors import BindRefused
from tessera.kube.pods import Pod
from tests.unit.scheduler.claimants import Claimants, a_claimant

FOUR, ONE = "4xA100-SXM4-80GB", "1xA100-SXM4-80GB"
NODES = ("a", "b")


@pytest.fixture
def claimants() -> Claimants:
    return Claimants(a=FOUR, b=FOUR)


def members(claimants: Claimants, gang: str, *claims: str) -> list[dict[str, object]]:
    return [claimants.see(a_claimant(f"{gang}-{n}", claim, gang=gang)) for n, claim in enumerate(claims)]


def test_members_that_name_one_exclusive_claim_wait_and_none_of_them_goes(claimants: Claimants):
    untouched = figures(claimants.world.ledger)
    claimants.gang("g", 2)
    claimants.claim("mine")
    for pod in members(claimants, "g", "mine", "mine"):
        assert "members of the gang default/g name the same claim, which is Exclusive" in claimants.filter(pod)
    assert figures(claimants.world.ledger) == untouched


def test_one_exclusive_claim_serves_one_member_where_that_is_enough(claimants: Claimants):
    claimants.gang("g", 1)
    claimants.claim("mine")
    first, second = members(claimants, "g", "mine", "mine")
    assert claimants.filter(first) in NODES
    assert "the pod default/g-0 has it" in claimants.filter(second)


def test_of_two_gangs_that_want_one_exclusive_claim_one_is_planned(claimants: Claimants):
    claimants.claim("mine")
    claimants.claim("other")
    for gang in ("g", "h"):
        claimants.gang(gang, 1)
    (first,), (second,) = members(claimants, "g", "mine"), members(claimants, "h", "mine")
    assert claimants.filter(first) in NODES
    assert "the pod default/g-0 has it" in claimants.filter(second)
    claimants.lose(first)
    assert claimants.filter(second) in NODES


def test_members_that_share_a_claim_are_planned_on_the_same_cards():
    claimants = Claimants(a=FOUR, b=FOUR)
    claimants.gang("g", 2)
    claimants.claim("ours", 2, exclusivity="Shared")
    pods = members(claimants, "g", "ours", "ours")
    for pod in pods:
        limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "60000"}
        pod["spec"]["containers"][0]["resources"]["limits"] |= limits  # type: ignore[index] # a document
        claimants.see(pod)
    assert "does not fit as a whole: 1 of 2" in claimants.filter(pods[0]), "both of them are more than a card has"


def test_a_gang_that_did_not_fit_is_planned_anew_when_a_claim_of_its_is_another(claimants: Claimants):
    claimants.gang("g", 2)
    for name in ("one", "two"):
        claimants.claim(name, 4)
    claimants.claim("two", 5)
    first, _ = members(claimants, "g", "one", "two")
    assert "does not fit as a whole" in claimants.filter(first)
    claimants.claim("two", 4)
    assert claimants.filter(first) in NODES


def test_a_gang_that_did_not_fit_is_not_tried_again_while_nothing_has_changed(claimants: Claimants):
    claimants.gang("g", 3)
    for name in ("one", "two", "three"):
        claimants.claim(name, 4)
    first, *others = members(claimants, "g", "one", "two", "three")
    claimants.filter(first)
    tried = claimants.world.ledger.fleet.sequence
    for pod in others:
        assert "does not fit as a whole: 2 of 3" in claimants.filter(pod)
    assert claimants.world.ledger.fleet.sequence == tried


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("choosy", [0, 1])
def test_a_member_that_can_be_on_one_node_only_finds_it_free(choosy: int, node: str):
    claimants = Claimants(a=ONE, b=ONE)
    claimants.gang("g", 2)
    for name in ("one", "two"):
        claimants.claim(name)
    pods = [a_claimant(f"g-{n}", claim, gang="g") for n, claim in enumerate(("one", "two"))]
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    wanted = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    pods[choosy]["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": wanted}}
    for pod in pods:
        claimants.see(pod)
    places = [claimants.filter(pod) for pod in pods]
    assert sorted(places) == ["a", "b"]
    assert places[choosy] == node


def test_a_member_too_many_whose_claim_is_missing_stands_in_nobodys_way(claimants: Claimants):
    claimants.gang("g", 1)
    claimants.claim("one")
    pod, _ = members(claimants, "g", "one", "missing")
    assert claimants.filter(pod) in NODES


def test_a_size_that_is_no_number_of_pods_tells_nothing(claimants: Claimants):
    claimants.claim("one")
    for size in ("9" * 5000, "0", "-1", "two", "٣"):
        pod = claimants.see(a_claimant("web", "one", gang="g", size=size))
        assert "tells the size of the gang default/g" in claimants.filter(pod)


def test_a_node_that_others_refuse_is_not_promised_again_and_again(claimants: Claimants):
    claimants.gang("g", 1)
    claimants.claim("one")
    (pod,) = members(claimants, "g", "one")
    assert not claimants.phases.filter(pod, ["elsewhere"], 0.0).passed
    read = msgspec.convert(pod, Pod)
    claimants.hold(claimants.see(a_claimant("other", "", **{"gpu.scheduling/allocated": "a:0"})))
    assert not claimants.phases.could_go(read, 1.0), "else it is woken for nothing"
    assert claimants.phases.could_go(read, 60.0), "what others say may have changed"


@pytest.mark.asyncio
async def test_a_member_whose_place_was_given_back_before_its_bind_is_not_bound_alone(claimants: Claimants):
    claimants.gang("g", 2)
    for name in ("one", "two"):
        claimants.claim(name)
    first, second = members(claimants, "g", "one", "two")
    claimants.filter(first)
    claimants.phases.gangs.release_plan("uid-g-0")
    with pytest.raises(BindRefused, match="the gang default/g has given back the place"):
        await claimants.phases.gangs.rally(msgspec.convert(second, Pod))
    claimants.hold(first)
    claimants.gang("g", 1)
    await claimants.phases.gangs.rally(msgspec.convert(second, Pod))
