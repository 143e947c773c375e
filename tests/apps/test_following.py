"""Two replicas, each a kube-scheduler and the extender beside it: who decides follows kube-scheduler's own lease."""

import json
from collections.abc import Iterator

import pytest

from testbed.program import Program
from tests.apps.conftest import Bed, eventually, status_of
from tests.scheduler.conftest import a_pod
from tests.scheduler.extender_process import ExtenderProcess

LEASE = "hami-scheduler"
SHORT = {"leaseDuration": "10s", "renewDeadline": "6s", "retryPeriod": "1s"}


class Replica:
    def __init__(self, bed: Bed, host: str) -> None:
        self.host = host
        self._bed = bed
        self.extender: ExtenderProcess = bed.start_extender(
            "--follow-lease", f"kube-system/{LEASE}", "--follow-host", host
        )
        self.scheduler: Program = self.start_scheduler()

    def start_scheduler(self) -> Program:
        return self._bed.start_scheduler(self.host, "--extender-url", self.extender.url, **SHORT)

    @property
    def decides(self) -> bool:
        return status_of(f"{self.extender.url}/readyz") == 200

    def kill(self) -> None:
        """As when its node is gone."""
        self.extender.kill()
        self.scheduler.kill()


class Replicas:
    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        self.leader = Replica(bed, "one")
        eventually(lambda: self.leader.decides, "the first decides")
        self.standby = Replica(bed, "two")

    def holder(self) -> str:
        lease = self.bed.cluster.kubectl("get", "lease", LEASE, "--namespace=kube-system", "-o", "json")
        return json.loads(lease)["spec"].get("holderIdentity", "").partition("_")[0]

    def ask_to_filter(self, replica: Replica, name: str) -> str:
        return replica.extender.post("filter", {"Pod": self.bed.pod(name), "NodeNames": ["gpu-0000"]})["Error"]


@pytest.fixture
def replicas(bed: Bed) -> Iterator[Replicas]:
    yield Replicas(bed)
    bed.clear()
    bed.cluster.kubectl("delete", "lease", LEASE, "--namespace=kube-system", "--ignore-not-found")


def test_a_leader_that_is_killed_is_followed_by_the_other_pair(replicas: Replicas):
    bed = replicas.bed
    bed.create(a_pod("before", memory=1000))
    bed.wait_until_bound("before")
    assert not replicas.standby.decides
    replicas.leader.kill()
    bed.create(a_pod("after", memory=1000))
    bed.wait_until_bound("after")
    assert replicas.holder() == "two"
    assert "tessera.io/fenced-at" in bed.pod("after")["metadata"]["annotations"], "nothing decided before could land"


def test_an_extender_steps_down_when_the_lease_moves_to_the_other_kube_scheduler(replicas: Replicas):
    bed = replicas.bed
    replicas.leader.scheduler.pause()
    eventually(lambda: replicas.holder() == "two", "the lease moves")
    eventually(lambda: not replicas.leader.decides, "the extender beside the old holder steps down")
    bed.create(a_pod("moved", memory=1000))
    assert "still reading" in replicas.ask_to_filter(replicas.leader, "moved")
    bed.wait_until_bound("moved")
    assert replicas.standby.decides
    assert not replicas.leader.decides
