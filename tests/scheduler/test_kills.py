"""The scheduler is killed at every write that it makes, and nothing is lost or promised twice.

The writes are not chosen by hand: a first run records them. Then each of them is the one at which the process dies,
once before the API server sees it and once after it has landed, and the same story must come to the same end.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.checking import Card, check
from testbed.cluster import Cluster
from testbed.fixtures import NewCluster
from testbed.simulated_nodes import NodeShape
from tests.scheduler.conftest import Scheduling, a_pod
from tests.scheduler.extender_process import ExtenderProcess
from tests.scheduler.recording import Fault, Moment, RecordingProxy

PATIENCE_S = 120
QUIET_S = 20
NODE = "gpu-0000"
ALLOCATED = "hami.io/vgpu-devices-allocated"
Story = Callable[["Stage"], None]
TRIES = 3


class Stage(Scheduling):
    """A cluster with one card, whose scheduler is started again whenever it was killed."""

    def __init__(self, cluster: Cluster, proxy: RecordingProxy) -> None:
        self.proxy = proxy
        super().__init__(cluster)

    def start_extender(self, kubeconfig: Path | None = None) -> None:
        super().start_extender(kubeconfig or self.proxy.kubeconfig)

    def scheduler_config(self, printed: str) -> str:
        return yaml.safe_dump(yaml.safe_load(printed) | {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1})

    def kill(self) -> None:
        self.extender.kill()

    def until(self, is_so: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            if not self.extender.is_running:
                self.start_extender()
            assert time.monotonic() < deadline, f"not after {PATIENCE_S} s: {what}"
            time.sleep(0.1)

    def until_placed(self, *names: str) -> None:
        def are_placed() -> bool:
            return {pod["metadata"]["name"] for pod in self.pods() if _has_cards(pod)} >= set(names)

        self.until(are_placed, f"{names} have a node and cards")

    def until_refused(self, name: str) -> None:
        def is_refused() -> bool:
            (pod,) = [pod for pod in self.pods() if pod["metadata"]["name"] == name]
            said = pod["status"].get("conditions", [])
            return any(one["type"] == "PodScheduled" and one["status"] == "False" for one in said)

        self.until(is_refused, f"{name} is refused")

    def until_true(self) -> None:
        """Nothing is promised twice, and the scheduler's own figures are those of the API."""
        verdict = check(self.cluster.kubeconfig)
        assert not verdict.problems
        self.until(lambda: self._ledger_figures() == verdict.free, f"the ledger agrees with {verdict.free}")

    def _ledger_figures(self) -> dict[Card, tuple[int, ...]]:
        try:
            nodes = self.extender.get("ledger")["nodes"]
        except OSError:
            return {}
        return {
            Card(node, uuid): (figures["free_slots"], figures["free_memory_mib"], figures["free_cores_percent"])
            for node, said in nodes.items()
            for uuid, figures in said["cards"].items()
        }


def _has_cards(pod: dict[str, Any]) -> bool:
    return bool(pod["spec"].get("nodeName")) and ALLOCATED in pod["metadata"].get("annotations", {})


@pytest.fixture(scope="module")
def stage(new_cluster: NewCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    cluster = new_cluster(simulated_nodes=1, shape=NodeShape(cards="1xA100-SXM4-80GB"))
    cluster.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s")
    with RecordingProxy(cluster.kubeconfig, tmp_path_factory.mktemp("recording")) as proxy:
        stage = Stage(cluster, proxy)
        yield stage
        stage.extender.stop()
    cluster.stop()


def a_burst_a_latecomer_and_one_who_waits(stage: Stage) -> None:
    stage.create(
        *(a_pod(f"burst-{number}", memory=22_000) for number in range(2)),
        a_pod("by-name", memory=20_000, nodeName=NODE),
    )
    stage.until_placed("burst-0", "burst-1", "by-name")
    stage.create(a_pod("waiting", memory=30_000))
    stage.until_refused("waiting")
    stage.cluster.kubectl("delete", "pod", "burst-0")
    stage.until_placed("burst-1", "by-name", "waiting")


def one_pod(stage: Stage) -> None:
    stage.create(a_pod("single", memory=50_000))
    stage.until_placed("single")


class Replicas:
    """Two schedulers of which one leads; only the first is recorded. Nobody but the test asks them."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        log = stage.cluster.machine.logs
        kubeconfigs = (stage.proxy.kubeconfig, stage.cluster.kubeconfig)
        self._launch = [
            partial(ExtenderProcess, kubeconfig, f"127.0.0.1:{port}", log / f"replica-{port}.log", "--leader-elect")
            for kubeconfig, port in zip(kubeconfigs, (18_111, 18_112), strict=True)
        ]

    def lead_and_be_followed(self) -> list[str]:
        """One pod, fenced and bound by the first; by the second, where the first dies over it. Gives the writes."""
        self.stage.create(a_pod("single", memory=50_000, schedulerName="nobody"))
        self.stage.extender = first = self._launch[0]()
        self._until(lambda: "PATCH leases 1" in self.stage.proxy.writes or not first.is_running)
        self._until(lambda: self._bind_by(first) or not first.is_running)
        if not first.is_running:
            self._forget_lease()
            self.stage.extender = second = self._launch[1]()
            self._until(lambda: self._bind_by(second))
        self.stage.until_true()
        return list(self.stage.proxy.writes)

    def kill(self) -> None:
        self.stage.extender.kill()

    def clear(self) -> None:
        self.kill()
        self.stage.clear()
        self._forget_lease()

    def _forget_lease(self) -> None:
        """The dead need not be waited for: how long a lease is kept to is tested elsewhere."""
        self.stage.cluster.kubectl("delete", "lease", "tessera-scheduler", "-n", "kube-system", "--ignore-not-found")

    def _bind_by(self, replica: ExtenderProcess) -> bool:
        """Ask as kube-scheduler does: a node for the pod, then its binding."""
        (pod,) = self.stage.pods()
        metadata = pod["metadata"]
        args = {"PodName": "single", "PodNamespace": "default", "PodUID": metadata["uid"], "Node": NODE}
        try:
            passed = replica.post("filter", {"Pod": pod, "NodeNames": [NODE]}).get("NodeNames") == [NODE]
            return (passed or _has_cards(pod)) and replica.post("bind", args) == {"Error": ""}
        except (OSError, HTTPException):
            return False

    def _until(self, is_so: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < deadline, f"not bound after {PATIENCE_S} s"
            time.sleep(0.1)


@pytest.fixture
def replicas(stage: Stage) -> Iterator[Replicas]:
    stage.extender.stop()
    replicas = Replicas(stage)
    yield replicas
    replicas.clear()
    stage.start_extender()


@pytest.mark.timeout(600)
def test_a_leader_killed_at_any_write_is_followed_by_one_that_promises_nothing_twice(stage: Stage, replicas: Replicas):
    stage.proxy.begin()
    recorded = replicas.lead_and_be_followed()
    writes = [write for write in dict.fromkeys(recorded) if "events" not in write and write != "PATCH leases 2"]
    assert {"POST leases 1", "PATCH pods 1", "PATCH leases 1", "POST pods/binding 1"} <= set(writes)
    for fault in (Fault(write, moment, replicas.kill) for write in writes for moment in Moment):
        replicas.clear()
        stage.proxy.begin(fault)
        replicas.lead_and_be_followed()
        assert not stage.proxy.faults, f"did not happen: {fault}"


@pytest.mark.timeout(900)
def test_killed_at_any_write_the_story_ends_as_it_would_have(stage: Stage):
    tell_for_each_write(stage, a_burst_a_latecomer_and_one_who_waits)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("moment", Moment)
def test_killed_while_it_clears_up_after_a_lost_binding(stage: Stage, moment: Moment):
    lost = Fault("POST pods/binding 1", moment, lambda: None)
    tell_for_each_write(stage, one_pod, lost)


def test_a_pod_that_fits_and_that_others_refuse_is_woken_once_and_then_left_alone(stage: Stage):
    stage.proxy.begin()
    stage.create(a_pod("whole", memory=81_920))
    stage.until_placed("whole")
    stage.create(a_pod("shy", memory=1000, affinity=away_from("crowd")))
    stage.until_refused("shy")
    crowd = a_pod("crowd", memory=0, labels={"app": "crowd"})
    crowd["spec"]["containers"][0]["resources"] = {}
    stage.create(crowd)
    stage.wait_until_running("crowd")
    stage.cluster.kubectl("delete", "pod", "whole")
    stage.until(lambda: "PATCH pods 1" in stage.proxy.writes, "shy is woken, for there is room")
    before = stage.refusals()
    watched_until = time.monotonic() + QUIET_S
    while time.monotonic() < watched_until:
        assert stage.proxy.writes.count("PATCH pods 2") == 0, "to be woken is no reason to be woken"
        time.sleep(0.5)
    assert stage.refusals() - before <= QUIET_S / 5
    stage.clear()


def away_from(app: str) -> dict[str, Any]:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def tell_for_each_write(stage: Stage, story: Story, *always: Fault, but: str = "") -> None:
    """`but` is a word in the writes that are of no interest."""
    known = {fault.write for fault in always}
    writes = [write for write in tell(stage, story, *always) if write not in known and not (but and but in write)]
    cases = [Fault(write, moment, stage.kill) for write in writes for moment in Moment]
    missed = [case for case in cases if not comes_to_it(stage, story, *always, case)]
    assert len(missed) <= len(cases) // 4, f"the story was another each time, these writes did not come: {missed}"


def comes_to_it(stage: Stage, story: Story, *faults: Fault) -> bool:
    """Whether the last of the faults came. Whose turn it is when is up to chance, so it may take another try."""
    return any(faults[-1].write in tell(stage, story, *faults) for _ in range(TRIES))


def tell(stage: Stage, story: Story, *faults: Fault) -> list[str]:
    """Tell the story once, and give the writes it took. A write that was to go wrong and came has gone wrong."""
    proxy = stage.proxy
    proxy.begin(*faults)
    print(f"faults ahead: {[(fault.write, str(fault.moment)) for fault in faults]}")
    story(stage)
    stage.until(lambda: not any(fault.write in proxy.writes for fault in proxy.faults), "the fault has happened")
    stage.until_true()
    writes = list(proxy.writes)
    stage.clear()
    if not stage.extender.is_running:
        stage.start_extender()
    return writes
