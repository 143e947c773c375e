"""Who holds what: every promise of a card goes through here, and none half way."""

from typing import Any

import numpy as np
import pytest

from tessera.engine.charges import NOTHING, Charge
from tessera.engine.ledger import Ledger, Overcommitted, State, figures
from tessera.errors import LedgerConflict
from tessera.model.allocations import Allocation
from tessera.model.requests import PodRequest
from tests.builders import a_card, a_node, a_pod, a_ref, a_share, a_sidecar, a_want, an_allocation, an_app, an_init

FOREVER = float("inf")
ON_CARD = an_allocation("node-a", a_share("GPU-0", 1000, 10))
POD = a_pod(a_want(memory_mib=1000, cores_percent=10), cpu_milli=500, memory_bytes=2**20)


def a_ledger(*cards: Any, **host: Any) -> Ledger:
    ledger = Ledger()
    ledger.put_node(a_node("node-a", *(cards or (a_card("GPU-0"), a_card("GPU-1"))), **host))
    return ledger


def everything(ledger: Ledger) -> tuple[object, ...]:
    """All that a promise could change."""
    fleet = ledger.fleet
    rows = sorted(fleet.row_of.items())
    hosts = [
        (name, int(fleet.cpu_free[row]), int(fleet.memory_free[row]), int(fleet.pods_free[row])) for name, row in rows
    ]
    held = [
        (holding.ref, holding.allocation, holding.state, holding.expires_at, holding.initialised) for holding in ledger
    ]
    return figures(ledger), hosts, sorted(held, key=str), dict(ledger.live), dict(ledger._held)


def refused(ledger: Ledger, allocation: Allocation, request: PodRequest = POD, *, saying: str) -> None:
    """The reservation is refused, and leaves no trace."""
    before, sequence = everything(ledger), ledger.fleet.sequence
    with pytest.raises(LedgerConflict, match=saying):
        ledger.reserve(a_ref("refused"), request, allocation, expires_at=FOREVER)
    assert everything(ledger) == before
    assert ledger.fleet.sequence == sequence
    assert ledger.holding("refused") is None


def test_a_reservation_occupies_its_card_and_its_host() -> None:
    ledger = a_ledger(cpu_milli=4000, memory_bytes=2**30, pods=3)

    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=10.0)

    assert figures(ledger) == {
        ("node-a", "GPU-0"): Charge(9, 15_384, 90),
        ("node-a", "GPU-1"): Charge(10, 16_384, 100),
    }
    row = ledger.fleet.row_of["node-a"]
    assert ledger.fleet.cpu_free[row] == 3500
    assert ledger.fleet.memory_free[row] == 2**30 - 2**20
    assert ledger.fleet.pods_free[row] == 2


def test_a_reservation_is_found_by_its_pod_and_its_node() -> None:
    ledger = a_ledger()

    ledger.reserve(a_ref("uid"), POD, ON_CARD, expires_at=10.0)

    holding = ledger.holding("uid")
    assert holding is not None
    assert (holding.ref, holding.allocation, holding.state) == (a_ref("uid"), ON_CARD, State.RESERVED)
    assert list(ledger.holdings_on("node-a")) == [holding] == list(ledger)
    assert list(ledger.holdings_on("node-b")) == []
    assert len(ledger) == 1


def test_the_same_reservation_again_renews_and_charges_once() -> None:
    ledger = a_ledger()
    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=10.0)
    before = figures(ledger)

    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=20.0)

    assert figures(ledger) == before
    assert ledger.expire(10.0) == []
    assert ledger.expire(20.0) == [a_ref()]


def test_a_renewal_never_shortens() -> None:
    ledger = a_ledger()
    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=20.0)

    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=10.0)

    assert ledger.expire(19.0) == []


def test_a_binding_does_not_expire_because_its_reservation_is_repeated() -> None:
    ledger = a_ledger()
    ledger.adopt(a_ref(), POD, ON_CARD)

    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=10.0)

    assert ledger.expire(1e9) == []
    assert ledger.holding("uid-1").state is State.BOUND  # pyright: ignore[reportOptionalMemberAccess]


def test_another_reservation_for_the_same_pod_is_refused() -> None:
    ledger = a_ledger()
    ledger.reserve(a_ref("uid"), POD, ON_CARD, expires_at=10.0)
    before = everything(ledger)

    with pytest.raises(LedgerConflict, match="already holds cards on node-a"):
        ledger.reserve(a_ref("uid"), POD, an_allocation("node-a", a_share("GPU-1", 1000, 10)), expires_at=10.0)

    assert everything(ledger) == before


def test_a_card_without_a_free_slot_is_refused() -> None:
    ledger = a_ledger(a_card("GPU-0", slots=1))
    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=FOREVER)

    refused(ledger, ON_CARD, saying=r"has \(0, 15384, 90\) free")


def test_two_containers_that_need_two_slots_of_one_are_refused() -> None:
    refused(
        a_ledger(a_card("GPU-0", slots=1)),
        an_allocation("node-a", a_share("GPU-0"), a_share("GPU-0")),
        a_pod(a_want(), a_want()),
        saying=r"\(2, 0, 0\) wanted",
    )


def test_one_mebibyte_too_much_is_refused() -> None:
    refused(a_ledger(), an_allocation("node-a", a_share("GPU-0", 16_385)), saying="16385, 0.* wanted")


def test_all_the_memory_is_granted() -> None:
    ledger = a_ledger()

    ledger.reserve(a_ref(), POD, an_allocation("node-a", a_share("GPU-0", 16_384)), expires_at=FOREVER)

    assert figures(ledger)["node-a", "GPU-0"] == Charge(9, 0, 100)


def test_one_percent_of_cores_too_much_is_refused() -> None:
    ledger = a_ledger()
    ledger.reserve(a_ref(), POD, an_allocation("node-a", a_share("GPU-0", 0, 50)), expires_at=FOREVER)

    refused(ledger, an_allocation("node-a", a_share("GPU-0", 0, 51)), saying="51.* wanted")


def test_the_cores_can_be_shared_out_to_the_last() -> None:
    ledger = a_ledger()
    half = an_allocation("node-a", a_share("GPU-0", 0, 50))

    ledger.reserve(a_ref("uid-1"), POD, half, expires_at=FOREVER)
    ledger.reserve(a_ref("uid-2"), POD, half, expires_at=FOREVER)

    assert figures(ledger)["node-a", "GPU-0"].cores_percent == 0


def test_a_card_without_cores_left_takes_nobody_even_without_cores() -> None:
    ledger = a_ledger()
    half = an_allocation("node-a", a_share("GPU-0", 0, 50))
    ledger.reserve(a_ref("uid-1"), POD, half, expires_at=FOREVER)
    ledger.reserve(a_ref("uid-2"), POD, half, expires_at=FOREVER)

    refused(ledger, an_allocation("node-a", a_share("GPU-0", 100, 0)), saying="no cores left")


def test_who_wants_all_cores_gets_no_shared_card() -> None:
    ledger = a_ledger()
    ledger.reserve(a_ref(), POD, an_allocation("node-a", a_share("GPU-0", 100, 0)), expires_at=FOREVER)

    refused(ledger, an_allocation("node-a", a_share("GPU-0", 100, 100)), saying="is shared")


def test_all_cores_of_a_small_card_are_fewer_than_a_hundred() -> None:
    ledger = a_ledger(a_card("GPU-0", cores_percent=50))
    ledger.reserve(a_ref(), POD, an_allocation("node-a", a_share("GPU-0", 100, 0)), expires_at=FOREVER)

    refused(ledger, an_allocation("node-a", a_share("GPU-0", 100, 50)), saying="is shared")


def test_an_init_container_that_wants_all_cores_gets_no_shared_card_either() -> None:
    ledger = a_ledger()
    ledger.reserve(a_ref(), POD, an_allocation("node-a", a_share("GPU-0", 100, 0)), expires_at=FOREVER)

    refused(
        ledger,
        an_allocation("node-a", a_share("GPU-0", 100, 100), a_share("GPU-0", 100, 0)),
        a_pod(an_init(a_want()), an_app(a_want())),
        saying="is shared",
    )


def test_nobody_joins_who_has_all_cores() -> None:
    ledger = a_ledger()
    ledger.reserve(a_ref(), POD, an_allocation("node-a", a_share("GPU-0", 100, 100)), expires_at=FOREVER)

    refused(ledger, an_allocation("node-a", a_share("GPU-0", 100, 0)), saying="no cores left")


def test_an_unhealthy_card_is_refused() -> None:
    refused(a_ledger(a_card("GPU-0", healthy=False)), ON_CARD, saying="unhealthy or cordoned")


def test_a_cordoned_card_is_refused() -> None:
    refused(a_ledger(a_card("GPU-0"), cordoned=["GPU-0"]), ON_CARD, saying="unhealthy or cordoned")


def test_a_card_that_the_node_does_not_have_is_refused() -> None:
    refused(a_ledger(), an_allocation("node-a", a_share("GPU-9")), saying="card GPU-9 is not on node node-a")


def test_an_unknown_node_is_refused() -> None:
    refused(a_ledger(), an_allocation("node-b", a_share("GPU-0")), saying="node node-b is not known")


def test_a_node_that_left_is_refused() -> None:
    ledger = a_ledger()
    ledger.drop_node("node-a")

    refused(ledger, ON_CARD, saying="node node-a is not known")


@pytest.mark.parametrize(
    "host", [{"cpu_milli": 499}, {"memory_bytes": 2**20 - 1}, {"pods": 0}], ids=["cpu", "memory", "places"]
)
def test_a_host_without_room_is_refused(host: dict[str, int]) -> None:
    refused(a_ledger(**host), ON_CARD, saying="no room left")


def test_a_host_with_just_enough_room_takes_the_pod() -> None:
    ledger = a_ledger(cpu_milli=500, memory_bytes=2**20, pods=1)

    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=FOREVER)

    refused(ledger, ON_CARD, a_pod(), saying="no room left")


def test_a_refusal_on_the_second_card_leaves_the_first_untouched() -> None:
    ledger = a_ledger(a_card("GPU-0"), a_card("GPU-1", memory_mib=100))
    both = an_allocation("node-a", (a_share("GPU-0", 1000), a_share("GPU-1", 1000)))

    refused(ledger, both, a_pod(a_want(2, memory_mib=1000)), saying="GPU-1")


def test_a_pod_without_cards_takes_its_place_on_the_host() -> None:
    ledger = a_ledger(pods=1)

    ledger.reserve(a_ref(), a_pod(cpu_milli=1), an_allocation("node-a"), expires_at=FOREVER)

    refused(ledger, an_allocation("node-a"), a_pod(), saying="no room left")


def test_a_committed_reservation_no_longer_expires() -> None:
    ledger = a_ledger()
    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=10.0)

    ledger.commit("uid-1")

    assert ledger.expire(1e9) == []
    assert ledger.holding("uid-1").state is State.BOUND  # pyright: ignore[reportOptionalMemberAccess]


@pytest.mark.parametrize("verb", ["commit", "drain", "settle"])
def test_who_holds_nothing_has_nothing_to_change(verb: str) -> None:
    with pytest.raises(LedgerConflict, match="pod nobody holds nothing, expected a reservation or a binding"):
        getattr(a_ledger(), verb)("nobody")


def test_a_late_answer_to_a_bind_does_not_revive_a_pod_that_is_draining() -> None:
    ledger = a_ledger()
    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=10.0)
    ledger.drain("uid-1")

    ledger.commit("uid-1")

    assert ledger.holding("uid-1").state is State.DRAINING  # pyright: ignore[reportOptionalMemberAccess]


def test_released_cards_are_free_again_and_leave_no_trace() -> None:
    ledger = a_ledger()
    before = everything(ledger)
    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=10.0)

    ledger.release("uid-1")

    assert everything(ledger) == before
    assert list(ledger.holdings_on("node-a")) == []
    assert ledger._interned == {}


def test_releasing_one_pod_leaves_its_neighbour() -> None:
    ledger = a_ledger()
    ledger.reserve(a_ref("uid-1"), POD, ON_CARD, expires_at=10.0)
    ledger.reserve(a_ref("uid-2"), POD, ON_CARD, expires_at=10.0)

    ledger.release("uid-1")

    assert figures(ledger)["node-a", "GPU-0"] == Charge(9, 15_384, 90)
    assert [holding.ref.uid for holding in ledger.holdings_on("node-a")] == ["uid-2"]
    assert ledger.live == {POD: 1}


def test_releasing_twice_frees_once() -> None:
    ledger = a_ledger()
    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=10.0)

    ledger.release("uid-1")
    ledger.release("uid-1")

    assert figures(ledger)["node-a", "GPU-0"] == Charge(10, 16_384, 100)


def test_only_reservations_whose_time_has_come_expire() -> None:
    ledger = a_ledger()
    for uid, expires_at in (("early", 10.0), ("late", 10.1)):
        ledger.reserve(a_ref(uid), POD, ON_CARD, expires_at=expires_at)
    ledger.adopt(a_ref("bound"), POD, ON_CARD)

    assert ledger.expire(9.9) == []
    assert ledger.expire(10.0) == [a_ref("early")]

    assert {holding.ref.uid for holding in ledger} == {"late", "bound"}
    assert figures(ledger)["node-a", "GPU-0"] == Charge(8, 14_384, 80)


def test_a_draining_pod_keeps_its_cards_until_it_is_released() -> None:
    ledger = a_ledger()
    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=10.0)
    held = figures(ledger)

    ledger.drain("uid-1")

    assert ledger.expire(1e9) == []
    assert figures(ledger) == held
    ledger.release("uid-1")
    assert figures(ledger)["node-a", "GPU-0"] == Charge(10, 16_384, 100)


def test_what_only_init_containers_needed_is_free_once_they_have_finished() -> None:
    ledger = a_ledger()
    pod = a_pod(a_sidecar(a_want()), an_init(a_want()), an_app(a_want()))
    allocation = an_allocation(
        "node-a", a_share("GPU-0", 1000, 10), a_share("GPU-1", 8000, 80), a_share("GPU-0", 100, 10)
    )
    ledger.reserve(a_ref(), pod, allocation, expires_at=FOREVER)
    assert figures(ledger)["node-a", "GPU-1"] == Charge(9, 8384, 20)

    ledger.settle("uid-1")
    ledger.settle("uid-1")

    assert figures(ledger) == {
        ("node-a", "GPU-0"): Charge(8, 15_284, 80),
        ("node-a", "GPU-1"): Charge(10, 16_384, 100),
    }


def test_a_settled_pod_gives_back_what_it_still_holds() -> None:
    ledger = a_ledger()
    before = everything(ledger)
    ledger.reserve(
        a_ref(),
        a_pod(an_init(a_want()), an_app(a_want())),
        an_allocation("node-a", a_share("GPU-0", 8000, 80), a_share("GPU-0", 100, 10)),
        expires_at=FOREVER,
    )
    ledger.settle("uid-1")

    ledger.release("uid-1")

    assert everything(ledger) == before


def test_a_settled_pod_stays_settled_when_its_node_registers_again() -> None:
    ledger = a_ledger()
    ledger.reserve(
        a_ref(),
        a_pod(an_init(a_want()), an_app(a_want())),
        an_allocation("node-a", a_share("GPU-0", 8000, 80), a_share("GPU-0", 100, 10)),
        expires_at=FOREVER,
    )
    ledger.settle("uid-1")

    ledger.put_node(a_node("node-a", a_card("GPU-0")))

    assert figures(ledger) == {("node-a", "GPU-0"): Charge(9, 16_284, 90)}


def test_a_binding_that_the_api_server_shows_is_recorded_even_where_it_overcommits() -> None:
    ledger = a_ledger(a_card("GPU-0", slots=1, memory_mib=1500), pods=1)
    ledger.adopt(a_ref("uid-1"), POD, ON_CARD)

    ledger.adopt(a_ref("uid-2"), POD, ON_CARD)

    assert figures(ledger)["node-a", "GPU-0"] == Charge(-1, -500, 80)
    assert ledger.overcommitted() == [Overcommitted("node-a", "GPU-0", Charge(1, 500, 0))]
    refused(ledger, ON_CARD, saying="no room left")


def test_a_fleet_within_its_means_has_no_overcommitted_card() -> None:
    ledger = a_ledger(a_card("GPU-0", slots=1, memory_mib=1000, cores_percent=10))

    ledger.adopt(a_ref(), POD, ON_CARD)

    assert ledger.overcommitted() == []


def test_absurd_claims_never_make_a_card_or_a_host_look_free() -> None:
    ledger = a_ledger(a_card("GPU-0"))
    most = 2**31 - 1
    pod = a_pod(a_want(), a_want(), cpu_milli=2**63 - 1, memory_bytes=2**63 - 1)

    for number in range(100):
        absurd = an_allocation("node-a", a_share("GPU-0", most, most), a_share("GPU-0", most, most))
        ledger.adopt(a_ref(f"uid-{number}"), pod, absurd)
        free, row = figures(ledger)["node-a", "GPU-0"], ledger.fleet.row_of["node-a"]
        assert free.memory_mib < 0
        assert free.cores_percent < 0
        assert ledger.fleet.cpu_free[row] < 0
        assert ledger.fleet.memory_free[row] < 0
        assert [found.uuid for found in ledger.overcommitted()] == ["GPU-0"]
    for number in range(100):
        ledger.release(f"uid-{number}")

    assert everything(ledger) == everything(a_ledger(a_card("GPU-0")))


def test_an_absurd_claim_is_refused_even_on_the_largest_card() -> None:
    refused(
        a_ledger(a_card("GPU-0", memory_mib=2**24)),
        an_allocation("node-a", a_share("GPU-0", 2**31 - 1)),
        saying="wanted",
    )


def test_an_overcommitted_card_is_forgotten_with_its_node_and_known_again_when_it_returns() -> None:
    ledger = a_ledger(a_card("GPU-0", memory_mib=600))
    ledger.adopt(a_ref(), POD, ON_CARD)

    ledger.drop_node("node-a")
    assert ledger.overcommitted() == []
    ledger.put_node(a_node("node-a", a_card("GPU-0", memory_mib=600)))

    assert ledger.overcommitted() == [Overcommitted("node-a", "GPU-0", Charge(0, 400, 0))]


def test_an_adopted_reservation_is_bound() -> None:
    ledger = a_ledger()
    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=10.0)
    held = figures(ledger)

    ledger.adopt(a_ref(), POD, ON_CARD)

    assert figures(ledger) == held
    assert ledger.expire(1e9) == []


def test_a_binding_seen_twice_is_charged_once_and_stays_settled() -> None:
    ledger = a_ledger()
    ledger.adopt(a_ref(), POD, ON_CARD)
    ledger.settle("uid-1")
    before = everything(ledger)

    ledger.adopt(a_ref(), POD, ON_CARD)

    assert everything(ledger) == before


def test_a_binding_elsewhere_than_we_thought_moves_the_charge() -> None:
    ledger = a_ledger()
    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=10.0)

    ledger.adopt(a_ref(), POD, an_allocation("node-b", a_share("GPU-7", 1000, 10)))

    assert figures(ledger)["node-a", "GPU-0"] == Charge(10, 16_384, 100)
    assert [holding.ref.uid for holding in ledger.holdings_on("node-b")] == ["uid-1"]
    assert list(ledger.holdings_on("node-a")) == []


def test_a_binding_with_another_request_is_charged_anew() -> None:
    ledger = a_ledger(cpu_milli=4000)
    ledger.adopt(a_ref(), POD, ON_CARD)

    ledger.adopt(a_ref(), a_pod(a_want(), cpu_milli=3000), ON_CARD)

    assert ledger.fleet.cpu_free[ledger.fleet.row_of["node-a"]] == 1000
    assert ledger.live == {a_pod(a_want(), cpu_milli=3000): 1}


def test_a_pod_seen_before_its_node_is_charged_when_the_node_appears() -> None:
    ledger = Ledger()
    ledger.adopt(a_ref(), POD, ON_CARD)
    assert figures(ledger) == {}
    assert ledger.held("default", "NVIDIA") == Charge(1, 1000, 10)

    ledger.put_node(a_node("node-a", a_card("GPU-0"), cpu_milli=4000))

    assert figures(ledger) == {("node-a", "GPU-0"): Charge(9, 15_384, 90)}
    assert ledger.fleet.cpu_free[ledger.fleet.row_of["node-a"]] == 3500


def test_a_pod_that_left_before_its_node_appeared_is_not_charged() -> None:
    ledger = Ledger()
    ledger.adopt(a_ref(), POD, ON_CARD)
    ledger.release("uid-1")

    ledger.put_node(a_node("node-a", a_card("GPU-0")))

    assert figures(ledger) == {("node-a", "GPU-0"): Charge(10, 16_384, 100)}
    assert ledger.held("default", "NVIDIA") == NOTHING


def test_cards_reported_in_another_order_keep_their_holders() -> None:
    ledger = a_ledger(a_card("GPU-0"), a_card("GPU-1", memory_mib=8000))
    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=FOREVER)
    before = figures(ledger)

    ledger.put_node(a_node("node-a", a_card("GPU-1", memory_mib=8000), a_card("GPU-0")))

    assert figures(ledger) == before


def test_a_card_that_vanished_is_charged_again_when_it_is_back() -> None:
    ledger = a_ledger()
    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=FOREVER)
    before = figures(ledger)

    ledger.put_node(a_node("node-a", a_card("GPU-1")))
    assert figures(ledger) == {("node-a", "GPU-1"): Charge(10, 16_384, 100)}
    ledger.put_node(a_node("node-a", a_card("GPU-0"), a_card("GPU-1")))

    assert figures(ledger) == before


def test_a_pod_released_while_its_card_was_away_holds_nothing_when_it_is_back() -> None:
    ledger = a_ledger()
    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=FOREVER)
    ledger.put_node(a_node("node-a", a_card("GPU-1")))

    ledger.release("uid-1")
    ledger.put_node(a_node("node-a", a_card("GPU-0"), a_card("GPU-1")))

    assert figures(ledger)["node-a", "GPU-0"] == Charge(10, 16_384, 100)


def test_a_card_that_shrank_is_overcommitted() -> None:
    ledger = a_ledger()
    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=FOREVER)

    ledger.put_node(a_node("node-a", a_card("GPU-0", memory_mib=600, cores_percent=5)))

    assert ledger.overcommitted() == [Overcommitted("node-a", "GPU-0", Charge(0, 400, 5))]


def test_a_node_that_was_dropped_and_is_back_has_its_holders_still() -> None:
    ledger = a_ledger()
    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=FOREVER)
    before = everything(ledger)

    ledger.drop_node("node-a")
    assert figures(ledger) == {}
    ledger.put_node(a_node("node-a", a_card("GPU-0"), a_card("GPU-1")))

    assert everything(ledger) == before


def test_a_pod_released_while_its_node_was_away_does_not_charge_who_took_the_row() -> None:
    ledger = a_ledger()
    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=FOREVER)
    ledger.drop_node("node-a")
    ledger.put_node(a_node("node-b", a_card("GPU-0")))

    ledger.release("uid-1")

    assert figures(ledger) == {("node-b", "GPU-0"): Charge(10, 16_384, 100)}


def test_dropping_an_unknown_node_changes_nothing() -> None:
    ledger = a_ledger()
    before = everything(ledger)

    ledger.drop_node("node-z")

    assert everything(ledger) == before


def test_cards_of_two_nodes_may_bear_one_name() -> None:
    ledger = a_ledger()
    ledger.put_node(a_node("node-b", a_card("GPU-0")))

    ledger.reserve(a_ref(), POD, ON_CARD, expires_at=FOREVER)

    assert figures(ledger)["node-b", "GPU-0"] == Charge(10, 16_384, 100)


def test_what_a_namespace_holds_is_counted_by_vendor() -> None:
    ledger = a_ledger(a_card("GPU-0"), a_card("MLU-0", vendor="MLU"))
    both = an_allocation("node-a", (a_share("GPU-0", 1000, 10), a_share("MLU-0", 200, 20, vendor="MLU")))

    ledger.reserve(a_ref(namespace="team"), POD, both, expires_at=FOREVER)

    assert ledger.held("team", "NVIDIA") == Charge(1, 1000, 10)
    assert ledger.held("team", "MLU") == Charge(1, 200, 20)
    assert ledger.held("default", "NVIDIA") == NOTHING


def test_every_promise_stamps_its_row_so_that_caches_look_again() -> None:
    ledger = a_ledger()
    row = ledger.fleet.row_of["node-a"]
    stamps = [int(ledger.fleet.changed_at[row])]

    for change in (
        lambda: ledger.reserve(a_ref(), POD, ON_CARD, expires_at=FOREVER),
        lambda: ledger.settle("uid-1"),
        lambda: ledger.release("uid-1"),
    ):
        change()
        stamps.append(int(ledger.fleet.changed_at[row]))

    assert np.all(np.diff(stamps) > 0)
