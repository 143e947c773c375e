"""The life of an engine: it leaves nothing behind when it ends, and is all there when it comes back."""

import os
import signal

import pytest

from tests.contract.api import Api
from tests.contract.running import is_ready
from tests.contract.waiting import eventually
from tests.embedded.runtime.processes import pids_with
from tests.embedded.whole_engine import WholeEngine
from tests.up.making import FOREVER, gpu_pod, wait_for

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: my-scheduler
    plugins:
      filter: {enabled: [{name: GpuClaimPlugin}]}
      reserve: {enabled: [{name: GpuClaimPlugin}]}
"""


@pytest.fixture
def engine(lone_engine):
    return lone_engine


@pytest.fixture
def word(tmp_path):
    """What the processes of the test's pods can be told by."""
    return f"run-of-{tmp_path.name}"


def start_pod(engine, word):
    """A pod that runs for as long as it is let, and all that is known of it."""
    with Api(engine.kubeconfig) as api:
        pods = api.collection("pods", "default")
        body = gpu_pod("lasting", f": {word}; {FOREVER}", memory_mib=1000, restartPolicy="Always")
        pods.create(body)
        return wait_for(pods, "lasting", is_ready)


def test_down_ends_every_process_and_a_later_up_finds_the_pod_and_its_card_again(engine, word):
    assert engine.up().returncode == 0
    before, url = start_pod(engine, word), _url(engine)
    assert pids_with(word)
    assert engine.down().returncode == 0
    assert not pids_with(str(engine.state))
    assert not pids_with(word)
    assert engine.up().returncode == 0
    assert _url(engine) == url
    with Api(engine.kubeconfig) as api:
        again = wait_for(api.collection("pods", "default"), "lasting", lambda pod: is_ready(pod) and _restarts(pod))
    assert again["metadata"]["uid"] == before["metadata"]["uid"]
    assert again["metadata"]["annotations"] == before["metadata"]["annotations"]


def test_a_later_up_may_have_fewer_nodes_and_other_names_of_schedulers(engine, tmp_path):
    assert engine.up("--nodes", "2").returncode == 0
    engine.down()
    config = tmp_path / "scheduler.yaml"
    config.write_text(CONFIG)
    assert engine.up("--nodes", "1", "--scheduler-config", str(config)).returncode == 0
    with Api(engine.kubeconfig) as api:
        nodes, pods = api.collection("nodes"), api.collection("pods", "default")
        eventually(lambda: [node["metadata"]["name"] for node in nodes.listing()["items"]] == ["node-a"])
        pods.create(gpu_pod("named", schedulerName="my-scheduler", memory_mib=1000))
        wait_for(pods, "named", is_ready)


def test_an_engine_that_is_killed_leaves_no_process_and_can_be_started_again(engine, word):
    assert engine.up().returncode == 0
    start_pod(engine, word)
    os.kill(engine.process, signal.SIGKILL)
    eventually(lambda: not pids_with(word))
    assert engine.up().returncode == 0


def test_interrupted_it_ends_as_when_it_is_told_to(engine, word):
    assert engine.up().returncode == 0
    start_pod(engine, word)
    os.kill(engine.process, signal.SIGINT)
    eventually(lambda: not pids_with(str(engine.state)))
    assert not pids_with(word)


def test_it_says_to_a_shell_how_it_is_reached_and_leaves_the_users_own_configuration_alone(engine, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    engine = WholeEngine(tmp_path, environment={"HOME": str(home)})
    said = engine.up("--nodes", "1")
    assert said.stdout == f"export KUBECONFIG={engine.kubeconfig}\n"
    assert list(home.iterdir()) == []
    engine.down()


def test_without_a_directory_it_keeps_its_state_where_xdg_says(tmp_path):
    engine = WholeEngine(tmp_path, environment={"XDG_STATE_HOME": str(tmp_path)})
    assert engine.command("down").stderr == f"no engine runs in {tmp_path}/tessera\n"


def _url(engine):
    with Api(engine.kubeconfig) as api:
        return api.url


def _restarts(pod):
    return sum(one["restartCount"] for one in pod["status"]["containerStatuses"])


def test_a_cluster_that_is_there_is_used_and_none_is_started(engine):
    assert engine.up().returncode == 0
    done = engine.command("up", "--cluster", str(engine.kubeconfig))
    assert (done.returncode, done.stdout) == (0, f"export KUBECONFIG={engine.kubeconfig}\n")
    assert "answers; nothing was started" in done.stderr
    refused = engine.command("up", "--cluster", str(engine.kubeconfig), "--nodes", "2")
    assert (refused.returncode, refused.stderr) == (
        1,
        "tessera: --cluster uses a cluster that is there and --nodes is about a new one; drop one\n",
    )
    engine.down()
    assert engine.command("up", "--cluster", str(engine.kubeconfig)).returncode == 1
