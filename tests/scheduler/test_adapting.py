"""A stock kube-scheduler runs what is made of a configuration that names GpuClaimPlugin."""

import ssl
import subprocess
import urllib.request
from collections.abc import Iterator

import pytest
import yaml

from testbed.cluster import Cluster
from testbed.fixtures import NewCluster
from testbed.requirements import TestbedFailed
from tests.scheduler.conftest import Scheduling, a_pod
from tests.scheduler.extender_process import TESSERA

PHASES = ("preFilter", "filter", "score", "reserve", "preBind")
ASKED_FOR = yaml.safe_dump(
    {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "gpu-scheduler",
                "plugins": {phase: {"enabled": [{"name": "GpuClaimPlugin"}]} for phase in PHASES},
            }
        ],
    }
)
NIC = {"name": "example.com/nic"}
RICH = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "parallelism": 4,
    "leaderElection": {"leaderElect": False},
    "profiles": [
        {
            "schedulerName": "gpu-scheduler",
            "plugins": {
                "multiPoint": {"enabled": [{"name": "GpuClaimPlugin"}, {"name": "NodeResourcesFit", "weight": 2}]},
                "score": {
                    "enabled": [{"name": "NodeAffinity", "weight": 5}],
                    "disabled": [{"name": "InterPodAffinity"}, {"name": "GpuClaimPlugin"}],
                },
            },
            "pluginConfig": [
                {"name": "GpuClaimPlugin", "args": {"leases": "default"}},
                {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}},
            ],
        },
        {"schedulerName": "default-scheduler", "plugins": {"score": {"disabled": [{"name": "*"}]}}},
    ],
    "extenders": [{"urlPrefix": "http://127.0.0.1:9", "filterVerb": "filter", "managedResources": [NIC]}],
}


class SchedulingBySeed(Scheduling):
    def scheduler_config(self, printed: str) -> str:
        kubeconfig = yaml.safe_load(printed)["clientConnection"]["kubeconfig"]
        return adapt(ASKED_FOR, "--extender-url", self.extender.url, "--kubeconfig", kubeconfig, "--no-leader-elect")


def adapt(text: str, *flags: str) -> str:
    command = [*TESSERA, "scheduler", "config", "--from", "-", *flags]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def cluster(new_cluster: NewCluster) -> Iterator[Cluster]:
    cluster = new_cluster(simulated_nodes=1)
    cluster.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s")
    yield cluster
    cluster.stop()


@pytest.fixture
def kubeconfig(cluster: Cluster) -> str:
    return str(cluster.control_plane.kubeconfig_for("system:kube-scheduler"))


def start(cluster: Cluster, config: str) -> None:
    """Start kube-scheduler with this configuration and wait until it is healthy."""
    path = cluster.machine.directory / "adapted.yaml"
    path.write_text(config)
    cluster.control_plane.start_scheduler(path).until(lambda: is_healthy(cluster), "healthy")


def is_healthy(cluster: Cluster) -> bool:
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE  # its certificate is of its own making
    try:
        url = f"https://{cluster.machine.addresses.machine}:10259/healthz"
        with urllib.request.urlopen(url, timeout=5, context=anybody) as answer:
            return answer.status == 200
    except OSError:
        return False


def test_kube_scheduler_does_not_know_the_plugin(cluster: Cluster, kubeconfig: str):
    given = yaml.safe_load(ASKED_FOR) | {"clientConnection": {"kubeconfig": kubeconfig}}
    with pytest.raises(TestbedFailed, match="GpuClaimPlugin"):
        start(cluster, yaml.safe_dump(given))


def test_it_runs_what_is_made_of_a_configuration_with_much_else_in_it(cluster: Cluster, kubeconfig: str):
    start(cluster, adapt(yaml.safe_dump(RICH), "--kubeconfig", kubeconfig))


def test_a_pod_of_the_seed_s_profile_gets_a_card(cluster: Cluster):
    scheduling = SchedulingBySeed(cluster)
    scheduling.create(a_pod("trainer", memory=1000, schedulerName="gpu-scheduler"))
    scheduling.wait_until_running("trainer")
    assert list(scheduling.cards_in_use().values()) == [1000]
    scheduling.extender.stop()
