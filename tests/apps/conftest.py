"""A cluster whose kube-schedulers ask our extender as it is deployed: as a process, over TLS, beside them."""

import json
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.cluster import Cluster
from testbed.fixtures import NewCluster, clusters
from testbed.program import Program
from tests.scheduler.extender_process import TESSERA, ExtenderProcess

Document = dict[str, Any]
PATIENCE_S = 90
FIRST_PORT = 18_300


class Bed:
    """Starts what a test needs and ends it after the test. Ports are given out one after the other."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.host = cluster.machine.addresses.host
        self.directory = cluster.machine.directory
        self._ports = iter(range(FIRST_PORT, FIRST_PORT + 500))
        self._started: list[ExtenderProcess | Program] = []

    def address(self, host: str = "") -> str:
        return f"{host or self.host}:{next(self._ports)}"

    def certificates(self, name: str) -> Path:
        """What an init container makes for one pod."""
        out = self.directory / name
        made = [*TESSERA, "certificates", "pod-local", "--out", str(out), "--host", self.host]
        subprocess.run(made, check=True, capture_output=True)
        return out

    def start_extender(self, *flags: str, kubeconfig: Path | None = None) -> ExtenderProcess:
        """As the administrator, or by another way to the API server."""
        address = self.address()
        log = self.cluster.machine.logs / f"extender-{address}.log"
        process = ExtenderProcess(kubeconfig or self.cluster.kubeconfig, address, log, *flags)
        self._started.append(process)
        process.wait_until_ok("/healthz")
        return process

    def start_webhook(self, *flags: str) -> Program:
        """The webhook without a scheduler, on the machine of the API server."""
        command = [*TESSERA, "run", "webhook", "--kubeconfig", str(self.cluster.kubeconfig), *flags]
        program = self.cluster.machine.start("webhook", command)
        self._started.append(program)
        return program

    def start_scheduler(self, host: str, *config_flags: str, **leader_election: str) -> Program:
        """kube-scheduler with a host name of its own, as in a pod; without leader election, unless it is described."""
        kubeconfig = str(self.cluster.kubeconfig)
        elects = "--leader-elect" if leader_election else "--no-leader-elect"
        command = [*TESSERA, "scheduler", "config", "--kubeconfig", kubeconfig, elects, *config_flags]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        config = yaml.safe_load(printed)
        config["leaderElection"] |= leader_election
        path = self.directory / f"kube-scheduler-{host}.yaml"
        path.write_text(yaml.safe_dump(config))
        flags = (f"--config={path}", f"--secure-port={next(self._ports)}")
        trusting = (f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}")
        own_name = ("unshare", "--uts", "sh", "-c", f'hostname {host} && exec "$@"', "sh")
        program = self.cluster.machine.start(
            f"kube-scheduler-{host}", [*own_name, self.cluster.programs["kube-scheduler"], *flags, *trusting]
        )
        self._started.append(program)
        return program

    def create(self, *pods: Document) -> None:
        self.cluster.kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))

    def pod(self, name: str) -> Document:
        return json.loads(self.cluster.kubectl("get", "pod", name, "-o", "json"))

    def wait_until_bound(self, *names: str) -> None:
        for name in names:
            eventually(lambda name=name: bool(self.pod(name)["spec"].get("nodeName")), f"{name} is bound")

    def wait_until_refused(self, name: str) -> str:
        """Why kube-scheduler says that the pod cannot be scheduled."""
        self.cluster.kubectl("wait", "--for=condition=PodScheduled=False", f"pod/{name}", "--timeout=60s")
        conditions = self.pod(name)["status"]["conditions"]
        return next(said["message"] for said in conditions if said["type"] == "PodScheduled")

    def events_about(self, name: str, reason: str) -> list[Document]:
        selector = f"involvedObject.name={name},reason={reason}"
        return json.loads(self.cluster.kubectl("get", "events", "--field-selector", selector, "-o", "json"))["items"]

    def stop_all(self) -> None:
        for started in self._started:
            started.kill()
        self._started.clear()

    def clear(self) -> None:
        self.stop_all()
        self.cluster.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")


def eventually(condition: Callable[[], bool], what: str) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until_s, f"not so after {PATIENCE_S} s: {what}"
        time.sleep(0.1)


def status_of(url: str, trust: ssl.SSLContext | None = None, body: Document | None = None) -> int:
    return fetch(url, trust, body)[0]


def fetch(url: str, trust: ssl.SSLContext | None = None, body: Document | None = None) -> tuple[int, bytes]:
    """Status and body, whatever the status is."""
    request = urllib.request.Request(url, json.dumps(body).encode() if body is not None else None)
    try:
        with urllib.request.urlopen(request, timeout=10, context=trust) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read()


new_cluster = pytest.fixture(scope="package")(clusters)


@pytest.fixture(scope="package")
def apps_cluster(new_cluster: NewCluster) -> Cluster:
    cluster = new_cluster(simulated_nodes=2)
    cluster.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s")
    cluster.machine.programs["kube-scheduler"].stop()
    return cluster


@pytest.fixture
def bed(apps_cluster: Cluster) -> Iterator[Bed]:
    bed = Bed(apps_cluster)
    yield bed
    bed.clear()
