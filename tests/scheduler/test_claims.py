"""Claims through the stock kube-scheduler: cards, leases, and what pods wait for."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from testbed.checking import check
from testbed.fixtures import NewCluster
from testbed.simulated_nodes import NodeShape
from tests.scheduler.claims import a_claim, a_claimant, expected_holders, holders, install_definitions, reservations
from tests.scheduler.conftest import Scheduling, a_pod

PATIENCE_S = 30
PIN = "gpu.scheduling/allocated"
NODE = "gpu-0000"


class Claiming(Scheduling):
    """Two nodes of four cards."""

    def until(self, is_so: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < deadline, f"not after {PATIENCE_S} s: {what}"
            time.sleep(0.1)

    def annotations(self, name: str) -> dict[str, str]:
        pod = json.loads(self.cluster.kubectl("get", "pod", name, "-o", "json"))
        return pod["metadata"].get("annotations", {})

    def until_claimed(self, *names: str) -> list[str]:
        """What each of the pods was given."""
        self.until(
            lambda: all("gpu.scheduling/devices" in self.annotations(name) for name in names), f"{names} have cards"
        )
        return [self.annotations(name)[PIN] for name in names]

    def until_told(self, name: str, words: str) -> None:
        def is_told() -> bool:
            pod = json.loads(self.cluster.kubectl("get", "pod", name, "-o", "json"))
            said = [one for one in pod["status"].get("conditions", []) if one["type"] == "PodScheduled"]
            return any(words in one.get("message", "") for one in said)

        self.until(is_told, f'{name} is told "{words}"')

    def until_leases_agree(self) -> None:
        self.until(lambda: holders(self.cluster) == expected_holders(self.cluster), "leases say what pods say")
        self.until(lambda: not reservations(self.cluster), "what is bound does not expire")

    def clear(self) -> None:
        self.cluster.kubectl("delete", "gpuclaims,gpugangs", "--all", "--wait=false")
        super().clear()
        self.until(lambda: not holders(self.cluster), "no lease is left over")


@pytest.fixture(scope="module")
def claiming_cluster(new_cluster: NewCluster) -> Iterator[Claiming]:
    cluster = new_cluster(simulated_nodes=2, shape=NodeShape(cards="4xA100-SXM4-80GB"))
    cluster.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s")
    claiming = Claiming(cluster)  # before the kinds are there: a cluster without claims is one, too
    install_definitions(cluster)
    yield claiming
    claiming.extender.stop()
    cluster.stop()


@pytest.fixture
def claiming(claiming_cluster: Claiming) -> Iterator[Claiming]:
    yield claiming_cluster
    problems = check(claiming_cluster.cluster.kubeconfig).problems
    claiming_cluster.clear()
    assert not problems


def test_a_claim_gets_cards_and_their_leases_until_its_pod_has_ended(claiming: Claiming):
    claiming.create(a_claim("pair", 2, policy="contiguous"), a_claimant("web", "pair"))
    (allocated,) = claiming.until_claimed("web")
    node, _, ids = allocated.rpartition(":")
    first, second = map(int, ids.split(","))
    assert second == first + 1
    claiming.until_leases_agree()
    assert set(holders(claiming.cluster)) == {f"gpu-{node}-{first}", f"gpu-{node}-{second}"}
    claiming.cluster.kubectl("delete", "pod", "web")
    claiming.until(lambda: not holders(claiming.cluster), "the leases are gone")


def test_a_pod_waits_for_a_claim_that_is_not_there_and_goes_when_it_is(claiming: Claiming):
    claiming.create(a_claimant("early", "late"))
    claiming.until_told("early", "there is no GpuClaim")
    claiming.create(a_claim("late"))
    claiming.until_claimed("early")


def test_a_claim_that_is_edited_while_its_pod_waits_counts_as_it_is_now(claiming: Claiming):
    claiming.create(a_claim("large", 5), a_claimant("web", "large"))
    claiming.until_told("web", "5 cards wanted")
    claiming.cluster.kubectl("patch", "gpuclaim", "large", "--type=merge", "-p", '{"spec":{"devices":{"count":3}}}')
    claiming.until_claimed("web")


def test_of_two_pods_that_name_one_claim_the_second_waits_for_the_first(claiming: Claiming):
    claiming.create(a_claim("mine"), a_claimant("one", "mine"), a_claimant("two", "mine"))
    claiming.until(lambda: len(holders(claiming.cluster)) == 1, "one of them has it")
    pods = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in claiming.pods()}
    (owner,), (waiting,) = (
        [name for name, node in pods.items() if bool(node) is is_bound] for is_bound in (True, False)
    )
    claiming.until_told(waiting, f"the pod default/{owner} has it")
    claiming.cluster.kubectl("delete", "pod", owner)
    claiming.until_claimed(waiting)


def test_a_lease_that_is_deleted_by_hand_comes_back_while_its_holder_lives(claiming: Claiming):
    claiming.create(a_claim("mine"), a_claimant("web", "mine"))
    claiming.until_claimed("web")
    claiming.until_leases_agree()
    (name,) = holders(claiming.cluster)
    uid = claiming.cluster.kubectl("get", "lease", name, "-o", "jsonpath={.metadata.uid}")
    claiming.cluster.kubectl("delete", "lease", name)
    claiming.until_leases_agree()
    assert claiming.cluster.kubectl("get", "lease", name, "-o", "jsonpath={.metadata.uid}") != uid


def test_a_lease_of_nobody_is_taken_over(claiming: Claiming):
    lease: dict[str, Any] = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": f"gpu-{NODE}-2", "namespace": "default"},
        "spec": {"holderIdentity": "abc-123-def-456"},
    }
    claiming.create(lease, a_claimant("web", "", annotations={PIN: f"{NODE}:2"}))
    assert claiming.until_claimed("web") == [f"{NODE}:2"]
    claiming.until_leases_agree()


def test_a_claim_and_pods_that_take_parts_of_cards_never_meet(claiming: Claiming):
    claiming.create(*(a_pod(f"part-{number}", memory=1000) for number in range(3)))
    claiming.wait_until_running("part-0", "part-1", "part-2")
    claiming.create(*(a_claim(f"own-{number}") for number in range(8)))
    claiming.create(*(a_claimant(f"own-{number}", f"own-{number}") for number in range(8)))
    shared = {card for card, mib in claiming.cards_in_use().items() if mib == 1000 or mib == 2000 or mib == 3000}
    claiming.until(lambda: len(holders(claiming.cluster)) == 8 - len(shared), "every idle card is claimed")


def test_a_gang_goes_when_all_of_it_is_there(claiming: Claiming):
    gang = {
        "apiVersion": "gpu.scheduling/v1",
        "kind": "GpuGang",
        "metadata": {"name": "crew"},
        "spec": {"minMember": 3},
    }
    claiming.create(gang, *(a_claim(f"crew-{number}", 2, gang="crew") for number in range(3)))
    claiming.create(*(a_claimant(f"crew-{number}", f"crew-{number}") for number in range(2)))
    claiming.until_told("crew-0", "the gang default/crew has")
    claiming.wait_until_parked()
    assert not holders(claiming.cluster)
    claiming.create(a_claimant("crew-2", "crew-2"))
    claiming.until_claimed("crew-0", "crew-1", "crew-2")
    claiming.until_leases_agree()


def test_two_gangs_of_which_one_fits_go_one_after_the_other(claiming: Claiming):
    for gang in ("one", "two"):
        said = {"gpu.scheduling/gang-size": "2"}
        claiming.create(*(a_claim(f"{gang}-{number}", 4, gang=gang) for number in range(2)))
        claiming.create(*(a_claimant(f"{gang}-{number}", f"{gang}-{number}", annotations=said) for number in range(2)))
    claiming.until(lambda: len(holders(claiming.cluster)) == 8, "one of them has all cards")
    placed = [pod["metadata"]["name"][:3] for pod in claiming.pods() if pod["spec"].get("nodeName")]
    assert len(set(placed)) == 1
    waiting = ({"one", "two"} - set(placed)).pop()
    claiming.cluster.kubectl("delete", "pod", f"{placed[0]}-0", f"{placed[0]}-1")
    claiming.until_claimed(f"{waiting}-0", f"{waiting}-1")


def test_no_member_of_a_gang_is_bound_while_one_is_held_up_by_somebody_else(claiming: Claiming):
    said = {"gpu.scheduling/gang-size": "2"}
    claiming.create(*(a_claim(f"crew-{number}", gang="crew") for number in range(2)))
    claiming.create(a_claimant("crew-0", "crew-0", annotations=said, schedulerName="nobody"))
    claiming.create(a_claimant("crew-1", "crew-1", annotations=said))
    claiming.until_told("crew-1", "not all members of the gang default/crew came")
    assert not any(pod["spec"].get("nodeName") for pod in claiming.pods())
    assert not holders(claiming.cluster)
    claiming.cluster.kubectl("delete", "pod", "crew-0")
    claiming.create(a_claimant("crew-2", "crew-0", annotations=said))
    claiming.until_claimed("crew-1", "crew-2")


def test_a_member_that_wants_no_card_waits_for_its_gang(claiming: Claiming):
    said = {"gpu.scheduling/gang": "crew", "gpu.scheduling/gang-size": "2"}
    launcher = a_claimant("launcher", "", annotations=said)
    launcher["spec"]["containers"][0]["resources"] = {"limits": {"gpu.scheduling/gang": "1"}}
    claiming.create(launcher)
    claiming.until_told("launcher", "the gang default/crew has 1 of 2 members")
    claiming.create(a_claim("crew-0"), a_claimant("crew-0", "crew-0", annotations=said))
    claiming.until_claimed("crew-0")
    claiming.wait_until_running("launcher")
