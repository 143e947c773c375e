"""The scheduler is killed at every write that it makes for claims: no lease is left over, no card is another's too."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from testbed.fixtures import NewCluster
from testbed.simulated_nodes import NodeShape
from tests.scheduler.claims import (
    DEVICES,
    a_claim,
    a_claimant,
    expected_holders,
    holders,
    install_definitions,
    reservations,
)
from tests.scheduler.recording import RecordingProxy
from tests.scheduler.test_kills import Stage, tell_for_each_write

NAMESPACES = ("default", "theirs")
SETTLE_S = 30


class ClaimStage(Stage):
    """Two cards. Every story ends with leases that say what the pods say."""

    def until_claimed(self, *names: str) -> None:
        def have_cards() -> bool:
            return {pod["metadata"]["name"] for pod in self.all_pods() if DEVICES in _annotations(pod)} >= set(names)

        self.until(have_cards, f"{names} have the cards of their claims")

    def all_pods(self) -> list[dict[str, Any]]:
        return [pod for namespace in NAMESPACES for pod in self.pods_of(namespace)]

    def until_true(self) -> None:
        super().until_true()
        self.until(lambda: holders(self.cluster) == expected_holders(self.cluster), "leases and pods agree")
        self.until(lambda: not reservations(self.cluster), "what is bound does not expire")

    def clear(self) -> None:
        self.cluster.kubectl("delete", "pods,gpuclaims", "--all", "-n", "theirs", "--wait=false")
        self.cluster.kubectl("delete", "gpuclaims", "--all", "-n", "default", "--wait=false")
        super().clear()
        if not self.extender.is_running:
            self.start_extender()
        deadline = time.monotonic() + SETTLE_S
        while holders(self.cluster) or self.pods_of("theirs"):
            assert time.monotonic() < deadline, f"left over: {holders(self.cluster)}"
            time.sleep(0.1)


def _annotations(pod: dict[str, Any]) -> dict[str, str]:
    return pod["metadata"].get("annotations", {})


@pytest.fixture(scope="module")
def stage(new_cluster: NewCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClaimStage]:
    cluster = new_cluster(simulated_nodes=1, shape=NodeShape(cards="2xA100-SXM4-80GB"))
    cluster.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s")
    install_definitions(cluster)
    cluster.kubectl("create", "namespace", "theirs")
    with RecordingProxy(cluster.kubeconfig, tmp_path_factory.mktemp("recording")) as proxy:
        stage = ClaimStage(cluster, proxy)
        yield stage
        stage.extender.stop()
    cluster.stop()


def one_takes_both_cards_and_another_namespace_waits_for_them(stage: Stage) -> None:
    assert isinstance(stage, ClaimStage)
    stage.create(a_claim("pair", 2), a_claimant("first", "pair"))
    stage.until_claimed("first")
    stage.create(a_claim("single", namespace="theirs"), a_claimant("second", "single", namespace="theirs"))
    stage.until(lambda: _is_refused(stage, "second"), "second is refused")
    stage.cluster.kubectl("delete", "pod", "first")
    stage.until_claimed("second")


def two_share_a_card(stage: Stage) -> None:
    assert isinstance(stage, ClaimStage)
    stage.create(
        a_claim("ours", exclusivity="Shared"),
        a_claimant("one", "ours"),
        a_claimant("other", "ours"),
    )
    stage.until_claimed("one", "other")
    stage.cluster.kubectl("delete", "pod", "one")


def _is_refused(stage: ClaimStage, name: str) -> bool:
    (pod,) = [pod for pod in stage.all_pods() if pod["metadata"]["name"] == name]
    said = pod["status"].get("conditions", [])
    return any(one["type"] == "PodScheduled" and one["status"] == "False" for one in said)


@pytest.mark.timeout(900)
def test_killed_at_any_write_no_lease_is_left_over_and_no_card_has_two_owners(stage: ClaimStage):
    tell_for_each_write(stage, one_takes_both_cards_and_another_namespace_waits_for_them, but="events")


@pytest.mark.timeout(600)
def test_killed_at_any_write_those_who_share_a_card_are_listed(stage: ClaimStage):
    tell_for_each_write(stage, two_share_a_card, but="events")
