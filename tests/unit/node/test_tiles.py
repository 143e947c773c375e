"""Tiles: what the kubelet may count as free is what the healthy cards have free."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tessera.model.devices import Device
from tessera.node.tiles import is_tile, judge_tiles, mount_point, tile_ids
from tests.builders import a_card, a_share
from tests.unit.node.making import a_tile


class Scene(NamedTuple):
    """Cards, and the card behind each tile in use; no card has more of them than slots."""

    cards: list[Device]
    card_of: dict[str, str]


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    cards = [
        a_card(f"GPU-{number}", slots=slots, healthy=healthy)
        for number, (slots, healthy) in enumerate(
            draw(st.lists(st.tuples(st.integers(1, 5), st.booleans()), min_size=1, max_size=6))
        )
    ]
    slots = [card.uuid for card in cards for _ in range(card.slots)]
    held = draw(st.permutations(slots))[: draw(st.integers(0, len(slots)))]
    ids = draw(st.permutations(tile_ids(cards)))
    return Scene(cards, dict(zip(ids, held, strict=False)))


@given(scenes())
def test_healthy_tiles_that_are_free_are_as_many_as_the_free_slots_of_healthy_cards(scene: Scene):
    judged = judge_tiles(*scene)
    free_slots = sum(card.slots - list(scene.card_of.values()).count(card.uuid) for card in scene.cards if card.healthy)
    assert sum(healthy for tile_id, healthy in judged.items() if tile_id not in scene.card_of) == free_slots


@given(scenes())
def test_a_tile_in_use_is_as_healthy_as_its_card(scene: Scene):
    judged = judge_tiles(*scene)
    healthy = {card.uuid: card.healthy for card in scene.cards}
    assert all(judged[tile_id] == healthy[uuid] for tile_id, uuid in scene.card_of.items())


@given(scenes())
def test_every_slot_has_a_tile_and_its_name_depends_on_nothing_but_their_number(scene: Scene):
    judged = judge_tiles(*scene)
    assert list(judged) == tile_ids(scene.cards) == [f"tile-{number}" for number in range(len(judged))]
    assert len(judged) == sum(card.slots for card in scene.cards)


def test_tiles_that_do_not_fit_their_card_make_nobody_else_ill():
    cards = [a_card("GPU-0", slots=1, healthy=False), a_card("GPU-1", slots=3)]
    judged = judge_tiles(cards, {"tile-0": "GPU-0", "tile-1": "GPU-0"})
    assert list(judged.values()) == [False, True, True, True]


def test_a_tile_of_a_card_that_is_not_here_any_more_counts_as_in_use():
    judged = judge_tiles([a_card("GPU-0", slots=2, healthy=False)], {"tile-0": "GPU-gone"})
    assert judged == {"tile-0": True, "tile-1": False}


def test_a_tile_whose_container_has_not_started_is_the_last_to_be_called_unhealthy():
    cards = [a_card("GPU-0", slots=2), a_card("GPU-1", slots=2, healthy=False)]
    assert judge_tiles(cards, {}, {"tile-3"}) == {"tile-0": True, "tile-1": False, "tile-2": False, "tile-3": True}


def test_a_node_without_cards_has_no_tiles():
    assert judge_tiles([], {}) == {}


def test_a_container_sees_its_tiles_of_each_vendor_in_a_place_that_is_known_as_such():
    assert is_tile(mount_point("NVIDIA"))
    assert mount_point("NVIDIA") != mount_point("AMD")
    assert not is_tile("/etc/tessera-else/nvidia")
    assert not is_tile("/usr/local/vgpu")


def test_the_first_id_of_a_tile_stands_for_the_first_card_that_the_container_sees():
    tile = a_tile("aa", a_share("GPU-7"), a_share("GPU-3"))
    assert tile.cards == {"tile-0": "GPU-7", "tile-1": "GPU-3"}
