"""The samples of our own guides, run as their readers would run them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client, config

from tests.chart.charts import Rendered
from tests.repository.files import ROOT
from tests.seeds.programs import run_python
from tests.seeds.samples import Sample, samples_of, with_what_it_needs
from tests.seeds.shell import Shell, commands_of

DEVELOP = sorted((ROOT / "docs/develop").glob("*.md"))
PYTHON_PAGES = [ROOT / "docs/develop/client-api.md", ROOT / "examples/client/python/README.md"]


def python_samples() -> Iterator[tuple[Path, Sample, list[Sample]]]:
    for page in PYTHON_PAGES:
        samples = list(samples_of(page.read_text(), "python"))
        yield from ((page, sample, samples[: sample.position]) for sample in samples)


def commands() -> list[str]:
    lines = [line for page in DEVELOP for one in samples_of(page.read_text(), "bash") for line in commands_of(one)]
    return [line for line in lines if "kube-system" not in line]


@pytest.fixture(scope="module")
def shell(kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(kubeconfig, tmp_path_factory.mktemp("cache"))


@pytest.fixture
def _no_pods_stay(kubeconfig: Path) -> Iterator[None]:
    yield
    with config.new_client_from_config(str(kubeconfig)) as connection:
        client.CoreV1Api(connection).delete_collection_namespaced_pod("default", grace_period_seconds=0)
        connection.rest_client.pool_manager.clear()


@pytest.mark.usefixtures("_no_pods_stay")
@pytest.mark.parametrize(
    ("page", "sample", "earlier"),
    [pytest.param(*one, id=f"{one[0].name}-{one[1].section}-{one[1].position}") for one in python_samples()],
)
def test_a_python_sample_runs(page: Path, sample: Sample, earlier: list[Sample], kubeconfig: Path):
    done = run_python("-c", with_what_it_needs(sample, earlier), kubeconfig=kubeconfig)
    assert done.returncode == 0, f"{page}: {done.stderr}"
    assert done.stdout or "print" not in sample.text or "find_problems" in sample.text


@pytest.mark.parametrize("command", commands())
def test_a_command_runs(command: str, shell: Shell):
    shell.run(command)


@pytest.mark.usefixtures("kubeconfig")  # where there is a cluster there is helm
def test_the_objects_in_kube_system_that_commands_name_are_those_of_the_chart():
    """They exist where the chart is installed, and not on every engine."""
    lines = [line for page in DEVELOP for line in page.read_text().splitlines() if line.startswith("kubectl logs")]
    assert lines == ["kubectl logs -n kube-system deployment/hami-scheduler"]
    installed = Rendered()
    for kind, name in (("Deployment", "hami-scheduler"), ("DaemonSet", "hami-device-plugin")):
        assert installed.get(kind, name)["metadata"]["namespace"] == "kube-system"


def test_the_role_of_the_guide_is_accepted_by_the_cluster(shell: Shell):
    (role,) = [
        one.text for page in DEVELOP for one in samples_of(page.read_text(), "yaml") if "ClusterRole" in one.text
    ]
    shell.run("kubectl apply --dry-run=server -f -", input=role)
