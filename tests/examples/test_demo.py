"""What `make demo` shows is what happens."""

import subprocess
import sys
from pathlib import Path

from testbed.fixtures import require

ROOT = Path(__file__).parents[2]
PATIENCE_S = 100


def test_the_demo_shares_a_card_and_leaves_nothing_behind(tmp_path: Path):
    require(
        (ROOT / "build/native/sim/libcuda.so.1").exists(), "the simulated driver is not built; `make native` does it"
    )
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/demo/demo.py")],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env={"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout
    one, two = (line.partition(" and has ")[2] for line in said.splitlines() if " is on node-a and has " in line)
    assert one == two, "they share one card"
    assert "no card has 163840 MiB free" in said
    assert "hungry: I have taken 7500 MiB" in said
    assert "hungry: there is no more for me (CUDA error 2)" in said
    assert "and it got no more" in said
    assert list(tmp_path.iterdir()) == []
