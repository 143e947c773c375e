"""What a pod's allocation costs each card, as Kubernetes counts containers (KEP-753)."""

from tessera.engine.charges import Charge, charges_of, total_of
from tessera.model.requests import Role
from tests.builders import a_share, an_allocation


def test_app_containers_on_one_card_add_up() -> None:
    allocation = an_allocation("node-a", a_share("GPU-0", 1000, 10), a_share("GPU-0", 2000, 20))

    assert charges_of(allocation, [Role.APP, Role.APP]) == {"GPU-0": Charge(2, 3000, 30)}


def test_app_containers_on_different_cards_are_charged_apart() -> None:
    allocation = an_allocation("node-a", (a_share("GPU-0", 1000, 10), a_share("GPU-1", 1000, 10)), a_share("GPU-1", 5))

    assert charges_of(allocation, [Role.APP, Role.APP]) == {"GPU-0": Charge(1, 1000, 10), "GPU-1": Charge(2, 1005, 10)}


def test_init_containers_cost_what_the_largest_of_them_costs() -> None:
    allocation = an_allocation("node-a", a_share("GPU-0", 4000, 10), a_share("GPU-0", 3000, 50))

    assert charges_of(allocation, [Role.INIT, Role.INIT]) == {"GPU-0": Charge(1, 4000, 50)}


def test_an_init_container_smaller_than_the_apps_costs_nothing_more() -> None:
    allocation = an_allocation("node-a", a_share("GPU-0", 1000, 10), a_share("GPU-0", 2000, 20))

    assert charges_of(allocation, [Role.INIT, Role.APP]) == {"GPU-0": Charge(1, 2000, 20)}


def test_the_larger_counts_in_each_figure_on_its_own() -> None:
    allocation = an_allocation(
        "node-a", a_share("GPU-0", 5000, 5), a_share("GPU-0", 2000, 20), a_share("GPU-0", 2000, 20)
    )

    assert charges_of(allocation, [Role.INIT, Role.APP, Role.APP]) == {"GPU-0": Charge(2, 5000, 40)}


def test_a_sidecar_stays_and_adds_to_the_apps() -> None:
    allocation = an_allocation("node-a", a_share("GPU-0", 1000, 10), a_share("GPU-0", 2000, 20))

    assert charges_of(allocation, [Role.SIDECAR, Role.APP]) == {"GPU-0": Charge(2, 3000, 30)}


def test_an_init_container_runs_beside_the_sidecars_before_it() -> None:
    allocation = an_allocation("node-a", a_share("GPU-0", 1000, 10), a_share("GPU-0", 6000, 60), a_share("GPU-0", 1))

    assert charges_of(allocation, [Role.SIDECAR, Role.INIT, Role.APP]) == {"GPU-0": Charge(2, 7000, 70)}


def test_an_init_container_does_not_wait_for_the_sidecars_after_it() -> None:
    allocation = an_allocation("node-a", a_share("GPU-0", 6000, 60), a_share("GPU-0", 1000, 10), a_share("GPU-0", 1))

    assert charges_of(allocation, [Role.INIT, Role.SIDECAR, Role.APP]) == {"GPU-0": Charge(2, 6000, 60)}


def test_a_card_that_only_an_init_container_used_is_charged_until_the_pod_is_initialised() -> None:
    allocation = an_allocation("node-a", a_share("GPU-0", 6000, 60), a_share("GPU-1", 1000, 10))
    roles = [Role.INIT, Role.APP]

    assert charges_of(allocation, roles) == {"GPU-0": Charge(1, 6000, 60), "GPU-1": Charge(1, 1000, 10)}
    assert charges_of(allocation, roles, initialised=True) == {"GPU-1": Charge(1, 1000, 10)}


def test_sidecars_stay_charged_once_the_pod_is_initialised() -> None:
    allocation = an_allocation("node-a", a_share("GPU-0", 1000, 10), a_share("GPU-0", 6000, 60), a_share("GPU-0", 1))

    charges = charges_of(allocation, [Role.SIDECAR, Role.INIT, Role.APP], initialised=True)

    assert charges == {"GPU-0": Charge(2, 1001, 10)}


def test_containers_beyond_the_known_roles_count_as_apps() -> None:
    allocation = an_allocation("node-a", a_share("GPU-0", 1000, 10), a_share("GPU-0", 2000, 20))

    assert charges_of(allocation, []) == {"GPU-0": Charge(2, 3000, 30)}


def test_a_pod_without_cards_costs_nothing() -> None:
    assert charges_of(an_allocation("node-a", ()), [Role.APP]) == {}


def test_a_total_adds_every_figure() -> None:
    assert total_of([Charge(1, 2, 3), Charge(10, 20, 30)]) == Charge(11, 22, 33)
