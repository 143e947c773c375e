"""What seed 3 tells whoever installs: its helm commands, and its configuration of kube-scheduler."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from testbed.cluster import Cluster
from testbed.fixtures import NewCluster
from tests.embedded.server import Server
from tests.embedded.whole_engine import WholeEngine
from tests.scheduler.extender_process import TESSERA
from tests.scheduler.test_adapting import start as start_kube_scheduler
from tests.seeds.claims import a_claim, a_pod, create, wait_until_bound
from tests.seeds.engines import name_of_chosen_engine
from tests.seeds.samples import samples_of
from tests.seeds.shell import Shell, commands_of

RELEASE = "gpu-scheduler"


@pytest.fixture(scope="module")
def guide(seed: Callable[[int], str]) -> str:
    """Asked for before any cluster, which nobody needs without it."""
    return seed(3)


@pytest.fixture(scope="module")
def bare_cluster(guide: str, new_cluster: NewCluster) -> Iterator[Cluster]:
    del guide
    cluster = new_cluster(controllers=False)
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def bare_kubeconfig(guide: str, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Of an API server that keeps objects, and nobody who acts on them."""
    del guide
    if name_of_chosen_engine() == "kubernetes":
        yield request.getfixturevalue("bare_cluster").kubeconfig
        return
    server = Server(request.getfixturevalue("tmp_path_factory").mktemp("bare"))
    yield server.kubeconfig
    server.stop()


@pytest.fixture(scope="module")
def bare_shell(bare_kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(bare_kubeconfig, tmp_path_factory.mktemp("cache"))


@pytest.mark.timeout(180)
def test_every_helm_command_does_what_it_says(guide, bare_shell):
    commands = [line for one in samples_of(guide, "bash") for line in commands_of(one) if line.startswith("helm")]
    assert len(commands) == 5, "a command was added or removed: see that it has what it needs"
    for command in commands:
        make_ready_for(command, bare_shell)
        printed = bare_shell.run(command)
        assert printed
        assert is_installed(bare_shell) == ("uninstall" not in command)
        if "--set" in command:
            name, _, value = command.split("--set")[1].strip().partition("=")
            assert chosen(bare_shell, name) == value


def make_ready_for(command: str, shell: Shell) -> None:
    """An install needs that there is no release, everything else that there is one."""
    is_install = command.startswith("helm install ")
    if is_install and is_installed(shell):
        shell.run(f"helm uninstall {RELEASE}")
    if not is_install and not is_installed(shell):
        shell.run(f"helm install {RELEASE} charts/gpu-scheduler")


def is_installed(shell: Shell) -> bool:
    return RELEASE in shell.run("helm list --short").split()


def chosen(shell: Shell, name: str) -> object:
    value = json.loads(shell.run(f"helm get values {RELEASE} -o json"))
    for part in name.split("."):
        value = value[part]
    return value


@pytest.fixture(scope="module")
def configuration(guide: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    (text,) = [one.text for one in samples_of(guide, "yaml") if "KubeSchedulerConfiguration" in one.text]
    path = tmp_path_factory.mktemp("configuration") / "scheduler.yaml"
    path.write_text(text)
    return path


def test_the_configuration_becomes_one_with_our_extender(configuration):
    adapted = adapt(configuration)
    given = yaml.safe_load(configuration.read_text())
    names = [profile["schedulerName"] for profile in yaml.safe_load(adapted)["profiles"]]
    assert names == [profile["schedulerName"] for profile in given["profiles"]]
    assert yaml.safe_load(adapted)["extenders"]
    assert "GpuClaimPlugin" not in adapted


def adapt(configuration: Path, *flags: str) -> str:
    command = [*TESSERA, "scheduler", "config", "--from", str(configuration), *flags]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_the_engine_works_by_the_configuration(configuration, request):
    PROVED_BY[name_of_chosen_engine()](configuration, request)


def runs_in_kube_scheduler(configuration: Path, request: pytest.FixtureRequest) -> None:
    cluster: Cluster = request.getfixturevalue("bare_cluster")
    kubeconfig = cluster.control_plane.kubeconfig_for("system:kube-scheduler")
    start_kube_scheduler(cluster, adapt(configuration, "--kubeconfig", str(kubeconfig)))


def places_pods_of_its_profile(configuration: Path, request: pytest.FixtureRequest) -> None:
    directory: Path = request.getfixturevalue("tmp_path")
    (profile,) = yaml.safe_load(configuration.read_text())["profiles"]
    options = ("--nodes=1", "--cards=1xA100-SXM4-80GB", f"--scheduler-config={configuration}")
    with WholeEngine(directory, *options).running() as engine:
        shell = Shell(engine.kubeconfig, directory / "cache")
        create(shell, a_claim("mine"))
        mine = {"gpu.scheduling/claim": "mine"}
        create(shell, a_pod("placed", annotations=mine, schedulerName=profile["schedulerName"]))
        assert wait_until_bound(shell, "mine")["allocated"] == "node-a:0"


PROVED_BY = {"kubernetes": runs_in_kube_scheduler, "embedded": places_pods_of_its_profile}
