"""What a namespace may hold of a vendor's cards, before and after the cards are chosen."""

from tessera.engine.charges import NOTHING, Charge
from tessera.engine.ledger import Ledger
from tessera.engine.quota import check_allocation, check_request
from tessera.model.quotas import Limits
from tessera.model.refusals import Reason, Refusal
from tests.builders import a_card, a_node, a_pod, a_ref, a_share, a_sidecar, a_want, an_allocation, an_app, an_init
from tests.unit.engine.claims import a_claim_pod


def a_ledger() -> Ledger:
    ledger = Ledger()
    ledger.put_node(
        a_node(
            "node-a",
            a_card("GPU-0", memory_mib=16_000),
            a_card("GPU-1", memory_mib=8_000),
            a_card("MLU-0", vendor="MLU", model="MLU370", memory_mib=4_000),
        )
    )
    return ledger


def hold(ledger: Ledger, namespace: str, *shares: object) -> None:
    """A pod of one container with these cards is bound."""
    containers = tuple(shares)
    uid = f"uid-{len(ledger)}"
    ledger.adopt(a_ref(uid, namespace=namespace), a_pod(a_want()), an_allocation("node-a", containers))  # pyright: ignore[reportArgumentType]


def test_without_limits_nothing_is_refused() -> None:
    assert check_request(a_ledger(), "team", a_pod(a_want(1000)), {}) is None
    assert check_request(a_ledger(), "team", a_pod(a_want(1000)), {"NVIDIA": Limits()}) is None


def test_a_pod_that_would_pass_the_limit_is_refused_with_its_numbers() -> None:
    ledger = a_ledger()
    hold(ledger, "team", a_share("GPU-0", 3000))

    refusal = check_request(ledger, "team", a_pod(a_want(memory_mib=2000)), {"NVIDIA": Limits(memory_mib=4999)})

    assert refusal == Refusal(Reason.QUOTA, need=5000, have=4999, where="team", detail="NVIDIA memory_mib")


def test_a_pod_that_just_reaches_the_limit_is_let_through() -> None:
    ledger = a_ledger()
    hold(ledger, "team", a_share("GPU-0", 3000))

    assert check_request(ledger, "team", a_pod(a_want(memory_mib=2000)), {"NVIDIA": Limits(memory_mib=5000)}) is None


def test_every_card_of_a_request_counts() -> None:
    pod = a_pod(a_want(3, memory_mib=1000, cores_percent=20))

    assert check_request(a_ledger(), "team", pod, {"NVIDIA": Limits(cards=2)}) is not None
    assert check_request(a_ledger(), "team", pod, {"NVIDIA": Limits(memory_mib=2999)}) is not None
    assert check_request(a_ledger(), "team", pod, {"NVIDIA": Limits(cores_percent=59)}) is not None
    assert check_request(a_ledger(), "team", pod, {"NVIDIA": Limits(3, 3000, 60)}) is None


def test_a_limit_of_zero_blocks_whoever_asks_for_any() -> None:
    pod = a_pod(a_want(memory_mib=1))

    assert check_request(a_ledger(), "team", pod, {"NVIDIA": Limits(cards=0)}) is not None
    assert check_request(a_ledger(), "team", pod, {"NVIDIA": Limits(memory_mib=0)}) is not None


def test_a_limit_of_zero_does_not_touch_who_asks_for_none() -> None:
    pod = a_pod(a_want(memory_mib=1))

    assert check_request(a_ledger(), "team", pod, {"NVIDIA": Limits(cores_percent=0)}) is None
    assert check_request(a_ledger(), "team", pod, {"MLU": Limits(0, 0, 0)}) is None
    assert check_request(a_ledger(), "team", a_pod(), {"NVIDIA": Limits(0, 0, 0)}) is None


def test_a_namespace_already_over_its_limit_may_still_run_pods_that_ask_for_none_of_it() -> None:
    ledger = a_ledger()
    hold(ledger, "team", a_share("GPU-0", 3000, 50))

    assert check_request(ledger, "team", a_pod(a_want(memory_mib=1)), {"NVIDIA": Limits(cores_percent=10)}) is None


def test_other_namespaces_and_vendors_do_not_count() -> None:
    ledger = a_ledger()
    hold(ledger, "other", a_share("GPU-0", 3000))
    hold(ledger, "team", a_share("MLU-0", 3000, vendor="MLU"))

    assert ledger.held("team", "NVIDIA") == NOTHING
    assert check_request(ledger, "team", a_pod(a_want(memory_mib=100)), {"NVIDIA": Limits(memory_mib=100)}) is None


def test_the_first_vendor_by_name_is_named_when_several_limits_are_passed() -> None:
    pod = a_pod(an_app(a_want(), a_want(vendor="MLU")))

    refusal = check_request(a_ledger(), "team", pod, {"NVIDIA": Limits(cards=0), "MLU": Limits(cards=0)})

    assert refusal is not None
    assert refusal.detail == "MLU cards"


def test_an_init_container_counts_only_where_it_is_larger_than_what_follows() -> None:
    pod = a_pod(an_init(a_want(memory_mib=5000)), an_app(a_want(memory_mib=3000)), an_app(a_want(memory_mib=3000)))

    assert check_request(a_ledger(), "team", pod, {"NVIDIA": Limits(memory_mib=6000)}) is None
    assert check_request(a_ledger(), "team", pod, {"NVIDIA": Limits(memory_mib=5999)}) is not None


def test_an_init_container_counts_beside_the_sidecars_before_it() -> None:
    pod = a_pod(a_sidecar(a_want(memory_mib=1000)), an_init(a_want(memory_mib=5000)), an_app(a_want(memory_mib=100)))

    assert check_request(a_ledger(), "team", pod, {"NVIDIA": Limits(memory_mib=6000)}) is None
    refusal = check_request(a_ledger(), "team", pod, {"NVIDIA": Limits(memory_mib=5999)})
    assert refusal is not None
    assert refusal.need == 6000


def test_percentages_are_taken_of_the_smallest_card_until_one_is_chosen() -> None:
    pod = a_pod(a_want(2, memory_percent=50))

    assert check_request(a_ledger(), "team", pod, {"NVIDIA": Limits(memory_mib=8000)}) is None
    refusal = check_request(a_ledger(), "team", pod, {"NVIDIA": Limits(memory_mib=7999)})
    assert refusal is not None
    assert refusal.need == 8000


def test_percentages_of_a_vendor_without_cards_count_nothing_yet() -> None:
    assert check_request(Ledger(), "team", a_pod(a_want(memory_percent=50)), {"NVIDIA": Limits(memory_mib=1)}) is None


def test_chosen_cards_are_counted_exactly() -> None:
    pod = a_pod(a_want(memory_percent=50))
    allocation = an_allocation("node-a", a_share("GPU-0", 8000))

    assert check_allocation(a_ledger(), "team", pod, allocation, {"NVIDIA": Limits(memory_mib=8000)}) is None
    refusal = check_allocation(a_ledger(), "team", pod, allocation, {"NVIDIA": Limits(memory_mib=7999)})
    assert refusal == Refusal(Reason.QUOTA, need=8000, have=7999, where="team", detail="NVIDIA memory_mib")


def test_chosen_cards_of_another_vendor_are_not_counted() -> None:
    pod = a_pod(an_app(a_want(memory_mib=100), a_want(vendor="MLU", memory_mib=4000)))
    allocation = an_allocation("node-a", (a_share("GPU-0", 100), a_share("MLU-0", 4000, vendor="MLU")))

    assert check_allocation(a_ledger(), "team", pod, allocation, {"NVIDIA": Limits(1, 100, 0)}) is None


def test_a_claim_counts_with_all_of_its_cards_beside_what_containers_ask_for() -> None:
    alone, shared = (
        a_claim_pod(2),
        a_claim_pod(1, a_want(memory_mib=10), shared={"memory_mib": 500, "cores_percent": 5}),
    )

    assert check_request(a_ledger(), "team", alone, {"NVIDIA": Limits(2, 16_000, 200)}) is None
    assert check_request(a_ledger(), "team", alone, {"NVIDIA": Limits(cards=1)}) is not None
    assert check_request(a_ledger(), "team", alone, {"NVIDIA": Limits(memory_mib=15_999)}) is not None
    assert check_request(a_ledger(), "team", alone, {"NVIDIA": Limits(cores_percent=199)}) is not None
    assert check_request(a_ledger(), "team", alone, {"MLU": Limits(0, 0, 0)}) is None
    assert check_request(a_ledger(), "team", shared, {"NVIDIA": Limits(2, 510, 5)}) is None
    assert check_request(a_ledger(), "team", shared, {"NVIDIA": Limits(memory_mib=509)}) is not None


def test_an_exclusive_claim_counts_at_least_what_the_smallest_card_has() -> None:
    ledger = Ledger()
    ledger.put_node(a_node("node-a", a_card("GPU-0", cores_percent=80), a_card("GPU-1", cores_percent=120)))

    assert check_request(ledger, "team", a_claim_pod(1), {"NVIDIA": Limits(cores_percent=80)}) is None
    assert check_request(ledger, "team", a_claim_pod(1), {"NVIDIA": Limits(cores_percent=79)}) is not None


def test_the_peak_of_an_init_container_is_given_back_to_the_namespace_once_it_has_finished() -> None:
    ledger = a_ledger()
    pod = a_pod(an_init(a_want(memory_mib=5000)), an_app(a_want(memory_mib=1000)))
    ledger.adopt(
        a_ref("uid", namespace="team"),
        pod,
        an_allocation("node-a", a_share("GPU-0", 5000, 30), a_share("GPU-0", 1000, 10)),
    )
    assert ledger.held("team", "NVIDIA") == Charge(1, 5000, 30)

    ledger.settle("uid")

    assert ledger.held("team", "NVIDIA") == Charge(1, 1000, 10)
