"""The unit tests of the SDK's contract run as they stand there, without any cluster."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SEEDS = Path(os.environ.get("TESSERA_SEEDS") or Path(__file__).parents[4] / "shared/seeds")


@pytest.fixture
def contract() -> str:
    found = sorted(SEEDS.glob("5-*.md"))
    if not found:
        pytest.skip(f"seed 5 is not in {SEEDS}: its unit tests are not run; set TESSERA_SEEDS")
    return found[0].read_text(encoding="utf-8")


def test_the_unit_tests_of_the_contract_pass_as_they_stand(contract, tmp_path):
    (tests,) = re.findall(r"### Unit Tests\s+```python\n(.*?)```", contract, re.DOTALL)
    (tmp_path / "test_contract.py").write_text(tests)
    environment = {**os.environ, "KUBECONFIG": str(tmp_path / "none"), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_every_public_name_of_the_contract_is_there(contract):
    import openshift_ai_sdk.training as training

    names = re.findall(r"^(?:class|    def|def) (\w+)", contract, re.MULTILINE)
    methods = {name for name in names if hasattr(training.MPIJob, name)}
    assert {"create", "get_status", "wait_for_completion", "get_logs", "delete", "get", "list"} <= methods
    assert {"get_worker_statuses", "get_metrics", "to_yaml", "from_yaml"} <= methods
    assert {name for name in methods if not hasattr(training.AsyncMPIJob, name)} == set()
