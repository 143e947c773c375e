"""The samples of our own guides, run as their readers would run them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client, config

from testbed.building import Programs
from tests.chart.charts import Rendered
from tests.repository.files import ROOT
from tests.seeds.programs import run_python
from tests.seeds.samples import Sample, samples_of, with_what_it_needs

DEVELOP = sorted((ROOT / "docs/develop").glob("*.md"))
PYTHON_PAGES = [ROOT / "docs/develop/client-api.md", ROOT / "examples/client/python/README.md"]
PATIENCE_S = 60


def python_samples() -> Iterator[tuple[Path, Sample, list[Sample]]]:
    for page in PYTHON_PAGES:
        samples = list(samples_of(page.read_text(), "python"))
        yield from ((page, sample, samples[: sample.position]) for sample in samples)


def commands() -> list[str]:
    lines = [
        line for page in DEVELOP for sample in samples_of(page.read_text(), "bash") for line in sample.text.splitlines()
    ]
    return [line for line in lines if "kube-system" not in line]


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
def test_a_command_runs(command: str, kubeconfig: Path):
    path = os.pathsep.join([str(Programs()["kubectl"].parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        env=os.environ | {"PATH": path, "KUBECONFIG": str(kubeconfig)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("kubeconfig")  # where there is a cluster there is helm
def test_the_objects_in_kube_system_that_commands_name_are_those_of_the_chart():
    """They exist where the chart is installed, and not on every engine."""
    lines = [line for page in DEVELOP for line in page.read_text().splitlines() if line.startswith("kubectl logs")]
    assert lines == ["kubectl logs -n kube-system deployment/hami-scheduler"]
    installed = Rendered()
    for kind, name in (("Deployment", "hami-scheduler"), ("DaemonSet", "hami-device-plugin")):
        assert installed.get(kind, name)["metadata"]["namespace"] == "kube-system"


def test_the_role_of_the_guide_is_accepted_by_the_cluster(kubeconfig: Path):
    (role,) = [
        one.text for page in DEVELOP for one in samples_of(page.read_text(), "yaml") if "ClusterRole" in one.text
    ]
    done = subprocess.run(
        [Programs()["kubectl"], "apply", "--dry-run=server", "-f", "-"],
        env=os.environ | {"KUBECONFIG": str(kubeconfig)},
        input=role,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
