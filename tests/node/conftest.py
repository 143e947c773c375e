"""A cluster with one real node: its kubelet talks to our agent, its kube-scheduler to our extender."""

import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from testbed.cluster import Cluster
from testbed.fixtures import NewCluster, clusters
from testbed.images.recipes.busybox import REFERENCE
from testbed.program import Program
from tests.scheduler.claims import install_definitions
from tests.scheduler.conftest import Scheduling

T = TypeVar("T")
PATIENCE_S = 90
CARDS = 16
AGENT = "/var/lib/agent"
SHOW = "env; cat /etc/tessera/*/limits; "
WAIT = "trap 'exit 0' TERM; sleep 3600 & wait"


class GpuNode:
    """`plan` describes the node's cards; a test that rewrites it changes them."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.name = cluster.node.name
        self.plan = cluster.machine.host_path(AGENT) / "cards.toml"
        self.plan.parent.mkdir(parents=True)
        self.set_cards()
        install_definitions(cluster)
        self.start_agent()
        self.wait_until(lambda: self.allocatable() == CARDS * 10, "the kubelet counts the tiles")
        self.scheduling = Scheduling(cluster)

    def set_cards(self, *, unhealthy: tuple[int, ...] = ()) -> None:
        fresh = self.plan.with_suffix(".new")
        fresh.write_text(f'[[cards]]\nmodel = "A100-SXM4-80GB"\ncount = {CARDS}\nunhealthy = {list(unhealthy)}\n')
        fresh.replace(self.plan)

    def start_agent(self, **more: str) -> None:
        """Start it, or start it anew with more flags; from then on the kubelet admits pods with cards."""
        if "agent" in self.cluster.machine.programs:
            self.agent.stop()
        kubeconfig = self.cluster.control_plane.kubeconfig_for("agent", ["system:masters"])
        flags = {
            "kubeconfig": kubeconfig,
            "node": self.name,
            "simulate-file": f"{AGENT}/cards.toml",
            "hook-path": f"{AGENT}/hook",
            "metrics": "0.0.0.0:9394",
            "inventory": "0.0.0.0:9396",
            **more,
        }
        command = [sys.executable, "-m", "tessera.apps.cli", "run", "agent"]
        self.cluster.machine.start("agent", [*command, *(f"--{key}={value}" for key, value in flags.items())])
        self.wait_until(lambda: self.status_of(9394, "/readyz") == 200, "registered with by the agent")

    @property
    def agent(self) -> Program:
        return self.cluster.machine.programs["agent"]

    @property
    def address(self) -> str:
        return self.cluster.machine.addresses.machine

    def status_of(self, port: int, path: str) -> int:
        """0, if nobody answers."""
        try:
            with urllib.request.urlopen(f"http://{self.address}:{port}{path}", timeout=5) as answer:
                return answer.status
        except urllib.error.HTTPError as refused:
            return refused.code
        except OSError:
            return 0

    def metrics(self) -> str:
        with urllib.request.urlopen(f"http://{self.address}:9394/metrics", timeout=5) as answer:
            return answer.read().decode()

    def node(self) -> dict[str, Any]:
        return json.loads(self.cluster.kubectl("get", "node", self.name, "-o", "json"))

    def allocatable(self, resource: str = "nvidia.com/gpu") -> int:
        return int(self.node()["status"].get("allocatable", {}).get(resource, 0))

    def pods(self) -> dict[str, dict[str, Any]]:
        found = json.loads(self.cluster.kubectl("get", "pods", "-o", "json"))["items"]
        return {pod["metadata"]["name"]: pod for pod in found}

    def create(self, *pods: dict[str, Any]) -> None:
        self.cluster.kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))

    def wait_until(self, condition: Callable[[], T], what: str, *, timeout_s: float = PATIENCE_S) -> T:
        return self.cluster.node.kubelet.until(condition, what, timeout_s=timeout_s)

    def wait_until_running(self, *names: str, timeout_s: float = PATIENCE_S) -> None:
        def all_run() -> bool:
            pods = self.pods()
            return all(pods[name]["status"].get("phase") == "Running" for name in names)

        self.wait_until(all_run, f"running {', '.join(names[:3])}", timeout_s=timeout_s)

    def runs_of(self, pod: dict[str, Any], container: str) -> list[str]:
        """What each run of a container has printed, the first one first; one that was cut off has printed nothing."""
        metadata = pod["metadata"]
        directory = f"/var/log/pods/{metadata['namespace']}_{metadata['name']}_{metadata['uid']}/{container}"
        logs = sorted(self.cluster.machine.host_path(directory).glob("*.log"), key=lambda path: int(path.stem))
        return [printed for path in logs if (printed := _without_prefixes(path))]

    def delete(self, *names: str) -> None:
        self.cluster.kubectl("delete", "pod", "--now", "--ignore-not-found", *names)

    def clear(self) -> None:
        self.cluster.kubectl("delete", "pods", "--all", "--now")
        self.wait_until(lambda: not self.pods(), "free of pods")


def _without_prefixes(log: Path) -> str:
    """The runtime writes time, stream and a flag before each line."""
    return re.sub(r"^\S+ \S+ \S+ ", "", log.read_text(), flags=re.MULTILINE)


def a_container(name: str = "main", *, count: int = 1, memory: int = 1000, cores: int = 0, then: str = WAIT) -> Any:
    limits = {"nvidia.com/gpu": str(count), "nvidia.com/gpumem": str(memory)}
    if cores:
        limits["nvidia.com/gpucores"] = str(cores)
    return {
        "name": name,
        "image": REFERENCE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", SHOW + then],
        "resources": {"limits": limits},
    }


def a_pod(name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "hami-scheduler",
            "terminationGracePeriodSeconds": 1,
            "containers": list(containers),
            **spec,
        },
    }


new_cluster = pytest.fixture(scope="package")(clusters)


@pytest.fixture(scope="package")
def gpu_node_of_package(new_cluster: NewCluster) -> Iterator[GpuNode]:
    cluster = new_cluster(node=True)
    node = GpuNode(cluster)
    yield node
    node.scheduling.extender.stop()
    cluster.stop()


@pytest.fixture
def gpu_node(gpu_node_of_package: GpuNode) -> Iterator[GpuNode]:
    yield gpu_node_of_package
    gpu_node_of_package.clear()


@pytest.fixture
def early_node(gpu_node: GpuNode) -> Iterator[GpuNode]:
    """The same with a container runtime that is taken to have no CDI."""
    gpu_node.start_agent(cdi="off")
    gpu_node.wait_until(lambda: _binds_late(gpu_node) == "False", "said to be without CDI")
    yield gpu_node
    gpu_node.clear()
    gpu_node.start_agent()
    gpu_node.wait_until(lambda: _binds_late(gpu_node) == "True", "said to have CDI again")


def _binds_late(node: GpuNode) -> str | None:
    conditions: list[dict[str, Any]] = node.node()["status"]["conditions"]
    return next((said["status"] for said in conditions if said["type"] == "TesseraLateBinding"), None)
