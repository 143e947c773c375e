"""A cluster whose kube-scheduler asks our extender, which runs as a process of its own."""

import asyncio
import json
import re
import ssl
import subprocess
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from tessera.errors import NotFound
from tessera.kube.access import Access, find_access
from tessera.kube.client import Client, Deletion
from tessera.kube.kinds import NAMESPACES, NODES, PODS, SERVICE_ACCOUNTS, Selection
from testbed.checking import Card, check
from testbed.cluster import Cluster
from testbed.fixtures import NewCluster, clusters
from tests.scheduler.extender_process import TESSERA, ExtenderProcess
from tests.scheduler.in_process import NODE_NAMES, PLAN
from tests.unit.scheduler.cluster import node_document

PORT = 18_080
DEADLINE_S = 60


class Scheduling:
    """`extender` can be stopped and started by tests, as a node that reboots would."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.address = f"{cluster.machine.addresses.host}:{PORT}"
        self.start_extender()
        self._start_scheduler()

    def start_extender(self, kubeconfig: Path | None = None) -> None:
        """As the administrator, or by another way to the API server."""
        log = self.cluster.machine.logs / "extender.log"
        self.extender = ExtenderProcess(kubeconfig or self.cluster.kubeconfig, self.address, log)
        self.extender.wait_until_ok("/readyz")

    def _start_scheduler(self) -> None:
        kubeconfig = self.cluster.control_plane.kubeconfig_for("system:kube-scheduler")
        command = [
            *TESSERA,
            "scheduler",
            "config",
            "--extender-url",
            self.extender.url,
            "--kubeconfig",
            str(kubeconfig),
        ]
        printed = subprocess.run([*command, "--no-leader-elect"], capture_output=True, text=True, check=True).stdout
        config = self.cluster.machine.directory / "kube-scheduler.yaml"
        config.write_text(self.scheduler_config(printed))
        self.cluster.control_plane.start_scheduler(Path(config))

    def scheduler_config(self, printed: str) -> str:
        """What kube-scheduler is told; as `tessera scheduler config` prints it."""
        return printed

    def create(self, *pods: dict[str, Any]) -> None:
        self.cluster.kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))

    def wait_until_running(self, *names: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while missing := set(names) - {pod["metadata"]["name"] for pod in self.pods() if _is_running(pod)}:
            assert time.monotonic() < deadline, f"not running after {DEADLINE_S} s: {sorted(missing)[:5]}"
            time.sleep(0.1)

    def wait_until_refused(self, name: str) -> str:
        """Why kube-scheduler says that the pod cannot be scheduled."""
        self.cluster.kubectl("wait", "--for=condition=PodScheduled=False", f"pod/{name}", f"--timeout={DEADLINE_S}s")
        (pod,) = [pod for pod in self.pods() if pod["metadata"]["name"] == name]
        return next(said["message"] for said in pod["status"]["conditions"] if said["type"] == "PodScheduled")

    def wait_until_parked(self) -> None:
        """Until kube-scheduler has nothing left to try by itself: what happens next, something has woken."""
        deadline = time.monotonic() + DEADLINE_S
        while self._queued("active") or self._queued("backoff") or not self._queued("unschedulable"):
            assert time.monotonic() < deadline, "kube-scheduler does not come to rest"
            time.sleep(0.2)

    def wait_until_refused_again(self, before: float) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while self.refusals() <= before:
            assert time.monotonic() < deadline, "kube-scheduler did not try again"
            time.sleep(0.1)

    def refusals(self) -> float:
        """How often kube-scheduler has found no node for a pod so far."""
        pattern = r'^scheduler_schedule_attempts_total{.*result="unschedulable".*} (\S+)'
        return sum(map(float, re.findall(pattern, self._scheduler_metrics(), re.MULTILINE)))

    def _queued(self, queue: str) -> float:
        found = re.search(rf'^scheduler_pending_pods{{queue="{queue}"}} (\S+)', self._scheduler_metrics(), re.MULTILINE)
        return float(found[1]) if found else 0.0

    def _scheduler_metrics(self) -> str:
        admin = self.cluster.control_plane.admin
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # its certificate is of its own making
        context.load_cert_chain(str(admin.certificate), str(admin.key))
        url = f"https://{self.cluster.machine.addresses.machine}:10259/metrics"
        with urllib.request.urlopen(url, timeout=5, context=context) as answer:
            return answer.read().decode()

    def pods(self) -> list[dict[str, Any]]:
        return self.pods_of("default")

    def pods_of(self, namespace: str) -> list[dict[str, Any]]:
        return json.loads(self.cluster.kubectl("get", "pods", "-n", namespace, "-o", "json"))["items"]

    def cards_in_use(self) -> Mapping[Card, int]:
        """MiB promised on each card, by what the API says and nothing else."""
        verdict = check(self.cluster.kubeconfig)
        assert not verdict.problems
        return verdict.taken_mib

    def clear(self) -> None:
        asyncio.run(self._delete_all_pods())
        deadline = time.monotonic() + DEADLINE_S
        while self.pods():
            assert time.monotonic() < deadline, "the pods of the last test do not go away"
            time.sleep(0.1)

    async def _delete_all_pods(self) -> None:
        async with Client(find_access(self.cluster.kubeconfig)) as client:
            await client.delete_collection(PODS, Selection(namespace="default"))


def _is_running(pod: dict[str, Any]) -> bool:
    return pod.get("status", {}).get("phase") == "Running"


new_cluster = pytest.fixture(scope="package")(clusters)


@pytest.fixture(scope="module")
def scheduling_cluster(new_cluster: NewCluster) -> Iterator[Scheduling]:
    cluster = new_cluster(simulated_nodes=4)
    cluster.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s")
    scheduling = Scheduling(cluster)
    yield scheduling
    scheduling.extender.stop()
    cluster.stop()


@pytest.fixture
def scheduling(scheduling_cluster: Scheduling) -> Iterator[Scheduling]:
    yield scheduling_cluster
    problems = check(scheduling_cluster.cluster.kubeconfig).problems
    scheduling_cluster.clear()
    assert not problems


def a_pod(
    name: str, *, memory: int, count: int = 1, labels: Mapping[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": str(count), "nvidia.com/gpumem": str(memory)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {
            "schedulerName": "hami-scheduler",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "nothing", "resources": {"limits": limits}}],
            **spec,
        },
    }


@pytest.fixture(scope="module")
def access(new_cluster: NewCluster) -> Iterator[Access]:
    """An API server alone, for what runs in the test's own process."""
    cluster = new_cluster(controllers=False)
    yield find_access(cluster.kubeconfig)
    cluster.stop()


@pytest_asyncio.fixture
async def api(access: Access) -> AsyncIterator[Client]:
    """The API without anything in between, and two nodes with a card each."""
    async with Client(access) as client:
        for name in NODE_NAMES:
            try:
                await client.get(NODES, name)
            except NotFound:
                await client.create(NODES, node_document(name, PLAN))
        yield client


@pytest_asyncio.fixture
async def namespace(api: Client) -> AsyncIterator[str]:
    name = f"test-{uuid4().hex[:8]}"
    await api.create(NAMESPACES, {"metadata": {"name": name}})
    await api.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace=name)
    yield name
    await api.delete_collection(PODS, Selection(namespace=name), how=Deletion(grace_s=0))
