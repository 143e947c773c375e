"""The density benchmark measures, or says that it did not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("skip", "status"), [("0", 1), ("1", 0)])
def test_without_the_trace_it_fails_unless_told_to_do_without(tmp_path: Path, skip: str, status: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "density"],
        cwd=ROOT,
        env={**os.environ, "TESSERA_TRACES": str(tmp_path), "TESSERA_SKIP_DENSITY": skip},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == status
    assert f"no openb_node_list_gpu_node.csv in {tmp_path}, set TESSERA_TRACES" in done.stdout + done.stderr
