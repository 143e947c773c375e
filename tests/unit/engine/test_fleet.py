"""Nodes and cards in arrays: rows come and go, nonsense is refused before anything of it is taken over."""

from typing import Any

import numpy as np
import pytest

from tessera.engine.arrays import Floats
from tessera.engine.fleet import Fleet
from tessera.engine.ledger import Ledger, figures
from tessera.errors import InvalidInventory
from tessera.model.devices import Link, Node
from tests.builders import a_card, a_node


def links_of(fleet: Fleet, name: str) -> Floats:
    return fleet.links[fleet.link_pattern[fleet.row_of[name]]]


def test_a_new_node_has_all_of_its_cards_free() -> None:
    fleet = Fleet()

    row = fleet.put(a_node("node-a", a_card("GPU-0", slots=4, memory_mib=8000, cores_percent=80)))

    assert (fleet.free_slots[row, 0], fleet.free_memory[row, 0], fleet.free_cores[row, 0]) == (4, 8000, 80)
    assert fleet.alive[row]


def test_a_wider_node_keeps_what_is_known_of_the_others() -> None:
    fleet = Fleet()
    row = fleet.put(a_node("node-a", a_card("GPU-0", numa=3), a_card("GPU-1"), links=[Link("GPU-0", "GPU-1", 7)]))
    fleet.free_memory[row, 0] -= 100

    fleet.put(a_node("node-b", *(a_card(f"GPU-{index}") for index in range(8))))

    assert fleet.free_memory[row, 0] == 16_284
    assert fleet.numa[row, 0] == 3
    links = links_of(fleet, "node-a")
    assert links[0, 1] == links[1, 0] == 7
    assert not links_of(fleet, "node-b").any()


def test_many_nodes_make_the_arrays_grow_and_stay_found() -> None:
    fleet = Fleet()

    for number in range(100):
        fleet.put(a_node(f"node-{number}", a_card(f"GPU-{number}")))

    assert {fleet.names[row]: fleet.uuids[row] for row in fleet.row_of.values()} == {
        f"node-{number}": (f"GPU-{number}",) for number in range(100)
    }
    assert np.count_nonzero(fleet.alive) == 100


def test_the_row_of_a_node_that_left_is_given_to_the_next_and_nothing_of_the_former_stays() -> None:
    fleet = Fleet()
    left = fleet.put(
        a_node("node-a", a_card("GPU-0"), a_card("GPU-1"), links=[Link("GPU-0", "GPU-1", 9)], cordoned=["GPU-0"])
    )
    fleet.remove("node-a")

    row = fleet.put(a_node("node-b", a_card("GPU-2")))

    assert row == left
    assert fleet.uuids[row] == ("GPU-2",)
    assert fleet.kind[row].tolist() == [fleet.kind[row, 0], 0]
    assert fleet.free_slots[row].tolist() == [10, 0]
    assert not fleet.cordoned[row].any()
    assert fleet.healthy[row].tolist() == [True, False]
    assert not links_of(fleet, "node-b").any()


def test_columns_without_a_card_any_more_are_empty() -> None:
    fleet = Fleet()
    fleet.put(a_node("node-a", a_card("GPU-0"), a_card("GPU-1"), a_card("GPU-2"), cordoned=["GPU-1"]))

    row = fleet.put(a_node("node-a", a_card("GPU-0")))

    assert fleet.healthy[row].tolist() == [True, False, False]
    assert not fleet.cordoned[row].any()
    assert fleet.kind[row, 1:].tolist() == fleet.free_memory[row, 1:].tolist() == [0, 0]


def test_a_node_that_left_is_not_alive_and_has_no_cards() -> None:
    fleet = Fleet()
    row = fleet.put(a_node("node-a", a_card("GPU-0")))

    fleet.remove("node-a")

    assert not fleet.alive[row]
    assert not fleet.healthy[row].any()
    assert fleet.uuids[row] == ()


def test_ties_go_by_name_also_after_rows_were_reused() -> None:
    fleet = Fleet()
    for name in ("node-c", "node-b"):
        fleet.put(a_node(name, a_card()))
    assert fleet.name_rank[fleet.row_of["node-b"]] < fleet.name_rank[fleet.row_of["node-c"]]
    fleet.remove("node-c")

    fleet.put(a_node("node-a", a_card()))

    assert fleet.name_rank[fleet.row_of["node-a"]] < fleet.name_rank[fleet.row_of["node-b"]]


def test_cards_that_are_alike_share_a_kind_and_others_do_not() -> None:
    fleet = Fleet()

    row = fleet.put(a_node("node-a", a_card("GPU-0"), a_card("GPU-1"), a_card("GPU-2", memory_mib=8000)))

    assert fleet.kind[row, 0] == fleet.kind[row, 1] != fleet.kind[row, 2]


def test_a_link_to_a_card_that_is_not_there_is_passed_over() -> None:
    fleet = Fleet()

    fleet.put(a_node("node-a", a_card("GPU-0"), links=[Link("GPU-0", "GPU-9", 5)]))

    assert not links_of(fleet, "node-a").any()


def test_every_change_of_a_row_raises_its_stamp() -> None:
    fleet = Fleet()
    row = fleet.put(a_node("node-a", a_card()))
    stamps = [int(fleet.changed_at[row])]

    fleet.put(a_node("node-a", a_card()))
    stamps.append(int(fleet.changed_at[row]))
    fleet.remove("node-a")
    stamps.append(int(fleet.changed_at[row]))

    assert stamps == sorted(set(stamps))


def _with_card(**changes: Any) -> Node:
    return a_node("node-a", a_card("GPU-0", **changes))


NONSENSE = {
    "too many cards": (
        a_node("node-a", *(a_card(f"GPU-{index}") for index in range(257))),
        "node node-a reports 257 cards, expected at most 256",
    ),
    "one card twice": (
        a_node("node-a", a_card("GPU-0"), a_card("GPU-0")),
        'node node-a reports the UUID "GPU-0" twice, expected one card per UUID',
    ),
    "a card without a name": (
        a_node("node-a", a_card("")),
        "node node-a reports a card without a UUID, expected one card per UUID",
    ),
    "no slots": (_with_card(slots=0), "node node-a: card GPU-0 reports slots 0, expected 1 to 10000"),
    "too many slots": (_with_card(slots=10_001), "node node-a: card GPU-0 reports slots 10001, expected 1 to 10000"),
    "no memory": (_with_card(memory_mib=0), "node node-a: card GPU-0 reports memory_mib 0, expected 1 to 16777216"),
    "too much memory": (
        _with_card(memory_mib=2**24 + 1),
        "node node-a: card GPU-0 reports memory_mib 16777217, expected 1 to 16777216",
    ),
    "no cores": (
        _with_card(cores_percent=0),
        "node node-a: card GPU-0 reports cores_percent 0, expected 1 to 10000",
    ),
    "too many cores": (
        _with_card(cores_percent=10_001),
        "node node-a: card GPU-0 reports cores_percent 10001, expected 1 to 10000",
    ),
    "a NUMA node that cannot be": (
        _with_card(numa=2**31),
        "node node-a: card GPU-0 reports numa 2147483648, expected -1 to 2147483647",
    ),
    "a link that cannot be": (
        a_node("node-a", a_card("GPU-0"), a_card("GPU-1"), links=[Link("GPU-0", "GPU-1", -1)]),
        "node node-a: link GPU-0 to GPU-1 reports score -1, expected 0 to 2147483647",
    ),
    "negative CPU": (
        a_node("node-a", cpu_milli=-1),
        f"node node-a reports cpu_milli -1, expected 0 to {2**62}",
    ),
    "negative memory": (
        a_node("node-a", memory_bytes=-1),
        f"node node-a reports memory_bytes -1, expected 0 to {2**62}",
    ),
    "negative places": (
        a_node("node-a", pods=-1),
        "node node-a reports pods -1, expected 0 to 2147483647",
    ),
}


@pytest.mark.parametrize(("node", "sentence"), NONSENSE.values(), ids=NONSENSE.keys())
def test_a_node_that_reports_nonsense_is_refused_and_its_former_state_stays(node: Node, sentence: str) -> None:
    ledger = Ledger()
    ledger.put_node(a_node("node-a", a_card("GPU-0"), a_card("GPU-1"), links=[Link("GPU-0", "GPU-1", 3)]))
    before, sequence, layout = figures(ledger), ledger.fleet.sequence, ledger.fleet.layout

    with pytest.raises(InvalidInventory) as refused:
        ledger.put_node(node)

    assert str(refused.value) == sentence
    assert figures(ledger) == before
    assert (ledger.fleet.sequence, ledger.fleet.layout) == (sequence, layout)


@pytest.mark.parametrize("node", [node for node, _ in NONSENSE.values()], ids=NONSENSE.keys())
def test_an_unknown_node_that_reports_nonsense_stays_unknown(node: Node) -> None:
    fleet = Fleet()

    with pytest.raises(InvalidInventory):
        fleet.put(node)

    assert len(fleet) == 0
    assert fleet.row_of == {}


def test_a_card_whose_numa_node_is_not_known_is_accepted() -> None:
    Fleet().put(_with_card(numa=-1))
