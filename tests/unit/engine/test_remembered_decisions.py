"""A decider remembers what it found out about a request; whatever changes since must be seen."""

import pytest

from tessera.engine.deciding import Decider
from tessera.engine.ledger import Ledger
from tessera.engine.policies import PolicyBook
from tessera.model.devices import Node
from tessera.model.requests import PodRequest, PolicyChoice
from tests.builders import a_card, a_node, a_pod, a_ref, a_want, an_allocation, an_app, an_init

BINPACK = PolicyChoice(node="binpack", cards=("binpack",))
FOREVER = float("inf")


def a_decider(*nodes: Node) -> tuple[Ledger, Decider]:
    ledger = Ledger()
    for node in nodes:
        ledger.put_node(node)
    return ledger, Decider(ledger, PolicyBook(ledger.fleet, ledger.live))


def place(ledger: Ledger, decider: Decider, request: PodRequest, uid: str) -> str | None:
    allocation = decider.choose(request)
    if allocation is None:
        return None
    ledger.reserve(a_ref(uid), request, allocation, expires_at=FOREVER)
    return allocation.node


def test_a_single_change_since_the_last_question_is_seen() -> None:
    ledger, decider = a_decider(a_node("node-a", a_card("GPU-0", slots=1)), a_node("node-b", a_card("GPU-0", slots=1)))
    pod = a_pod(a_want(), policy=BINPACK)

    assert [place(ledger, decider, pod, f"uid-{number}") for number in range(3)] == ["node-a", "node-b", None]


def test_a_released_card_is_offered_again() -> None:
    ledger, decider = a_decider(a_node("node-a", a_card("GPU-0", slots=1)))
    pod = a_pod(a_want(), policy=BINPACK)
    assert [place(ledger, decider, pod, uid) for uid in ("one", "two")] == ["node-a", None]

    ledger.release("one")

    assert place(ledger, decider, pod, "two") == "node-a"


@pytest.mark.parametrize("more", [1, 15, 16, 60])
def test_nodes_that_come_later_are_offered_however_many(more: int) -> None:
    ledger, decider = a_decider(a_node("node-z", a_card("GPU-0")))
    pod = a_pod(a_want(), policy=BINPACK)
    decider.candidates(pod)

    for number in range(more):
        ledger.put_node(a_node(f"node-{number}", a_card("GPU-0")))

    assert len(decider.candidates(pod).rows) == 1 + more


def test_a_node_that_left_takes_no_pod_not_even_one_without_cards() -> None:
    ledger, decider = a_decider(a_node("node-a", a_card("GPU-0")))
    pod = a_pod(cpu_milli=1, policy=BINPACK)
    assert decider.choose(pod) == an_allocation("node-a")

    ledger.drop_node("node-a")

    assert decider.choose(pod) is None
    assert decider.allocate(pod, 0) is None


def test_a_node_that_is_no_longer_ready_is_not_offered() -> None:
    ledger, decider = a_decider(a_node("node-a", a_card("GPU-0")))
    pod = a_pod(a_want(), policy=BINPACK)
    assert decider.choose(pod) is not None

    ledger.put_node(a_node("node-a", a_card("GPU-0"), ready=False))

    assert decider.choose(pod) is None


def test_a_card_that_fell_ill_is_not_offered_until_it_is_well() -> None:
    ledger, decider = a_decider(a_node("node-a", a_card("GPU-0")))
    pod = a_pod(a_want(), policy=BINPACK)
    assert decider.choose(pod) is not None

    ledger.put_node(a_node("node-a", a_card("GPU-0", healthy=False)))
    assert decider.choose(pod) is None
    ledger.put_node(a_node("node-a", a_card("GPU-0")))

    assert decider.choose(pod) is not None


def test_who_wants_all_cores_is_not_offered_a_card_that_someone_without_cores_uses() -> None:
    ledger, decider = a_decider(a_node("node-a", a_card("GPU-0")))
    place(ledger, decider, a_pod(a_want(memory_mib=100), policy=BINPACK), "small")

    assert decider.choose(a_pod(a_want(cores_percent=100), policy=BINPACK)) is None


def test_the_peak_of_an_init_container_counts_when_nodes_are_compared() -> None:
    """Binpack prefers the node that the pod fills most, its init container included."""
    ledger, decider = a_decider(
        a_node("node-a", a_card("GPU-0", memory_mib=16_000)), a_node("node-b", a_card("GPU-0", memory_mib=16_000))
    )
    place(ledger, decider, a_pod(a_want(memory_mib=9_000), policy=PolicyChoice(node="spread", cards=("spread",))), "x")
    peak = a_pod(an_init(a_want(memory_mib=8_000)), an_app(a_want(memory_mib=1_000)), policy=BINPACK)

    rows, scores = decider.candidates(peak)
    flat = a_pod(an_app(a_want(memory_mib=8_000)), policy=BINPACK)

    assert scores.tolist() == decider.candidates(flat).scores.tolist()
    assert [ledger.fleet.names[int(row)] for row in rows] == ["node-b"]
