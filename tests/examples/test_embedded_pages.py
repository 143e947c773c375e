"""What README.md, docs/claims.md and docs/embedded.md show, run on the embedded engine as their readers would."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.fixtures import require_testbed
from tests.embedded.whole_engine import WholeEngine
from tests.repository.files import ROOT
from tests.seeds.samples import samples_of
from tests.seeds.shell import Shell, commands_of

README, CLAIMS, EMBEDDED = ROOT / "README.md", ROOT / "docs/claims.md", ROOT / "docs/embedded.md"
OF_PODS = {"training": "training-gpus", "with-a-pair": "pair"}
"""The claim of each pod that the pages show."""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """With everything there that the pages speak of."""
    require_testbed()
    directory = tmp_path_factory.mktemp("engine")
    with WholeEngine(directory, "--nodes=2", "--cards=4xA100-SXM4-80GB").running() as engine:
        shell = Shell(engine.kubeconfig, directory / "cache")
        for page in (README, CLAIMS):
            for sample in samples_of(page.read_text(), "yaml"):
                shell.run("kubectl apply -f -", input=sample.text)
        for claim in OF_PODS.values():
            shell.run(f"kubectl wait --for=condition=Allocated gclaim/{claim} --timeout=30s")
        shell.run("kubectl wait --for=create gns/node-a --timeout=30s")
        yield shell


def kubectl_commands(page: Path) -> list[str]:
    lines = [line for sample in samples_of(page.read_text(), "bash") for line in commands_of(sample)]
    return [line for line in lines if line.startswith("kubectl")]


@pytest.mark.parametrize("command", [*kubectl_commands(CLAIMS), *kubectl_commands(EMBEDDED)])
def test_a_command_shows_something(command: str, shell: Shell):
    if "-w" in command.split():
        shell.run_until(command, "training-gpus")
    else:
        assert shell.run(command)


@pytest.mark.parametrize("pod", OF_PODS)
def test_a_pod_that_is_shown_has_the_cards_of_its_claim(pod: str, shell: Shell):
    said = shell.run(f"kubectl get pod {pod} -o jsonpath={{.metadata.annotations.gpu\\\\.scheduling/allocated}}")
    assert said
    assert said == shell.run(f"kubectl get gclaim {OF_PODS[pod]} -o jsonpath={{.status.allocated}}")


def test_the_gang_that_is_shown_is_there(shell: Shell):
    assert shell.run("kubectl get ggang --no-headers")
