"""The MPI operator's own definition and an example of its users, of which this project has no copy."""

import os
from pathlib import Path

import pytest

from tests.repository.files import ROOT

KUBEFLOW = Path(os.environ.get("TESSERA_KUBEFLOW") or ROOT.parent / "shared" / "kubeflow")


def kubeflow_file(name: str) -> Path:
    """Without it the test skips and says so."""
    if not (KUBEFLOW / name).exists():
        pytest.skip(f"{name} of the MPI operator is not in {KUBEFLOW}: nothing is checked by it; set TESSERA_KUBEFLOW")
    return KUBEFLOW / name
