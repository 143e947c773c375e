"""How a job looks in a notebook: everything is escaped, nothing is asked."""

import sys
import types

from conftest import live, says

from openshift_ai_sdk.training import MPIJob, ResourceRequirements
from openshift_ai_sdk.training.notebook import progress_teller
from openshift_ai_sdk.training.statuses import Status

EVIL = "<img src=x onerror=alert(1)>"


def test_a_job_shows_what_it_is_and_asks_nobody():
    shown = MPIJob("train", workers=4, image="mpi", resources=ResourceRequirements(gpu=1))._repr_html_()
    assert "MPIJob train" in shown
    assert "4 × 1 slots" in shown
    assert "gpu=1" in shown


def test_whatever_comes_from_elsewhere_is_escaped():
    document = live(says("Failed", EVIL, EVIL), name=EVIL, namespace=EVIL)
    container = {"image": EVIL, "command": [EVIL], "args": [f'"{EVIL}']}
    document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"] = {"spec": {"containers": [container]}}
    shown = MPIJob._from_document(document)._repr_html_()
    assert EVIL not in shown
    assert shown.count("&lt;img") == 6
    assert '"<' not in shown.replace('title="', "")


def test_progress_in_a_notebook_is_one_line_that_changes(monkeypatch):
    shown = []

    class Handle:
        def update(self, content):
            shown.append(content)

    def display(content, display_id):
        assert display_id
        shown.append(content)
        return Handle()

    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: object()))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display, HTML=str))
    tell = progress_teller("lab/train")
    tell(Status("Pending", EVIL))
    tell(Status("Running", "Running"))
    assert ["Pending" in shown[0], "Running" in shown[1], len(shown)] == [True, True, 2]
    assert EVIL not in shown[0]
