"""Where the samples and the example clients run: a cluster with our scheduler and webhook, and nodes with cards.

A test sees a kubeconfig and never which engine is behind it. Another engine is another function here and one line in
`ENGINES`; `TESSERA_ENGINE` chooses. All tests of a directory share theirs.
"""

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tessera.admission import DEFAULT_SETTINGS
from tessera.admission.manifests import UrlAddress, webhook_manifest
from tessera.vendors.loading import load_catalogue
from testbed.certificates import Authority
from testbed.cluster import Cluster
from testbed.fixtures import NewCluster
from testbed.node_documents import NodeShape
from testbed.requirements import TestbedFailed
from tests.contract.waiting import eventually
from tests.embedded.server import free_port
from tests.embedded.whole_engine import WholeEngine
from tests.scheduler.conftest import PORT, Scheduling, a_pod
from tests.scheduler.extender_process import TESSERA, ExtenderProcess

WEBHOOK_PORT = PORT + 1
DEADLINE_S = 60
NODE_NAMES = ("node-a", "node-b")
"""As `tessera up` calls its own, and as the seeds call theirs."""
CARDS = "8xA100-SXM4-80GB"


class OperatorProcess:
    """`tessera run operator`. When it is made our kinds are there, and claims are told of."""

    def __init__(self, kubeconfig: Path, log: Path) -> None:
        self._log = log
        address = f"127.0.0.1:{free_port()}"
        command = [*TESSERA, "run", "operator", "--kubeconfig", str(kubeconfig), "--metrics", address]
        with log.open("a") as file:
            self._process = subprocess.Popen([*command, "--install-definitions"], stdout=file, stderr=file)
        eventually(lambda: self._is_ready(f"http://{address}/readyz"), timeout_s=DEADLINE_S)

    def _is_ready(self, url: str) -> bool:
        assert self._process.poll() is None, self._log.read_text()[-2000:]
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False

    def stop(self) -> None:
        self._process.terminate()
        assert self._process.wait(timeout=20) == 0


class Kubernetes(Scheduling):
    """A real cluster with simulated nodes; pods that ask for cards are sent to our scheduler by our webhook."""

    def __init__(self, cluster: Cluster) -> None:
        self.kubeconfig = cluster.kubeconfig
        self._operator = OperatorProcess(cluster.kubeconfig, cluster.machine.logs / "operator.log")
        super().__init__(cluster)
        self._register_webhook()

    def start_extender(self, kubeconfig: Path | None = None) -> None:
        directory = self.cluster.machine.directory / "webhook"
        directory.mkdir(exist_ok=True)
        pair = self._authority.issue("webhook", "webhook", reachable_at=[self._host])
        (directory / "tls.crt").write_bytes(pair.certificate.read_bytes())
        (directory / "tls.key").write_bytes(pair.key.read_bytes())
        webhook = ("--webhook", f"{self._host}:{WEBHOOK_PORT}", "--webhook-tls-dir", str(directory))
        log = self.cluster.machine.logs / "extender.log"
        self.extender = ExtenderProcess(kubeconfig or self.kubeconfig, self.address, log, *webhook)
        self.extender.wait_until_ok("/readyz")

    @property
    def _host(self) -> str:
        return self.cluster.machine.addresses.host

    @property
    def _authority(self) -> Authority:
        return self.cluster.control_plane.authority

    def _register_webhook(self) -> None:
        address = UrlAddress(url=f"https://{self._host}:{WEBHOOK_PORT}")
        bundle = self._authority.files.certificate.read_bytes()
        manifest = webhook_manifest(load_catalogue(), DEFAULT_SETTINGS, address, authority=bundle)
        self.cluster.kubectl("apply", "-f", "-", input=json.dumps(manifest))
        until_s = time.monotonic() + DEADLINE_S
        while self._scheduler_of_a_new_pod() != "hami-scheduler":
            assert time.monotonic() < until_s, "the webhook does not come into force"
            time.sleep(0.1)

    def _scheduler_of_a_new_pod(self) -> str:
        pod = a_pod("tried", memory=1000)
        del pod["spec"]["schedulerName"]
        try:
            answer = self.cluster.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", input=json.dumps(pod))
        except TestbedFailed as refused:
            return str(refused)
        return json.loads(answer)["spec"]["schedulerName"]

    def stop(self) -> None:
        self.extender.stop()
        self._operator.stop()
        self.cluster.stop()


@contextmanager
def kubernetes(request: pytest.FixtureRequest) -> Iterator[Path]:
    new_cluster: NewCluster = request.getfixturevalue("new_cluster")
    cluster = new_cluster()
    cluster.simulated.add(NODE_NAMES, NodeShape(cards=CARDS))
    cluster.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s")
    engine = Kubernetes(cluster)
    yield engine.kubeconfig
    engine.stop()


@contextmanager
def embedded(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Our own engine, as users start it: everything is in it already."""
    directory = request.getfixturevalue("tmp_path_factory").mktemp("embedded")
    with WholeEngine(directory, f"--nodes={len(NODE_NAMES)}", f"--cards={CARDS}").running() as engine:
        yield engine.kubeconfig


ENGINES = {"embedded": embedded, "kubernetes": kubernetes}


def name_of_chosen_engine() -> str:
    return os.environ.get("TESSERA_ENGINE", "kubernetes")


def kubeconfig_of_chosen_engine(request: pytest.FixtureRequest) -> Iterator[Path]:
    """What a fixture yields: the administrator's, for a cluster with our scheduler and webhook."""
    with ENGINES[name_of_chosen_engine()](request) as kubeconfig:
        yield kubeconfig
