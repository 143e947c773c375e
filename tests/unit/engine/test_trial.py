"""Which cards a pod may have, and how its containers share them out."""

import numpy as np
import pytest

from tessera.engine.demand import Demands
from tessera.engine.policies.mutex import MutexCards
from tessera.engine.policy import CardPolicy
from tessera.engine.trial import Cards, Trial, try_pod
from tessera.model.requests import CardSelector, PodRequest, PolicyChoice
from tests.builders import a_card, a_node, a_pod, a_ref, a_sidecar, a_want, an_allocation, an_app, an_init
from tests.unit.engine.world import World

SPREAD = PolicyChoice(node="spread", cards=("spread",))
MUTEX = PolicyChoice(cards=("mutex",))


def two_cards(**changes: object) -> World:
    """One node with the cards A and B."""
    return World(a_node("n", a_card("A", **changes), a_card("B", **changes)))


def fits(world: World, request: PodRequest) -> bool:
    return world.fitting(request) == ["n"]


class TestEligibility:
    def test_a_card_of_another_vendor_will_not_do(self):
        world = World(a_node("n", a_card("A", vendor="DCU"), a_card("B")))
        assert world.cards(a_pod(a_want(vendor="DCU"))) == [["A"]]
        assert world.cards(a_pod(a_want(vendor="NVIDIA"))) == [["B"]]
        assert not fits(world, a_pod(a_want(2)))

    def test_an_accepted_type_narrows_and_an_avoided_type_narrows_further(self):
        cards = a_card("A", model="A100-40GB"), a_card("B", model="A100-80GB"), a_card("C", model="T4")
        world = World(a_node("n", *cards))
        use = CardSelector(use_types=("a100",))
        both = CardSelector(use_types=("a100",), avoid_types=("40gb",))
        assert fits(world, a_pod(a_want(2, selector=use)))
        assert not fits(world, a_pod(a_want(3, selector=use)))
        assert world.cards(a_pod(a_want(selector=both))) == [["B"]]
        assert not fits(world, a_pod(a_want(2, selector=both)))

    def test_uuid_lists_name_cards_exactly(self):
        world = two_cards()
        assert world.cards(a_pod(a_want(selector=CardSelector(use_uuids=("B", "X"))))) == [["B"]]
        assert world.cards(a_pod(a_want(selector=CardSelector(avoid_uuids=("A",))))) == [["B"]]
        assert not fits(world, a_pod(a_want(selector=CardSelector(use_uuids=("b",)))))
        assert not fits(world, a_pod(a_want(selector=CardSelector(use_uuids=("A",), avoid_uuids=("A",)))))

    def test_uuid_lists_look_at_every_node_for_itself(self):
        world = World(a_node("m", a_card("A")), a_node("n", a_card("B")))
        assert world.fitting(a_pod(a_want(selector=CardSelector(use_uuids=("B",))))) == ["n"]

    def test_the_mode_must_be_the_wanted_one(self):
        world = World(a_node("n", a_card("A", mode="mps"), a_card("B")))
        assert world.cards(a_pod(a_want(selector=CardSelector(mode="mps")))) == [["A"]]
        assert world.cards(a_pod(a_want(selector=CardSelector(mode="hami-core")))) == [["B"]]

    def test_a_card_that_is_sliced_in_hardware_is_given_to_nobody_yet(self):
        world = World(a_node("n", a_card("A", mode="mig")))
        assert not fits(world, a_pod(a_want(memory_mib=1000)))
        assert not fits(world, a_pod(a_want(memory_mib=1000, selector=CardSelector(mode="mig"))))

    def test_an_unhealthy_card_and_a_cordoned_card_take_nobody(self):
        world = World(a_node("n", a_card("A", healthy=False), a_card("B"), a_card("C"), cordoned=["C"]))
        assert world.cards(a_pod(a_want())) == [["B"]]
        assert not fits(world, a_pod(a_want(2)))

    def test_a_card_without_a_slot_takes_nobody(self):
        world = two_cards(slots=1)
        world.hold("n", "A")
        assert world.cards(a_pod(a_want())) == [["B"]]
        world.hold("n", "B")
        assert not fits(world, a_pod(a_want()))

    def test_memory_is_given_to_the_last_mebibyte(self):
        world = two_cards(memory_mib=1000)
        world.hold("n", "A", memory_mib=400)
        world.hold("n", "B", memory_mib=401)
        assert world.cards(a_pod(a_want(memory_mib=600))) == [["A"]]
        assert not fits(world, a_pod(a_want(memory_mib=601)))

    def test_a_percentage_of_memory_is_of_the_card_and_not_of_what_is_free(self):
        world = World(a_node("n", a_card("A", memory_mib=1000), a_card("B", memory_mib=2000)))
        world.hold("n", "B", memory_mib=1001)
        assert world.cards(a_pod(a_want(memory_percent=50))) == [["A"]]
        world.hold("n", "A", memory_mib=511)
        assert not fits(world, a_pod(a_want(memory_percent=50)))
        assert world.cards(a_pod(a_want(memory_percent=49))) == [["B"]]

    def test_cores_are_given_to_the_last_percent(self):
        world = two_cards()
        world.hold("n", "A", cores_percent=60)
        world.hold("n", "B", cores_percent=61)
        assert world.cards(a_pod(a_want(cores_percent=40))) == [["A"]]
        assert not fits(world, a_pod(a_want(cores_percent=41)))

    def test_a_card_with_no_cores_left_takes_nobody_even_without_cores(self):
        world = two_cards()
        world.hold("n", "A", cores_percent=100)
        assert world.cards(a_pod(a_want())) == [["B"]]
        world.hold("n", "B", cores_percent=50)
        world.hold("n", "B", cores_percent=50)
        assert not fits(world, a_pod(a_want()))

    def test_who_wants_all_cores_gets_a_card_that_nobody_uses(self):
        world = two_cards()
        world.hold("n", "A")
        assert world.cards(a_pod(a_want(cores_percent=100))) == [["B"]]
        world.hold("n", "B")
        assert not fits(world, a_pod(a_want(cores_percent=100)))
        assert fits(world, a_pod(a_want(cores_percent=99)))

    def test_a_card_of_scaled_cores_is_shared_by_two_who_want_a_hundred(self):
        world = World(a_node("n", a_card("A", cores_percent=200)))
        world.hold("n", "A", cores_percent=100)
        assert fits(world, a_pod(a_want(cores_percent=100)))
        world.hold("n", "A", cores_percent=100)
        assert not fits(world, a_pod(a_want()))

    def test_mutex_takes_idle_cards_only(self):
        world = two_cards()
        world.hold("n", "A")
        assert world.cards(a_pod(a_want(), policy=MUTEX)) == [["B"]]
        assert not fits(world, a_pod(a_want(2), policy=MUTEX))

    def test_a_node_without_cards_takes_only_pods_without(self):
        world = World(a_node("n"))
        assert fits(world, a_pod())
        assert not fits(world, a_pod(a_want()))

    def test_an_empty_cluster_takes_nobody(self):
        assert World().fitting(a_pod(a_want(2, selector=CardSelector(same_numa=True)))) == []
        assert World().node(a_pod()) is None

    @pytest.mark.parametrize("figure", ["cpu_milli", "memory_bytes"])
    def test_the_host_gives_to_the_last_unit(self, figure):
        world = World(a_node("n", a_card("A"), **{figure: 1000}))
        assert fits(world, a_pod(a_want(), **{figure: 1000}))
        assert not fits(world, a_pod(a_want(), **{figure: 1001}))

    def test_a_node_that_runs_all_its_pods_takes_no_other(self):
        world = World(a_node("n", a_card("A"), pods=1))
        assert fits(world, a_pod(a_want()))
        world.hold("n", "A")
        assert not fits(world, a_pod())


class TestContainers:
    def test_one_container_takes_a_card_once(self):
        world = two_cards()
        assert world.cards(a_pod(a_want(2))) == [["A", "B"]]
        assert not fits(world, a_pod(a_want(3)))

    def test_containers_may_share_a_card_and_add_up(self):
        world = World(a_node("n", a_card("A", memory_mib=1000)))
        assert world.cards(a_pod(a_want(memory_mib=500), a_want(memory_mib=500))) == [["A"], ["A"]]
        assert not fits(world, a_pod(a_want(memory_mib=500), a_want(memory_mib=501)))

    def test_slots_and_cores_of_containers_add_up_too(self):
        world = World(a_node("n", a_card("A", slots=2)))
        assert fits(world, a_pod(a_want(), a_want()))
        assert not fits(world, a_pod(a_want(), a_want(), a_want()))
        assert fits(world, a_pod(a_want(cores_percent=50), a_want(cores_percent=50)))
        assert not fits(world, a_pod(a_want(cores_percent=50), a_want(cores_percent=51)))

    def test_a_container_of_the_same_pod_makes_a_card_shared(self):
        world = World(a_node("n", a_card("A")))
        assert not fits(world, a_pod(a_want(), a_want(cores_percent=100)))
        assert not fits(world, a_pod(a_want(cores_percent=100), a_want()))

    def test_a_container_without_cards_gets_an_empty_place(self):
        assert two_cards().cards(a_pod(an_app(), a_want(), an_app())) == [[], ["A"], []]

    def test_one_container_may_want_cards_of_two_vendors(self):
        world = World(a_node("n", a_card("A"), a_card("D", vendor="DCU")))
        both = an_app(a_want(vendor="DCU"), a_want(vendor="NVIDIA"))
        allocation = world.decider.choose(a_pod(both))
        assert allocation is not None
        assert [(share.uuid, share.vendor) for share in allocation.containers[0]] == [("D", "DCU"), ("A", "NVIDIA")]

    def test_the_shares_say_what_each_container_takes(self):
        world = World(a_node("n", a_card("A", memory_mib=1000)))
        allocation = world.decider.choose(a_pod(a_want(memory_percent=25, cores_percent=30), a_want(memory_mib=7)))
        assert allocation is not None
        assert [(share.memory_mib, share.cores_percent) for share in allocation.shares] == [(250, 30), (7, 0)]


class TestInitContainers:
    """They run before the others, so a card must hold the larger of the two."""

    CARD = a_card("A", memory_mib=1000, slots=2)

    def test_an_init_container_and_an_app_container_use_the_same_memory_in_turn(self):
        world = World(a_node("n", self.CARD))
        assert fits(world, a_pod(an_init(a_want(memory_mib=1000)), a_want(memory_mib=1000)))
        assert not fits(world, a_pod(an_init(a_want(memory_mib=1001)), a_want(memory_mib=1)))

    def test_init_containers_run_one_after_another(self):
        world = World(a_node("n", self.CARD))
        three = [an_init(a_want(memory_mib=900)) for _ in range(3)]
        assert fits(world, a_pod(*three))

    def test_an_init_container_runs_beside_the_sidecars_before_it(self):
        world = World(a_node("n", self.CARD))
        assert not fits(world, a_pod(a_sidecar(a_want(memory_mib=600)), an_init(a_want(memory_mib=600))))
        assert fits(world, a_pod(an_init(a_want(memory_mib=600)), a_sidecar(a_want(memory_mib=600))))

    def test_a_sidecar_stays_beside_the_app_containers(self):
        world = World(a_node("n", self.CARD))
        assert not fits(world, a_pod(a_sidecar(a_want(memory_mib=600)), a_want(memory_mib=600)))

    def test_an_init_container_may_have_a_card_alone_that_others_share_later(self):
        world = World(a_node("n", self.CARD))
        assert fits(world, a_pod(an_init(a_want(cores_percent=100)), a_want(), a_want()))
        assert not fits(world, a_pod(a_sidecar(a_want()), an_init(a_want(cores_percent=100))))

    def test_what_is_left_is_what_is_free_in_both_times(self):
        world = World(a_node("n", self.CARD))
        pod = a_pod(an_init(a_want(memory_mib=700, cores_percent=10)), a_want(memory_mib=100, cores_percent=60))
        trial = tried(world, pod)
        assert trial.after.free_memory.tolist() == [[300]]
        assert trial.after.free_cores.tolist() == [[40]]
        assert trial.after.free_slots.tolist() == [[1]]
        assert trial.before.free_memory.tolist() == [[1000]]


class TestNuma:
    BOUND = CardSelector(same_numa=True)

    def test_the_cards_of_one_container_sit_on_one_numa_node(self):
        cards = [a_card(f"{numa}{letter}", numa=numa) for letter in "ab" for numa in (0, 1)]
        world = World(a_node("n", *cards))
        (pair,) = world.cards(a_pod(a_want(2, selector=self.BOUND)))
        assert len({uuid[0] for uuid in pair}) == 1
        assert not fits(world, a_pod(a_want(3, selector=self.BOUND)))
        assert fits(world, a_pod(a_want(3)))

    def test_the_numa_node_with_the_fewest_cards_that_suffice_is_taken(self):
        cards = [a_card(f"0{letter}", numa=0) for letter in "abcd"] + [a_card(f"1{letter}", numa=1) for letter in "ab"]
        world = World(a_node("n", *cards))
        assert world.cards(a_pod(a_want(2, selector=self.BOUND))) == [["1a", "1b"]]
        assert world.cards(a_pod(a_want(3, selector=self.BOUND))) == [["0a", "0b", "0c"]]

    def test_only_eligible_cards_count(self):
        cards = a_card("0a", numa=0), a_card("0b", numa=0, healthy=False), a_card("1a", numa=1), a_card("1b", numa=1)
        world = World(a_node("n", *cards))
        assert world.cards(a_pod(a_want(2, selector=self.BOUND))) == [["1a", "1b"]]

    def test_each_container_may_sit_elsewhere(self):
        cards = [a_card(f"{numa}{letter}", numa=numa, slots=1) for letter in "ab" for numa in (0, 1)]
        world = World(a_node("n", *cards))
        assert fits(world, a_pod(a_want(2, selector=self.BOUND), a_want(2, selector=self.BOUND)))

    def test_one_card_sits_anywhere(self):
        assert fits(World(a_node("n", a_card("A", numa=3))), a_pod(a_want(selector=self.BOUND)))


def tried(world: World, request: PodRequest, policy: CardPolicy | None = None) -> Trial:
    fleet = world.ledger.fleet
    rows = np.arange(len(fleet))
    admitted = np.ones(len(rows), np.bool_)
    return try_pod(request, fleet, rows, admitted=admitted, demands=Demands(fleet), policy=policy or MutexCards())


class Dislike(CardPolicy):
    """Finds every card equally unbearable."""

    def keys(self, demand, cards, eligible):  # noqa: ARG002
        return np.full(cards.kind.shape, -np.inf)


@pytest.mark.parametrize("count", [1, 2])
def test_no_dislike_brings_in_a_card_that_will_not_do(count):
    world = World(a_node("n", a_card("A", healthy=False), a_card("B"), a_card("C")))
    trial = tried(world, a_pod(a_want(count)), Dislike())
    assert np.flatnonzero(trial.picks[0].cards[0]).tolist() == [1, 2][:count]


class OddOnes(CardPolicy):
    def keys(self, demand, cards, eligible):  # noqa: ARG002
        return np.broadcast_to(np.arange(cards.kind.shape[1]) % 2.0, cards.kind.shape)


def test_equal_cards_are_taken_from_the_left_however_many_there_are():
    world = World(a_node("n", *(a_card(f"G{number}") for number in range(200))))
    trial = tried(world, a_pod(a_want(90)), OddOnes())
    assert np.flatnonzero(trial.picks[0].cards[0]).tolist() == list(range(1, 180, 2))


def test_a_trial_changes_nothing():
    world = two_cards()
    before = [array.copy() for array in (world.ledger.fleet.free_memory, world.ledger.fleet.free_slots)]
    sequence = world.ledger.fleet.sequence
    tried(world, a_pod(an_init(a_want(memory_mib=5)), a_want(2, memory_mib=7, cores_percent=3)))
    fleet = world.ledger.fleet
    assert np.array_equal(fleet.free_memory, before[0])
    assert np.array_equal(fleet.free_slots, before[1])
    assert fleet.sequence == sequence


def test_where_cards_do_not_suffice_none_is_picked():
    trial = tried(World(a_node("m", a_card("A")), a_node("n", a_card("B"), a_card("C"))), a_pod(a_want(2)))
    assert trial.fits.tolist() == [False, True]
    assert trial.picks[0].cards.sum(axis=1).tolist() == [0, 2]


def test_part_of_the_rows_keeps_their_figures():
    world = World(a_node("m", a_card("A", memory_mib=10)), a_node("n", a_card("B", memory_mib=20)))
    part = Cards(world.ledger.fleet, np.array([0, 1])).part(np.array([1]))
    assert part.rows.tolist() == [1]
    assert part.free_memory.tolist() == [[20]]


def test_a_pod_that_spreads_puts_its_containers_on_different_cards():
    assert two_cards().cards(a_pod(a_want(), a_want(), policy=SPREAD)) == [["A"], ["B"]]


def test_a_pod_that_asks_for_no_cpu_may_come_to_a_host_that_has_promised_too_much() -> None:
    world = World(a_node("n", cpu_milli=1000))
    world.ledger.adopt(a_ref("greedy"), a_pod(cpu_milli=5000), an_allocation("n"))

    assert world.decider.choose(a_pod(cpu_milli=0)) is not None
    assert world.decider.choose(a_pod(cpu_milli=1)) is None
