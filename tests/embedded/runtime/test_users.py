"""An engine that an ordinary user runs."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

NOBODY = 65534
REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def directory():
    """Outside pytest's own, which are their owner's alone."""
    made = Path(tempfile.mkdtemp())
    os.chown(made, NOBODY, NOBODY)
    yield made
    shutil.rmtree(made)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root, to become somebody else")
def test_an_ordinary_user_has_mounts_as_well(directory):
    # Without this right nobody could not find an interpreter that lies in somebody's home.
    finding = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *finding]
    command = [*become, sys.executable, "-m", "tests.embedded.runtime.user_program", str(directory)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.stdout.endswith(f"{NOBODY}\nworker\nfile\n(0, 'file\\n')\n"), done
