"""The samples of seed 4, each in a process of its own with torch, on both engines.

Most of them are parts of a program: they await at the top level, and speak of a `compute` that another sample makes. So
each is run as part of a coroutine, after the sample that makes the Compute where it needs one.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed.fixtures import require
from tests.contract.command_line import CommandLine
from tests.operators.compute_life import IMAGE, ComputeEngine
from tests.repository.files import ROOT
from tests.repository.test_links import ELSEWHERE, LINK
from tests.seeds.samples import Sample, find_seed, samples_of, seeds_directory

PATIENCE_S = 120
PACKAGE = ROOT / "sdk/kpu/src"
RUN = """
import ast, asyncio, sys
program = compile(sys.stdin.read(), "sample", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
names = {"__name__": "__main__"}
async def run():
    running = eval(program, names)
    if running is not None:
        await running
asyncio.run(run())
"""
IMPORTS = "import torch\nfrom kpu.client import Compute\n"
QUICK_START, CONFIGURING, CREATING, WAITING, SENDING, RECEIVING, STREAMING, SUSPENDING, DELETING, BLOCK = range(10)
EXTERNAL, STATUS, INITIALISING = range(10, 13)

RunSample = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def guide() -> str:
    found = find_seed(4)
    if found is None:
        pytest.skip(f"seed 4 is not in {seeds_directory()}: its samples are not tested; set TESSERA_SEEDS")
    return found.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def samples(guide: str) -> tuple[Sample, ...]:
    return samples_of(guide, "python")


@pytest.fixture(scope="session")
def python_with_torch() -> str:
    found = os.environ.get("TESSERA_TORCH_PYTHON") or str(ROOT / ".venv-torch/bin/python")
    require(Path(found).exists(), f"no interpreter with torch at {found}; make .venv-torch or set TESSERA_TORCH_PYTHON")
    return found


@pytest.fixture
def run(
    samples: tuple[Sample, ...],
    python_with_torch: str,
    compute_engine: ComputeEngine,
    kubectl: CommandLine,
    namespace: str,
    tmp_path: Path,
) -> Iterator[RunSample]:
    """Runs a program where the current context has the test's namespace."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_bytes(compute_engine.kubeconfig.read_bytes())
    kubectl(f"--kubeconfig={kubeconfig}", "config", "set-context", "--current", f"--namespace={namespace}")
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "PYTHONPATH": str(PACKAGE)}

    def run(position: int, *, before: str = "", after: str = "", as_coroutine: bool = True):
        program = f"{before}\n{samples[position].text}\n{after}"
        return subprocess.run(
            [python_with_torch, "-c", RUN] if as_coroutine else [python_with_torch, "-"],
            input=program,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

    yield run
    kubectl("delete", "computes", "--all")


def printed(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def with_a_compute(samples: tuple[Sample, ...]) -> str:
    return IMPORTS + samples[CREATING].text


def test_every_sample_is_run_here(samples):
    assert len(samples) == 13, "a sample was added or removed: give it a test here"


def test_the_quick_start_receives_a_tensor(run):
    assert printed(run(QUICK_START, as_coroutine=False)) == ["Received: torch.Size([10, 10])"]


def test_a_configuration_of_ones_own_is_taken(run):
    assert printed(run(CONFIGURING)) == []


def test_a_compute_is_created_with_its_environment_and_labels(run, kubectl):
    printed(run(CREATING, before="from kpu.client import Compute"))
    assert kubectl("get", "computes", "-l", "team=ml,env=prod", "-o", "jsonpath={.items[*].spec.env[*].name}") == (
        "LOG_LEVEL CHUNK_SIZE"
    )


def test_it_is_waited_for_in_three_ways(run, with_a_compute, kubectl):
    printed(run(WAITING, before=with_a_compute))
    assert kubectl("get", "computes", "-o", "name") == ""


def test_two_tensors_are_sent(run, with_a_compute):
    assert printed(run(SENDING, before=with_a_compute)) == ["Received 2 tensor(s)"]


def test_two_tensors_are_received(run, with_a_compute):
    assert printed(run(RECEIVING, before=with_a_compute)) == [
        "Tensor 0: torch.Size([20, 20])",
        "Tensor 1: torch.Size([20, 20])",
    ]


def test_what_is_streamed_comes_back(run, with_a_compute):
    same = "print([torch.equal(*pair) for pair in zip(input_tensors, output_tensors, strict=True)])"
    assert printed(run(STREAMING, before=with_a_compute, after=same)) == ["[True, True]"]


def test_it_is_suspended_and_resumed(run, with_a_compute):
    assert printed(run(SUSPENDING, before=with_a_compute, after="print(compute.resource.spec.suspend)")) == ["False"]


def test_it_is_deleted_twice_with_two_graces(run, with_a_compute, kubectl):
    printed(run(DELETING, before=with_a_compute))
    assert kubectl("get", "computes", "-o", "name") == ""


def test_a_block_deletes_it(run, samples, kubectl):
    """The sample leaves the image out in a way that is no Python: it is put there."""
    assert '"my-compute", ...)' in samples[BLOCK].text
    told = samples[BLOCK].text.replace("...)", f"image={IMAGE!r})")
    done = run(CONFIGURING, before=f"{IMPORTS}tensor = torch.randn(8)\n{told}\nraise SystemExit")
    assert printed(done) == []
    assert kubectl("get", "computes", "-o", "name") == ""


def test_access_from_outside_names_a_host(run, kubectl):
    used = "print(compute.namespace, compute.name)"
    assert printed(run(EXTERNAL, after=used)) == ["default my-compute"]
    kubectl("delete", "compute", "my-compute", "--namespace=default")


def test_its_conditions_can_be_read(run, with_a_compute):
    lines = printed(run(STATUS, before=f"{with_a_compute}\nawait compute.ready()"))
    assert lines[0] == "Compute is ready!"
    assert "Ready=True" in lines


def test_init_is_shown_in_two_ways_of_which_one_process_can_have_one(run):
    done = run(INITIALISING)
    assert "RuntimeError: kpu.client is already initialised" in done.stderr


def test_the_example_runs_whole(compute_engine: ComputeEngine, kubectl: CommandLine):
    environment = {**os.environ, "KUBECONFIG": str(compute_engine.kubeconfig), "KPU_EXAMPLE_IMAGE": IMAGE}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "kpu.client.example_compute"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    for line in ("received a tensor of shape (20, 20)", "2 tensors came back", "suspended, ready: False"):
        assert line in done.stdout
    assert "used while it is suspended: Compute default/example-errors-suspended is suspended" in done.stdout
    assert kubectl("get", "computes", "-n", "default", "-o", "name") == ""


def test_what_the_guide_links_to_is_there(guide):
    links = [link for link in LINK.findall(guide) if not ELSEWHERE.match(link)]
    assert links
    assert [link for link in links if not (PACKAGE / "kpu/client" / link).exists()] == []
