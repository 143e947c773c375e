"""Ids and islands of cards, kept once for all nodes that are wired alike."""

import numpy as np

from tessera.engine.fleet import Fleet
from tessera.engine.wiring import card_ids
from tests.builders import a_card, a_node


def wiring_of(fleet: Fleet, name: str) -> tuple[list[int], list[int], list[int]]:
    found = fleet.wirings(np.array([fleet.row_of[name]]))
    return found.ids[0].tolist(), found.islands[0].tolist(), found.bandwidths[0].tolist()


class TestIds:
    def test_an_id_is_the_index(self):
        assert card_ids([a_card("a", index=3), a_card("b", index=1)]) == (3, 1)

    def test_where_indexes_repeat_it_is_the_place_among_the_vendors_cards(self):
        cards = [a_card("a", index=5), a_card("x", vendor="DCU", index=7), a_card("b", index=5), a_card("c", index=6)]
        assert card_ids(cards) == (0, 7, 1, 2)

    def test_an_index_that_cannot_be_one_counts_as_a_repeated_one(self):
        for index in (-1, 2**70):
            assert card_ids([a_card("a", index=4), a_card("b", index=index)]) == (0, 1)


class TestFleet:
    def test_islands_are_numbered_within_their_node_by_the_lowest_id(self):
        fleet = Fleet()
        fleet.put(
            a_node("n", *(a_card(str(one), index=one, island=name) for one, name in enumerate(["y", "", "x", "y"])))
        )
        assert wiring_of(fleet, "n")[1] == [1, 0, 2, 1]

    def test_nodes_that_are_wired_alike_share_a_wiring_whatever_their_islands_are_called(self):
        fleet = Fleet()
        for name in ("a", "b"):
            fleet.put(a_node(name, a_card("0", island=f"{name}-0", bandwidth_gbps=600), a_card("1", index=1)))
        assert fleet.wiring[fleet.row_of["a"]] == fleet.wiring[fleet.row_of["b"]]
        assert wiring_of(fleet, "b") == ([0, 1], [1, 0], [600, 0])

    def test_a_wider_node_and_a_node_without_cards_change_nothing_for_the_others(self):
        fleet = Fleet()
        fleet.put(a_node("a", a_card("0", index=4, island="i", bandwidth_gbps=2**40)))
        fleet.put(a_node("b"))
        fleet.put(a_node("c", *(a_card(str(one), index=one) for one in range(20))))
        assert wiring_of(fleet, "a") == ([4, *[0] * 19], [1, *[0] * 19], [2**31 - 1, *[0] * 19])
        assert wiring_of(fleet, "b")[0] == [0] * 20

    def test_a_node_that_is_wired_anew_is_known_so(self):
        fleet = Fleet()
        fleet.put(a_node("a", a_card("0", index=0)))
        fleet.put(a_node("a", a_card("0", index=1)))
        assert wiring_of(fleet, "a")[0] == [1]
