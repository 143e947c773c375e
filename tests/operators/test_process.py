"""`tessera run operator` as a process: it elects itself, tells, is asked, and hands over in order."""

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.contract.command_line import CommandLine
from tests.contract.waiting import eventually
from tests.embedded.server import free_port
from tests.operators.conftest import Engine
from tests.operators.test_definitions import a_claim, apply

TESSERA = [sys.executable, "-m", "tessera.apps.cli"]
STOP_S = 30
LEADS = "tessera_operator_leads 1.0"


@contextmanager
def an_operator(engine: Engine, namespace: str, log: Path, *flags: str) -> Iterator[str]:
    """Where it is asked. An orderly end of the block is an orderly end of the process."""
    address = f"127.0.0.1:{free_port()}"
    command = [*TESSERA, "run", "operator", "--kubeconfig", str(engine.kubeconfig), "--metrics", address]
    with log.open("a") as file:
        process = subprocess.Popen(
            [*command, f"--lease-namespace={namespace}", *flags], stdout=file, stderr=subprocess.STDOUT
        )
    try:
        eventually(lambda: asked(f"http://{address}/readyz") == "ok")
        yield f"http://{address}"
    finally:
        process.terminate()
        status = process.wait(STOP_S)
    assert status == 0, log.read_text()


def asked(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.read().decode()
    except OSError:
        return ""


def phase_of(kubectl: CommandLine, claim: str) -> str:
    return kubectl("get", "gclaim", claim, "-o", "jsonpath={.status.phase}")


@pytest.mark.timeout(180)
def test_one_of_two_operators_tells_and_the_other_takes_over(
    engine: Engine, kubectl: CommandLine, namespace: str, tmp_path: Path
):
    flags = ("--leader-elect", "--install-definitions")
    with ExitStack() as until_end:
        with an_operator(engine, namespace, tmp_path / "first.log", *flags) as first:
            eventually(lambda: LEADS in asked(f"{first}/metrics"))
            apply(kubectl, a_claim("early"))
            eventually(lambda: phase_of(kubectl, "early") == "Pending")
            assert 'tessera_claims{phase="Pending"}' in asked(f"{first}/metrics")
            second = until_end.enter_context(an_operator(engine, namespace, tmp_path / "second.log", *flags))
            assert LEADS not in asked(f"{second}/metrics")
        eventually(lambda: LEADS in asked(f"{second}/metrics"))
        apply(kubectl, a_claim("late"))
        eventually(lambda: phase_of(kubectl, "late") == "Pending")
