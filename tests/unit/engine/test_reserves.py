"""Room kept for pods that few places can take."""

import numpy as np

from tessera.engine.landscape import ShapeTable
from tessera.engine.mix import Shape, shape_of
from tessera.engine.reserves import SIGMAS, Reserves, node_sorts
from tessera.model.requests import CardSelector
from tests.builders import GIB, a_card, a_node, a_pod, a_want
from tests.unit.engine.world import World


def a_world() -> World:
    """Two sorts of nodes: four with two A100, two with four T4."""
    large = [a_node(f"a{n}", *(a_card(f"a{n}-{c}") for c in range(2))) for n in range(4)]
    small = [a_node(f"t{n}", *(a_card(f"t{n}-{c}", model="T4") for c in range(4)), cpu_milli=8000) for n in range(2)]
    return World(*large, *small)


def whole(count: int, *, cpu_milli: int = 1000, types: tuple[str, ...] = ()) -> Shape:
    selector = CardSelector(use_types=types)
    want = a_want(count, memory_percent=100, cores_percent=100, selector=selector)
    return shape_of(a_pod(want, cpu_milli=cpu_milli, memory_bytes=GIB))


def plan(world: World, shapes: dict[Shape, float], live: dict[Shape, int] | None = None) -> Reserves:
    table = ShapeTable(world.ledger.fleet, list(shapes), list(shapes.values()), by_card=True)
    return Reserves.plan(world.ledger.fleet, table, shapes, live or {})


def test_nodes_are_sorted_by_what_they_are_made_of():
    sorts = node_sorts(a_world().ledger.fleet)

    assert [len(rows) for rows in sorts.values()] == [4, 2]


def test_shapes_that_the_same_nodes_can_hold_share_a_group():
    both, four, heavy = whole(2), whole(4), whole(2, cpu_milli=16_000)
    reserves = plan(a_world(), {whole(1): 0.7, both: 0.1, four: 0.1, heavy: 0.1})

    # a single card is nothing special; two cards fit both sorts, four only the T4 nodes, the heavy ones only the A100
    assert (reserves.membership > 0).tolist() == [
        [False, False, False],
        [True, False, False],
        [False, True, False],
        [False, False, True],
    ]


def test_only_the_shapes_that_most_arrivals_are_of_are_counted():
    often, rare = whole(2), whole(2, cpu_milli=2000)
    reserves = plan(a_world(), {often: 0.19, rare: 0.01, whole(1): 0.8})

    assert reserves.membership[:, 0].tolist() == [1.0, 0.0, 0.0]
    assert reserves.prices(np.array([0.0]))[0] == 2000


def test_the_price_of_a_place_rises_to_the_whole_pod_as_places_run_out():
    reserves = plan(a_world(), {whole(2): 0.5, whole(1): 0.5})
    prices = [float(reserves.prices(np.array([copies]))[0]) for copies in (0.0, 1.0, 4.0, 1000.0)]

    assert prices[0] == 2000
    assert prices == sorted(prices, reverse=True)
    assert prices[-1] == 0


def test_the_reserve_is_sized_by_what_usually_comes_or_by_what_is_live():
    world, pair = a_world(), whole(2)
    shapes = {pair: 0.25, whole(1): 0.75}
    usual = 16 * 1000 / 1250 * 0.25  # sixteen cards hold so many pods of the usual size, a quarter of them pairs
    quiet, busy = plan(world, shapes), plan(world, shapes, {pair: 100})

    assert quiet.prices(np.array([1.0]))[0] == np.float32(2000 * np.exp(-1 / (SIGMAS * usual**0.5)))
    assert busy.prices(np.array([1.0]))[0] == np.float32(2000 * np.exp(-1 / (SIGMAS * 100**0.5)))


def test_reserves_follow_live_pods_until_other_nodes_make_other_groups():
    world, pair, heavy = a_world(), whole(2), whole(2, cpu_milli=16_000)
    shapes = {pair: 0.5, heavy: 0.5}
    table = ShapeTable(world.ledger.fleet, list(shapes), list(shapes.values()), by_card=True)
    reserves = Reserves.plan(world.ledger.fleet, table, shapes, {})

    followed = reserves.follow(world.ledger.fleet, table, shapes, {pair: 500})
    assert followed is not None
    assert followed.prices(np.array([9.0, 9.0]))[0] > reserves.prices(np.array([9.0, 9.0]))[0]

    for name in ("t0", "t1"):  # now both shapes can only be on the A100 nodes
        world.ledger.drop_node(name)
    assert reserves.follow(world.ledger.fleet, table, shapes, {}) is None


def test_a_row_remembers_only_the_groups_that_could_be_on_it():
    world = a_world()
    reserves = plan(world, {whole(2): 0.4, whole(4): 0.3, whole(2, cpu_milli=16_000): 0.3})
    rows = np.array([world.ledger.fleet.row_of[name] for name in ("a0", "t0")])

    # pairs fit both sorts, fours the T4 nodes only, heavy pairs the A100 nodes only
    lost = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], np.float32)
    assert reserves.of_rows(rows, lost).tolist() == [[1.0, 3.0], [1.0, 2.0]]


def test_what_a_row_loses_costs_the_price_of_its_groups():
    world = a_world()
    reserves = plan(world, {whole(2): 0.4, whole(4): 0.3, whole(2, cpu_milli=16_000): 0.3})
    copies = np.array([1.0, 2.0, 3.0])
    lost = np.ones((len(world.ledger.fleet.alive), 2), np.float32)
    cost, prices = reserves.cost(lost, copies), reserves.prices(copies)

    assert cost is not None
    assert cost[world.ledger.fleet.row_of["a0"]] == np.float32(prices[0] + prices[2])
    assert cost[world.ledger.fleet.row_of["t0"]] == np.float32(prices[0] + prices[1])
    assert reserves.cost(lost, np.array([1e6, 1e6, 1e6])) is None
