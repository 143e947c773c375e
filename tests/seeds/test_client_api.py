"""The samples of seed 1, each in a process of its own, on a cluster with our scheduler."""

import ast
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config
from kubernetes.utils.quantity import parse_quantity

from tests.repository.files import ROOT
from tests.repository.test_links import ELSEWHERE, LINK
from tests.seeds.java import Compiler, require_java, with_declarations
from tests.seeds.programs import run_python
from tests.seeds.samples import Sample, arguments_of, samples_of, with_what_it_needs

NAMESPACE = "default"


@pytest.fixture(scope="session")
def guide(seed: Callable[[int], str]) -> str:
    """Asked for before the cluster, which nobody needs without it."""
    return seed(1)


@pytest.fixture(scope="session")
def samples(guide: str) -> tuple[Sample, ...]:
    return samples_of(guide, "python")


@pytest.fixture(scope="module")
def core(kubeconfig: Path) -> Iterator[client.CoreV1Api]:
    """The API, to see what came of a sample and to clear up after it."""
    configuration = client.Configuration()
    config.load_kube_config(str(kubeconfig), client_configuration=configuration)
    with client.ApiClient(configuration) as connection:
        core = client.CoreV1Api(connection)
        yield core
        core.delete_collection_namespaced_pod(NAMESPACE, grace_period_seconds=0)
        connection.rest_client.pool_manager.clear()


def run(samples: Sequence[Sample], position: int, kubeconfig: Path) -> str:
    program = with_what_it_needs(samples[position], samples[:position])
    done = run_python("-c", program, kubeconfig=kubeconfig)
    assert done.returncode == 0, f"sample {position}, {samples[position].section}: {done.stderr}"
    assert not done.stderr
    return done.stdout


def test_every_python_sample_is_run_here(samples):
    assert len(samples) == 3, "a sample was added or removed: give it a test here"


def test_nodes_are_listed_with_their_cards(samples, kubeconfig, core):
    printed = run(samples, 0, kubeconfig)
    nodes = core.list_node(label_selector="gpu=on").items
    assert nodes
    assert [line.partition(": ")[0] for line in printed.splitlines()] == [node.metadata.name for node in nodes]
    for line in printed.splitlines():
        devices = ast.literal_eval(line.partition(": ")[2])
        assert devices
        assert all(device["healthy"] and device["memory_mb"] for device in devices)


def test_a_pod_is_created_and_then_found_with_its_node_and_cards(samples, kubeconfig, core):
    asked = arguments_of(samples[1], "create_gpu_pod")
    run(samples, 1, kubeconfig)
    assert limits_of(core.read_namespaced_pod(asked["pod_name"], asked["namespace"])) == {
        "nvidia.com/gpu": asked["gpu_count"],
        "nvidia.com/gpumem": asked["gpu_memory_mb"],
        "nvidia.com/gpucores": asked["gpu_cores"],
    }
    *_, node, devices = run(samples, 2, kubeconfig).splitlines()
    bound = core.read_namespaced_pod(asked["pod_name"], asked["namespace"])
    assert node.endswith(f": {bound.spec.node_name}")
    cards = ast.literal_eval(devices.partition(": ")[2])
    assert flat_list_of(cards) == bound.metadata.annotations["hami.io/devices-to-allocate"]
    assert len(cards) == asked["gpu_count"]


def limits_of(pod: Any) -> dict[str, int]:
    limits = pod.spec.containers[0].resources.limits
    return {name: int(parse_quantity(figure)) for name, figure in limits.items()}


def flat_list_of(cards: list[dict[str, Any]]) -> str:
    return "".join(f"{card['uuid']},{card['type']},{card['memory_mb']},{card['cores']}:" for card in cards)


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    require_java()
    return Compiler(tmp_path_factory.mktemp("java"))


@pytest.mark.timeout(300)  # the first who needs Java's libraries has them fetched
def test_the_java_samples_list_create_and_find(guide, compiler, kubeconfig, core):
    samples = samples_of(guide, "java")
    assert len(samples) == 3, "a sample was added or removed: give it a test here"
    core.delete_collection_namespaced_pod(NAMESPACE, grace_period_seconds=0)
    listing, _, finding = (
        compiler.run(f"Sample{one.position}", with_declarations(one, samples[: one.position]), kubeconfig)
        for one in samples
    )
    assert len(listing.splitlines()) == len(core.list_node(label_selector="gpu=on").items)
    (pod,) = core.list_namespaced_pod(NAMESPACE).items
    node, devices = finding.splitlines()
    assert node.endswith(f": {pod.spec.node_name}")
    assert devices.count("GPU-") == limits_of(pod)["nvidia.com/gpu"]


def test_the_quick_start_of_the_python_client_shows_the_cluster(guide, kubeconfig):
    lines = [line for sample in samples_of(guide, "bash") for line in sample.text.splitlines()]
    (quick_start,) = [shlex.split(line) for line in lines if line.startswith("python ")]
    done = run_python(*quick_start[1:], kubeconfig=kubeconfig)
    assert done.returncode == 0, done.stderr
    assert "gpu=on" in done.stdout


def test_the_examples_are_where_the_guide_shows_them(guide):
    """The tree that the guide draws, read by its indentation."""
    (drawn,) = [sample.text for sample in samples_of(guide, "") if "├──" in sample.text]
    root, *lines = [line.partition("#")[0].rstrip() for line in drawn.splitlines()]
    path = [root]
    for line in lines:
        indentation, _, name = line.partition("── ")
        path[len(indentation) // 4 + 1 :] = [name]
        assert (ROOT / "/".join(path)).exists(), f"{'/'.join(path)} is missing"


def test_what_the_guide_links_to_is_there(guide):
    """As if the guide were docs/develop/client-api.md, where its links come from."""
    links = [link for link in LINK.findall(guide) if not ELSEWHERE.match(link)]
    assert len(links) >= 6
    missing = [link for link in links if not (ROOT / "docs/develop" / link).exists()]
    assert missing == []
