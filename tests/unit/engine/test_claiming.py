"""Which cards of a node a claim gets: what it insists on, what it wishes, and what is left for others."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from tessera.model.requests import CardSelector, ClaimPolicy, PolicyChoice, TopologyMode
from tests.builders import a_card, a_node, a_ref, a_want
from tests.unit.engine.claims import a_claim_pod, a_wired_node
from tests.unit.engine.world import World

CONTIGUOUS, SPREAD, PREFER_IDS = ClaimPolicy.CONTIGUOUS, ClaimPolicy.SPREAD, ClaimPolicy.PREFER_IDS
REQUIRED, PREFERRED = TopologyMode.REQUIRED, TopologyMode.PREFERRED
EIGHT = "AAAABBBB"


def a_world(islands: str, *, held: Sequence[int] = (), **changes: Any) -> World:
    world = World(a_wired_node("n", islands, **changes))
    for one in held:
        world.hold("n", str(one))
    return world


def ids(world: World, count: int, **claim: Any) -> list[int] | None:
    found = world.claimed(a_claim_pod(count, **claim))
    return None if found is None else [int(uuid) for uuid in found]


class TestWithoutAPolicy:
    def test_cards_of_one_island_are_taken_and_the_lowest_ids_first(self):
        assert ids(a_world(EIGHT), 2) == [0, 1]

    def test_an_island_that_is_broken_into_is_used_up_before_another(self):
        world = a_world(EIGHT, held=[4])
        assert ids(world, 1) == [5]
        assert ids(world, 3) == [5, 6, 7]
        assert ids(world, 4) == [0, 1, 2, 3]

    def test_within_an_island_the_shortest_run_that_suffices_is_taken(self):
        world = a_world("AAAAAAAA", held=[3, 6])
        assert ids(world, 1) == [7]
        assert ids(world, 2) == [4, 5]
        assert ids(world, 3) == [0, 1, 2]

    def test_where_no_run_suffices_the_shortest_ones_are_used_up(self):
        assert ids(a_world("AAAAAAAA", held=[3, 5]), 4) == [0, 4, 6, 7]

    def test_of_islands_with_as_many_cards_the_one_with_a_run_is_taken(self):
        assert ids(a_world(EIGHT, held=[1, 3, 4, 5]), 2) == [6, 7]

    def test_of_islands_that_are_equal_in_all_that_the_lowest_ids_are_taken(self):
        assert ids(a_world("ABBAA", held=[0]), 2) == [1, 2]

    def test_more_than_an_island_can_hold_comes_from_few_islands(self):
        assert ids(a_world("AAABCCDDDD"), 5) == [3, 6, 7, 8, 9]
        assert ids(a_world("AAABCCDDDD"), 6) == [4, 5, 6, 7, 8, 9]

    def test_cards_without_a_known_island_are_taken_by_runs(self):
        assert ids(a_world("      ", held=[2]), 2) == [0, 1]

    def test_one_card_is_taken_where_no_island_is_broken_and_several_where_one_joins_them(self):
        world = a_world("  AAAA")
        assert ids(world, 1) == [0]
        assert ids(world, 2) == [2, 3]

    def test_the_order_in_which_a_node_reports_its_cards_does_not_matter(self):
        cards = [a_card(str(index), index=index, island="AB"[index // 4]) for index in (6, 1, 0, 7, 3, 5, 2, 4)]
        world = World(a_node("n", *cards))
        assert ids(world, 2) == [0, 1]
        assert ids(world, 4, policy=CONTIGUOUS, pinned_ids=(4, 5, 6, 7)) == [4, 5, 6, 7]


class TestContiguous:
    def test_ids_are_adjacent_or_the_claim_waits(self):
        world = a_world(EIGHT, held=[1, 5])
        assert ids(world, 3, policy=CONTIGUOUS) == [2, 3, 4]
        assert ids(world, 4, policy=CONTIGUOUS) is None

    def test_an_island_that_can_hold_them_goes_before_a_run_across_two(self):
        assert ids(a_world(EIGHT, held=[0]), 4, policy=CONTIGUOUS) == [4, 5, 6, 7]
        assert ids(a_world(EIGHT, held=[0, 7]), 4, policy=CONTIGUOUS) == [1, 2, 3, 4]

    def test_ids_with_a_gap_between_them_are_not_adjacent(self):
        cards = [a_card(str(index), index=index, island="A") for index in (0, 1, 3, 4, 5)]
        assert ids(World(a_node("n", *cards)), 3, policy=CONTIGUOUS) == [3, 4, 5]

    def test_ids_of_another_vendor_lie_in_no_gap(self):
        cards = [a_card("0", index=0), a_card("1", index=1, vendor="DCU"), a_card("2", index=2)]
        assert ids(World(a_node("n", *cards)), 2, policy=CONTIGUOUS) is None

    def test_islands_that_alternate_are_crossed_only_if_none_has_a_run(self):
        assert ids(a_world("ABABAA"), 2, policy=CONTIGUOUS) == [4, 5]
        assert ids(a_world("ABABAB"), 2, policy=CONTIGUOUS) == [0, 1]


class TestSpread:
    def test_cards_are_of_as_many_islands_as_can_be_in_equal_parts(self):
        assert ids(a_world(EIGHT), 2, policy=SPREAD) == [0, 4]
        assert ids(a_world(EIGHT), 4, policy=SPREAD) == [0, 1, 4, 5]

    def test_where_islands_run_out_it_goes_on_with_what_there_is(self):
        assert ids(a_world("AAAB"), 3, policy=SPREAD) == [0, 1, 3]
        assert ids(a_world("AAAA"), 3, policy=SPREAD) == [0, 1, 2]

    def test_islands_that_are_broken_into_come_first(self):
        assert ids(a_world("AAABBBCC", held=[6]), 1, policy=SPREAD) == [7]

    def test_an_island_that_is_required_leaves_nothing_to_spread(self):
        assert ids(a_world(EIGHT), 2, policy=SPREAD, topology=REQUIRED) == [0, 1]
        assert ids(a_world(EIGHT), 2, policy=SPREAD, topology=PREFERRED) == [0, 1]


class TestPreferredIds:
    def test_the_named_cards_are_given(self):
        assert ids(a_world(EIGHT), 2, policy=PREFER_IDS, prefer_ids=(6, 3)) == [3, 6]

    def test_others_fill_up_and_of_the_same_island_if_they_can(self):
        world = a_world(EIGHT, held=[0, 1, 2])
        assert ids(world, 2, policy=PREFER_IDS, prefer_ids=(5, 0)) == [4, 5]

    def test_of_more_ids_than_cards_those_are_taken_that_belong_together(self):
        assert ids(a_world(EIGHT), 2, policy=PREFER_IDS, prefer_ids=(1, 4, 6)) == [4, 6]

    def test_ids_that_are_taken_or_not_there_do_not_stand_in_the_way(self):
        assert ids(a_world(EIGHT, held=[2]), 2, policy=PREFER_IDS, prefer_ids=(2, 99)) == [0, 1]

    def test_without_the_policy_they_mean_nothing(self):
        assert ids(a_world(EIGHT), 1, prefer_ids=(6,)) == [0]


class TestTopology:
    def test_required_means_one_island(self):
        world = a_world(EIGHT, held=[0])
        assert ids(world, 4, topology=REQUIRED) == [4, 5, 6, 7]
        assert ids(world, 5, topology=REQUIRED) is None

    def test_the_slowest_card_counts(self):
        world = a_world("AAABBB", bandwidths=[600, 64, 600, 300, 300, 300])
        assert ids(world, 2, topology=REQUIRED, min_bandwidth_gbps=600) == [0, 2]
        assert ids(world, 3, topology=REQUIRED, min_bandwidth_gbps=300) == [3, 4, 5]
        assert ids(world, 3, topology=REQUIRED, min_bandwidth_gbps=301) is None

    def test_cards_of_unknown_islands_are_not_joined_whatever_they_report(self):
        world = a_world("    ")
        assert ids(world, 2, topology=REQUIRED) is None
        assert ids(world, 2, topology=REQUIRED, min_bandwidth_gbps=1) is None

    def test_one_card_alone_meets_any_bandwidth(self):
        assert ids(a_world(" "), 1, topology=REQUIRED, min_bandwidth_gbps=10_000) == [0]

    def test_preferred_gives_way(self):
        world = a_world("AAABBB", bandwidths=[64, 64, 64, 600, 600, 64])
        assert ids(world, 2, topology=PREFERRED, min_bandwidth_gbps=600) == [3, 4]
        assert ids(world, 3, topology=PREFERRED, min_bandwidth_gbps=600) == [0, 1, 2]
        assert ids(world, 4, topology=PREFERRED, min_bandwidth_gbps=600) == [0, 1, 2, 3]

    def test_a_fast_island_is_preferred_to_one_that_fits_better(self):
        world = a_world("AABBB", bandwidths=[64, 64, 600, 600, 600])
        assert ids(world, 2) == [0, 1]
        assert ids(world, 2, topology=PREFERRED, min_bandwidth_gbps=600) == [2, 3]

    def test_a_preferred_topology_comes_before_preferred_ids(self):
        assert ids(a_world(EIGHT), 2, policy=PREFER_IDS, prefer_ids=(0, 4), topology=PREFERRED) == [0, 1]

    def test_contiguous_and_required_hold_together(self):
        world = a_world("ABBAAA")
        assert ids(world, 3, policy=CONTIGUOUS, topology=REQUIRED) == [3, 4, 5]
        assert ids(world, 4, policy=CONTIGUOUS, topology=REQUIRED) is None

    def test_one_numa_node_holds_with_all_of_it(self):
        cards = [a_card(str(one), index=one, island="A", numa=one // 3) for one in range(6)]
        world = World(a_node("n", *cards))
        bound = CardSelector(same_numa=True)
        world.hold("n", "1")
        assert ids(world, 2, selector=bound, policy=CONTIGUOUS) == [3, 4]
        assert ids(world, 2, selector=bound) == [0, 2]
        assert ids(world, 4, selector=bound) is None


class TestPins:
    def test_exactly_these_or_none(self):
        world = a_world(EIGHT, held=[1])
        assert ids(world, 2, pinned_ids=(0, 5)) == [0, 5]
        assert ids(world, 2, pinned_ids=(0, 1)) is None
        assert ids(world, 2, pinned_ids=(0, 9)) is None

    def test_what_the_claim_insists_on_holds_for_them_too(self):
        assert ids(a_world(EIGHT), 2, pinned_ids=(0, 5), topology=REQUIRED) is None
        assert ids(a_world(EIGHT), 2, pinned_ids=(0, 2), policy=CONTIGUOUS) is None


class TestSharing:
    def test_an_exclusive_claim_takes_all_of_its_cards_whatever_they_have(self):
        for cores in (80, 100, 250):
            world = World(a_wired_node("n", "A", cores_percent=cores, memory_mib=1000))
            claim = a_claim_pod(1)
            allocation = world.decider.choose(claim)
            assert allocation is not None
            assert [(share.memory_mib, share.cores_percent) for share in allocation.claimed] == [(1000, cores)]
            world.ledger.reserve(a_ref(), claim, allocation, expires_at=1.0)
            assert world.fitting(a_claim_pod(1, shared={})) == []
            assert world.fitting(a_claim_pod(1)) == []

    def test_an_exclusive_claim_wants_cards_that_nobody_uses(self):
        world = a_world("AA", held=[0])
        assert ids(world, 1) == [1]
        assert ids(world, 2) is None

    def test_a_shared_claim_takes_cards_first_that_others_share_already(self):
        world = a_world("AAAAAAAA", held=[5])
        assert ids(world, 1, shared={}) == [5]
        assert ids(world, 2, shared={}, policy=CONTIGUOUS) == [4, 5]
        assert ids(a_world(EIGHT, held=[2, 6]), 2, shared={}, policy=SPREAD) == [2, 6]

    def test_that_it_takes_them_counts_more_than_how_well_an_island_fits(self):
        assert ids(a_world("AABBBB", held=[4]), 1, shared={}) == [4]

    def test_a_shared_claim_is_charged_what_it_asks_for(self):
        world = a_world("AA")
        pod = a_claim_pod(1, shared={"memory_mib": 10_000, "cores_percent": 30})
        assert [world.place(pod) for _ in range(3)] == ["n", "n", None]
        assert world.fitting(a_claim_pod(1, shared={"memory_mib": 6_000})) == ["n"]

    def test_sick_and_cordoned_cards_are_never_given(self):
        world = World(a_wired_node("n", "AAAA", sick=[0], cordoned=[2]))
        assert ids(world, 2) == [1, 3]
        assert ids(world, 3) is None
        assert ids(world, 1, pinned_ids=(0,)) is None
        assert ids(world, 1, pinned_ids=(2,), shared={}) is None

    def test_containers_get_theirs_after_the_claim(self):
        world = World(a_node("n", a_card("0", index=0), a_card("1", index=1)))
        allocation = world.decider.choose(a_claim_pod(1, a_want(memory_mib=100)))
        assert allocation is not None
        assert [share.uuid for share in allocation.claimed] == ["0"]
        assert [share.uuid for share in allocation.containers[0]] == ["1"]
        assert world.fitting(a_claim_pod(2, a_want(memory_mib=100))) == []


class TestNodes:
    """Which node is best: wishes first, then what the node policy says."""

    def test_a_node_that_meets_the_wishes_goes_before_a_fuller_one(self):
        split, joined = a_wired_node("a", "ABC"), a_wired_node("b", "AAAAAAAA")
        world = World(split, joined)
        world.hold("a", "2")
        assert world.node(a_claim_pod(2)) == "a"
        assert world.node(a_claim_pod(2, topology=PREFERRED)) == "b"
        assert world.node(a_claim_pod(2, policy=CONTIGUOUS)) == "b"
        assert world.node(a_claim_pod(1, policy=PREFER_IDS, prefer_ids=(6,))) == "b"

    def test_a_node_of_several_islands_goes_before_a_fuller_one_for_cards_that_are_spread(self):
        world = World(a_wired_node("a", "AA"), a_wired_node("b", "AAAABBBB"))
        assert world.node(a_claim_pod(2)) == "a"
        assert world.node(a_claim_pod(2, policy=SPREAD)) == "b"

    def test_scores_of_more_wishes_are_above_all_of_fewer(self):
        islands = {"a": "AB", "b": "AA", "c": "A ", "d": "AAA"}
        world = World(*(a_wired_node(name, of_cards) for name, of_cards in islands.items()))
        scores = world.scores(a_claim_pod(2, topology=PREFERRED))
        assert min(scores["b"], scores["d"]) > max(scores["a"], scores["c"])
        assert scores["b"] > scores["d"]

    @pytest.mark.parametrize("policy", ["binpack", "spread", "defrag", "topology-aware", "fgd", "best-fit"])
    def test_equal_nodes_are_taken_by_name_whatever_the_node_policy(self, policy):
        world = World(*(a_wired_node(name, EIGHT) for name in ("n3", "n1", "n2")))
        choice = PolicyChoice(node=policy, cards=(policy,))
        world.decider.observe(a_claim_pod(2))
        for pod in (a_claim_pod(2), a_claim_pod(2, policy=SPREAD), a_claim_pod(2, topology=PREFERRED)):
            assert world.node(replace(pod, policy=choice)) == "n1"

    def test_what_is_remembered_follows_changes(self):
        world = World(a_wired_node("a", EIGHT), a_wired_node("b", EIGHT))
        pod = a_claim_pod(4, topology=PREFERRED)
        assert world.node(pod) == "a"
        uids = [world.hold("a", one) for one in "15"]
        assert world.node(pod) == "b"
        world.ledger.release(uids[0])
        assert world.node(pod) == "a"

    def test_a_fleet_without_any_card_refuses_claims(self):
        two = a_claim_pod(2, policy=CONTIGUOUS, topology=REQUIRED)
        for pod in (a_claim_pod(1), a_claim_pod(1, policy=SPREAD), a_claim_pod(1, pinned_ids=(0,)), two):
            assert World().node(pod) is None
            assert World(a_node("n")).node(pod) is None
            assert World(a_node("n"), a_node("m", a_card("X", vendor="DCU"))).sentences(pod)

    @pytest.mark.parametrize("policy", list(ClaimPolicy))
    def test_figures_beyond_all_bounds_are_refused_like_others(self, policy):
        world = a_world(EIGHT)
        assert ids(world, 10**12, policy=policy, topology=REQUIRED) is None
        assert world.sentences(a_claim_pod(10**12, policy=policy)) == [f"n: {10**12} cards wanted, the node has 8"]
        assert ids(world, 1, policy=PREFER_IDS, prefer_ids=(2**80, 3)) == [3]
        assert ids(world, 1, pinned_ids=(2**80,)) is None
        assert world.sentences(a_claim_pod(1, pinned_ids=(2**80,)))
        assert ids(world, 2, topology=PREFERRED, min_bandwidth_gbps=2**40) == [0, 1]
