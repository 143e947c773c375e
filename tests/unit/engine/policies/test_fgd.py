"""FGD: where the fragment grows least, against its description worked out the slow way."""

from collections import Counter
from math import exp, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.model.requests import PodRequest, PolicyChoice
from tests.builders import a_card, a_node, a_pod, a_want
from tests.unit.engine.world import World

FGD = PolicyChoice(node="fgd", cards=("fgd",))


def fraction(percent: int, cpu: int = 1000) -> PodRequest:
    return a_pod(a_want(1, memory_mib=10 * percent), cpu_milli=cpu, policy=FGD)


def whole(count: int, cpu: int = 1000) -> PodRequest:
    return a_pod(a_want(count, memory_mib=1000), cpu_milli=cpu, policy=FGD)


def without_cards(cpu: int = 1000) -> PodRequest:
    return a_pod(cpu_milli=cpu, policy=FGD)


cpus = st.sampled_from([500, 1000, 4000, 9000])
wanted = st.one_of(
    st.builds(fraction, st.integers(1, 99), cpus),
    st.builds(whole, st.integers(1, 4), cpus),
    st.builds(without_cards, cpus),
)
boards = st.lists(st.lists(st.integers(0, 100), min_size=1, max_size=4), min_size=1, max_size=4)


def fragment(free: list[int], cpu: int, seen: Counter) -> float:
    """Idle milli-GPU that the shapes cannot use: all of it where a shape does not fit, else that on too small cards."""
    total, idle = 0.0, 10 * sum(free)
    for request, often in seen.items():
        device = request.containers[0].devices[0] if request.containers else None
        if device is None:
            lost = idle
        else:
            share = device.memory_mib // 10
            fits = sum(percent >= share for percent in free) >= device.count and cpu >= request.host.cpu_milli
            lost = 10 * sum(percent for percent in free if percent < share) if fits else idle
        total += often / seen.total() * lost
    return total


def points(before: float, after: float) -> int:
    return floor(100 / (1 + exp((after - before) / 1000)) + 1e-3)


@given(boards, st.lists(wanted, min_size=1, max_size=9), wanted, st.integers(0, 12_000))
def test_nodes_and_cards_score_as_described(boards, studied, request, cpu):
    world = World(
        *(
            a_node(
                f"n{row}", *(a_card(f"{row}-{column}", memory_mib=1000) for column in range(len(board))), cpu_milli=cpu
            )
            for row, board in enumerate(boards)
        )
    )
    for row, board in enumerate(boards):
        for column, percent in enumerate(board):
            world.hold(f"n{row}", f"{row}-{column}", memory_mib=10 * percent)
    world.book.fgd.study(studied)
    seen = Counter(studied)
    for name, score in world.scores(request).items():
        row = int(name[1:])
        free = [100 - percent for percent in boards[row]]
        best, card = best_placement(free, cpu, request, seen)
        assert abs(score - best) <= near_a_whole_point(free, cpu, request, seen)
        allocation = world.decider.allocate(request, row)
        assert allocation is not None
        if card is not None and near_a_whole_point(free, cpu, request, seen) == 0:
            assert [share.uuid for share in allocation.shares] == [f"{row}-{card}"]


def placements(free: list[int], request: PodRequest) -> list[tuple[int | None, list[int]]]:
    """What would be free for each card that a fraction could take, or with the leftmost whole cards taken."""
    if not request.containers:
        return [(None, free)]
    device = request.containers[0].devices[0]
    share = device.memory_mib // 10
    if share < 100:
        cards = [card for card, percent in enumerate(free) if percent >= share]
        return [(card, [*free[:card], free[card] - share, *free[card + 1 :]]) for card in cards]
    idle = [card for card, percent in enumerate(free) if percent == 100][: device.count]
    return [(None, [0 if card in idle else percent for card, percent in enumerate(free)])]


def best_placement(free: list[int], cpu: int, request: PodRequest, seen: Counter) -> tuple[int, int | None]:
    before = fragment(free, cpu, seen)
    scored = [
        (points(before, fragment(after, cpu - request.host.cpu_milli, seen)), card)
        for card, after in placements(free, request)
    ]
    return max(scored, key=lambda item: item[0])


def near_a_whole_point(free: list[int], cpu: int, request: PodRequest, seen: Counter) -> int:
    """One point may go either way where single precision stands at its edge."""
    before = fragment(free, cpu, seen)
    for _, after in placements(free, request):
        exact = 100 / (1 + exp((fragment(after, cpu - request.host.cpu_milli, seen) - before) / 1000)) + 1e-3
        if abs(exact - round(exact)) < 5e-4:
            return 1
    return 0


def test_a_pod_goes_where_it_leaves_the_least_that_nobody_wants():
    """Half a card is wanted: beside another half nothing is stranded, on the 60 left over 10 would be."""
    world = World(a_node("a", a_card("A", memory_mib=1000)), a_node("b", a_card("B", memory_mib=1000)))
    world.hold("a", "A", memory_mib=400)
    world.hold("b", "B", memory_mib=500)
    world.book.fgd.study([fraction(50)])
    assert world.node(fraction(50)) == "b"


@pytest.mark.parametrize("studied", [[], [without_cards()]], ids=["nothing", "pods without cards"])
def test_it_decides_whatever_it_has_studied(studied):
    world = World(a_node("a", a_card("A")), default=FGD)
    world.book.fgd.study(studied)
    assert world.node(a_pod(a_want())) == "a"


def test_a_request_that_rounds_up_into_a_gap_that_rounds_down_stays_on_its_card():
    """101 of 1000 MiB are 11 percent, the 109 that are free are 10: taking them must not look like another kind."""
    other = a_card("X", vendor="DCU")
    world = World(a_node("a", other), a_node("n", a_card("A", memory_mib=1000), a_card("B", memory_mib=1000)))
    world.hold("n", "A", memory_mib=891)
    world.hold("n", "B", memory_mib=100)
    world.book.fgd.study([fraction(90), fraction(11)])
    pod = a_pod(a_want(memory_mib=101), policy=FGD)
    assert world.cards(pod) == [["A"]]
