"""A cluster whose kube-scheduler asks our extender: what the benchmarks on a cluster share.

Both run in the cluster's machine and meet on its loopback. Without controllers the cores are left to etcd, the API
server, kwok and what is measured.
"""

import json
import os
import re
import ssl
import sys
import urllib.request
from pathlib import Path
from typing import Any

from tessera.scheduler.configuration import Endpoint, scheduler_configuration
from tessera.vendors.loading import load_catalogue
from testbed.cluster import Cluster
from testbed.program import Program

WITHOUT_CONTROLLERS = {"disable-admission-plugins": "ServiceAccount,TaintNodesByCondition"}
"""Nobody makes service accounts then, or takes away the taint of a new node."""
AS_DEPLOYED = {"OPENBLAS_NUM_THREADS": ""}
"""What the benchmarks set for themselves is not set for what they measure."""
FROM_THIS_TREE = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])}
"""Whoever enters a machine is in its root directory, and would not find the benchmarks."""
PORT = 8080
METRICS_PORT = 10259


def quiet_cluster(*, simulated_nodes: int = 0) -> Cluster:
    return Cluster(controllers=False, simulated_nodes=simulated_nodes, apiserver_flags=WITHOUT_CONTROLLERS)


class Scheduling:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.address = f"{cluster.machine.addresses.machine}:{PORT}"
        self.url = f"http://{self.address}"
        control_plane = cluster.control_plane
        self._kubeconfig = control_plane.kubeconfig_for("system:kube-scheduler")
        self._serving = control_plane.authority.issue(
            "kube-scheduler-serving", "kube-scheduler", reachable_at=[cluster.machine.addresses.machine]
        )
        self._trust = ssl.create_default_context(cafile=str(control_plane.authority.files.certificate))
        self._trust.load_cert_chain(str(control_plane.admin.certificate), str(control_plane.admin.key))

    def start_extender(self, *flags: str) -> Program:
        """Returns when it has read the cluster's state."""
        access = ["--kubeconfig", str(self.cluster.kubeconfig), "--http", self.address]
        command = [sys.executable, "-m", "tessera.apps.cli", "run", "extender", *access, *flags]
        program = self.cluster.machine.start("extender", command, environment=AS_DEPLOYED)
        program.until(lambda: self.cluster.control_plane.answers(f"{self.url}/readyz"), "ready", timeout_s=120)
        return program

    def start_scheduler(self, configuration: dict[str, Any]) -> Program:
        """Start kube-scheduler, or start it again; returns when it has read the cluster's state."""
        machine = self.cluster.machine
        if "kube-scheduler" in machine.programs:
            machine.programs["kube-scheduler"].stop()
        file = machine.directory / "kube-scheduler.json"
        file.write_text(json.dumps(configuration))
        flags: dict[str, str | Path] = {
            "config": file,
            "authentication-kubeconfig": self._kubeconfig,
            "authorization-kubeconfig": self._kubeconfig,
            "feature-gates": "OpportunisticBatching=false",
            "tls-cert-file": self._serving.certificate,
            "tls-private-key-file": self._serving.key,
        }
        command = [self.cluster.programs["kube-scheduler"], *(f"--{name}={value}" for name, value in flags.items())]
        program = machine.start("kube-scheduler", command)
        program.until(lambda: self.cluster.control_plane.answers(self._scheduler_url("/readyz")), "ready")
        return program

    def with_extender(self) -> dict[str, Any]:
        """The configuration that `tessera scheduler config` prints."""
        return scheduler_configuration(
            load_catalogue(), Endpoint(self.url), kubeconfig=str(self._kubeconfig), leader_elect=False
        )

    def without_extender(self) -> dict[str, Any]:
        """kube-scheduler as it comes, with the same limits and looking at as many nodes."""
        ours = self.with_extender()
        return {name: value for name, value in ours.items() if name not in ("profiles", "extenders")}

    def attempts(self) -> float:
        """How often kube-scheduler has tried a pod so far; each asks /filter once at most."""
        return self._sum_of(self._scheduler_url("/metrics"), r"scheduler_schedule_attempts_total{.*}")

    def queued(self, queue: str) -> float:
        """How many pods kube-scheduler has in one of its queues: active, backoff or unschedulable."""
        return self._sum_of(self._scheduler_url("/metrics"), f'scheduler_pending_pods{{queue="{queue}"}}')

    def cpu_s(self) -> dict[str, float]:
        """How long each running program of the machine has worked so far."""
        return {name: _cpu_s(program.pid) for name, program in self.cluster.machine.programs.items() if program.running}

    def filter_calls(self) -> float:
        """How often the extender was asked /filter so far."""
        return self._sum_of(f"{self.url}/metrics", r'tessera_request_seconds_count{verb="/?filter"}')

    def _sum_of(self, url: str, pattern: str) -> float:
        with urllib.request.urlopen(url, timeout=30, context=self._trust) as answer:
            found = re.findall(rf"^{pattern} (\S+)", answer.read().decode(), re.MULTILINE)
        return sum(map(float, found))

    def _scheduler_url(self, path: str) -> str:
        return f"https://{self.cluster.machine.addresses.machine}:{METRICS_PORT}{path}"


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
