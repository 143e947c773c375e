"""Samples of seed 5 on the embedded engine, as they stand there: its integration test, and those that make jobs.

Samples that wait for what they made are not among them: this machine has neither their training programs nor as many
processors as they ask for. The asynchronous one waits, so it is given a program that fails.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.building import Programs
from testbed.fixtures import require_testbed
from testbed.mpi import install_mpi
from tests.contract.command_line import CommandLine
from tests.contract.waiting import eventually
from tests.embedded.whole_engine import WholeEngine
from tests.seeds.samples import Sample, find_seed, samples_of, seeds_directory

PATIENCE_S = 100
NAMESPACES = ("test-namespace", "my-project", "ml-team")
BASIC, ADVANCED, EXCEPTIONS, HINTS = (
    "Basic Job Submission",
    "Advanced Configuration with Volumes",
    "Exception Hierarchy",
    "Type Hints and IDE Support",
)
IMPORTS = "from openshift_ai_sdk.training import MPIJob, ResourceRequirements\n"
FIXTURE = """
import pytest
def pytest_configure(config):
    config.addinivalue_line("markers", "integration: needs a cluster")
@pytest.fixture
def k8s_cluster():
    pass
"""


@pytest.fixture(scope="module")
def samples() -> tuple[Sample, ...]:
    found = find_seed(5)
    if found is None:
        pytest.skip(f"seed 5 is not in {seeds_directory()}: its samples are not tested; set TESSERA_SEEDS")
    return samples_of(found.read_text(encoding="utf-8"), "python")


@pytest.fixture(scope="module")
def seed_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """An engine on a machine that has MPI, with the namespaces that the seed speaks of."""
    require_testbed()
    path = f"{install_mpi('openmpi').programs}:{os.environ['PATH']}"
    engine = WholeEngine(
        tmp_path_factory.mktemp("seed"), "--nodes", "2", "--cards", "2xA100-SXM4-80GB", environment={"PATH": path}
    )
    with engine.running(), pytest.MonkeyPatch.context() as environment:
        kubectl = CommandLine(Programs()["kubectl"], engine.kubeconfig, tmp_path_factory.mktemp("kubectl"))
        for namespace in NAMESPACES:
            kubectl("create", "namespace", namespace)
            eventually(lambda where=namespace: "default" in kubectl("get", "sa", "-n", where, "-o", "name"))
        environment.setenv("KUBECONFIG", str(engine.kubeconfig))
        yield kubectl


def run(arguments: list[str], where: Path, text: str = "") -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        input=text,
        cwd=where,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def sample_in(samples: tuple[Sample, ...], section: str) -> str:
    (found,) = [sample.text for sample in samples if sample.section == section]
    return found


@pytest.mark.usefixtures("seed_cluster")
def test_the_integration_test_passes_as_it_stands(samples, tmp_path):
    (tmp_path / "conftest.py").write_text(FIXTURE)
    text = "import pytest\n" + IMPORTS + sample_in(samples, "Integration Tests")
    (tmp_path / "test_of_the_seed.py").write_text(text)
    said = run(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)], tmp_path)
    assert "1 passed" in said


@pytest.mark.parametrize(
    ("section", "namespace", "name"),
    [
        (BASIC, "my-project", "pytorch-distributed"),
        (ADVANCED, "ml-team", "llm-fine-tuning"),
        (EXCEPTIONS, "my-project", "my-job"),
        (HINTS, "default", "my-job"),
    ],
)
def test_a_sample_makes_the_job_that_it_describes(samples, seed_cluster, tmp_path, section, namespace, name):
    run(["-"], tmp_path, IMPORTS + sample_in(samples, section))
    assert seed_cluster("get", "mpijob", name, "-n", namespace, "-o", "name").strip() == f"mpijob.kubeflow.org/{name}"
    seed_cluster("delete", "mpijob", name, "-n", namespace)


def test_the_sample_of_the_asynchronous_job_runs_to_its_end_when_its_job_fails(samples, seed_cluster, tmp_path):
    """It has no program to run: the launcher fails, and the sample says so."""
    text = sample_in(samples, "Async Support (Future Enhancement)")
    told = text.replace('image="my-image"', 'image="my-image", command=["false"], backoff_limit=0')
    assert "Completed: Failed" in run(["-"], tmp_path, told)
    seed_cluster("delete", "mpijob", "my-job")
