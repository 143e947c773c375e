"""The Python client on a cluster with our scheduler: its tour, its waiting, and the troubles that it recognises."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from examples.client.python.hami_client import AuthenticationError, HAMiClient, HAMiError, NotScheduled, connect
from tests.seeds.programs import PYTHON_CLIENT, run_python

TOUR = str(PYTHON_CLIENT / "hami_client.py")
WIDEST = 120


@pytest.fixture
def hami(kubeconfig: Path) -> Iterator[HAMiClient]:
    hami = HAMiClient(str(kubeconfig))
    yield hami
    hami._core.delete_collection_namespaced_pod("default", grace_period_seconds=0)
    hami._api.rest_client.pool_manager.clear()


@pytest.fixture
def strange_node(hami: HAMiClient) -> Iterator[str]:
    """It has the label, and no agent."""
    name = "without-an-agent"
    hami._core.create_node({"metadata": {"name": name, "labels": {"gpu": "on"}}})  # type: ignore[arg-type]
    yield name
    hami._core.delete_node(name)


def test_the_tour_shows_nodes_places_a_pod_and_leaves_nothing_behind(kubeconfig: Path, hami: HAMiClient):
    done = run_python(TOUR, kubeconfig=kubeconfig)
    assert (done.returncode, done.stderr) == (0, "")
    nodes = hami.list_gpu_nodes()
    for node in nodes:
        cards = f"{len(node['devices'])} × {node['devices'][0]['type']}"
        assert re.search(rf"^  {node['name']}  {cards}  +\d+ of \d+ MB in use  +all healthy", done.stdout, re.M)
    names = "|".join(node["name"] for node in nodes)
    assert re.search(rf"^  default/hami-tour-\w+  \w+  ({names})  1000 MB, 10 % of GPU-\S+$", done.stdout, re.M)
    assert done.stdout.endswith("What looks wrong\n  nothing\n")
    assert max(map(len, done.stdout.splitlines())) <= WIDEST
    assert hami.list_gpu_pods() == []


def test_a_read_only_tour_places_nothing(kubeconfig: Path):
    done = run_python(TOUR, "--read-only", kubeconfig=kubeconfig)
    assert done.returncode == 0
    assert "hami-tour" not in done.stdout


def test_a_pod_that_does_not_fit_is_told_with_its_reason(hami: HAMiClient):
    hami.create_gpu_pod("too-large", "default", "none", 1, 900_000)
    info = hami.get_pod_scheduling_info("too-large")
    assert info["node"] is None
    assert info["problem"]
    assert info["problem"].startswith("default/too-large is pending: ")
    assert "no card has 900000 MiB free" in info["problem"]
    assert hami.find_problems() == [info["problem"]]
    with pytest.raises(NotScheduled, match="no card has 900000 MiB"):
        hami.wait_until_scheduled("too-large", wait_s=0.5)


def test_a_pod_that_waits_is_found_as_soon_as_there_is_room(hami: HAMiClient):
    nodes = hami.list_gpu_nodes()
    count = len(nodes[0]["devices"])
    whole = {"image": "none", "gpu_count": count, "gpu_cores": 100}
    for number in range(len(nodes)):
        hami.create_gpu_pod(f"first-{number}", "default", **whole)
        hami.wait_until_scheduled(f"first-{number}")
    hami.create_gpu_pod("second", "default", **whole)
    assert hami.get_pod_scheduling_info("second")["problem"]
    hami.delete_pod("first-0", grace_period_s=0)
    assert len(hami.wait_until_scheduled("second")["allocated_devices"]) == count


def test_a_name_that_is_taken_is_told(hami: HAMiClient):
    hami.create_gpu_pod("twice", "default", "none", gpu_memory_mb=1000)
    with pytest.raises(HAMiError, match=r'^creating pod default/twice failed: pods "twice" already exists \(409\)$'):
        hami.create_gpu_pod("twice", "default", "none", gpu_memory_mb=1000)


def test_a_pod_that_was_made_although_its_answer_was_lost_is_found(hami: HAMiClient, monkeypatch: pytest.MonkeyPatch):
    create = hami._core.create_namespaced_pod
    answers: list[Any] = []

    def lose_the_first_answer(*arguments: Any, **options: Any) -> Any:
        answers.append(None)
        made = create(*arguments, **options)
        if len(answers) == 1:
            raise client.ApiException(504, "Gateway Timeout")
        return made

    monkeypatch.setattr(hami._core, "create_namespaced_pod", lose_the_first_answer)
    assert hami.create_gpu_pod("lost", "default", "none", gpu_memory_mb=1000)["name"] == "lost"
    assert len(answers) == 2


def test_what_the_webhook_refuses_is_told_in_its_words(hami: HAMiClient):
    wrong = {"nvidia.com/numa-bind": "maybe"}
    with pytest.raises(
        HAMiError, match=r'^creating pod default/wrong failed: admission webhook .*numa-bind is "maybe"'
    ):
        hami.create_gpu_pod("wrong", "default", "none", annotations=wrong)


def test_a_node_without_registration_is_told(hami: HAMiClient, strange_node: str):
    (problem,) = hami.find_problems()
    assert problem.startswith(f"{strange_node}: no device is registered")


def test_a_node_whose_agent_fell_silent_is_told(hami: HAMiClient, strange_node: str):
    told = {
        "hami.io/node-nvidia-register": "GPU-s,10,40960,100,NVIDIA A100,0,true:",
        "hami.io/node-handshake-nvidia": "Reported 2024-01-23 04:30:04",
    }
    hami._core.patch_node(strange_node, {"metadata": {"annotations": told}})
    (problem,) = hami.find_problems()
    assert re.match(rf"{strange_node}: the nvidia device plugin last reported \d+ minutes ago", problem)


def test_no_node_with_the_label_is_told(kubeconfig: Path):
    done = run_python(TOUR, "--selector", "gpu=off", kubeconfig=kubeconfig)
    sentence = "no node has the label gpu=off; give it to one: kubectl label node NODE gpu=off"
    assert done.stdout.endswith(f"What looks wrong\n  {sentence}\n")


def test_a_token_that_the_cluster_does_not_know_is_told(kubeconfig: Path):
    known = connect(str(kubeconfig))
    stranger = client.Configuration(host=known.host, api_key={"authorization": "Bearer nobody"})
    stranger.ssl_ca_cert = known.ssl_ca_cert
    with pytest.raises(AuthenticationError, match="does not accept our credentials"):
        HAMiClient(configuration=stranger).list_gpu_nodes()


def test_the_tour_ends_in_one_sentence_where_there_is_no_cluster(kubeconfig: Path, tmp_path: Path):
    done = run_python(TOUR, "--kubeconfig", str(tmp_path / "none"), kubeconfig=kubeconfig)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.strip().startswith(f"{tmp_path}/none is no kubeconfig that can be used (")
    assert len(done.stderr.strip().splitlines()) == 1
