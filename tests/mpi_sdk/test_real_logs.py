"""Logs as a real kubelet keeps them. There is no MPI operator here: the tests make the launcher's pods as it would."""

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from openshift_ai_sdk.training import MPIJob
from testbed.images.recipes.busybox import REFERENCE as BUSYBOX
from tests.contract.command_line import CommandLine
from tests.contract.waiting import eventually
from tests.mpi_sdk.conftest import Server

LABELS = {"training.kubeflow.org/job-name": "train", "training.kubeflow.org/job-role": "launcher"}


class Launchers:
    """Pods of one job, and the word of its end."""

    def __init__(self, kubectl: CommandLine) -> None:
        self._kubectl = kubectl

    def start(self, name: str, script: str, restart_policy: str = "Never") -> None:
        container = {"name": "mpi", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sh", "-c", script]}
        sidecar = {**container, "name": "sidecar", "command": ["sh", "-c", "echo not this"]}
        spec = {"restartPolicy": restart_policy, "terminationGracePeriodSeconds": 0, "containers": [container, sidecar]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": LABELS}, "spec": spec}
        self._kubectl("create", "-f", "-", input=json.dumps(pod))

    def end(self, name: str) -> str:
        """How often its container was restarted, once it has ended; empty before."""
        status = json.loads(self._kubectl("get", "pod", name, "-o", "json"))["status"]
        return str(status["containerStatuses"][0]["restartCount"]) if status["phase"] in ("Succeeded", "Failed") else ""

    def finish_job(self) -> None:
        patch: Any = {"status": {"conditions": [{"type": "Succeeded", "status": "True"}]}}
        self._kubectl(
            "patch", "mpijob", "train", "--subresource=status", "--type=merge", f"--patch={json.dumps(patch)}"
        )


@pytest.fixture
def job(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[MPIJob]:
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
    job = MPIJob("train", "lab", image="mpi").create()
    yield job
    job.delete()
    server.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")


@pytest.fixture
def launchers(server: Server) -> Launchers:
    return Launchers(server.kubectl)


class Following:
    """A log that is followed beside the test."""

    def __init__(self, job: MPIJob) -> None:
        self.lines: list[tuple[float, str]] = []
        self._thread = threading.Thread(target=self._run, args=[job], daemon=True)
        self._thread.start()

    def _run(self, job: MPIJob) -> None:
        for line in job.get_logs(follow=True, tail_lines=None):
            self.lines.append((time.time(), line))

    def until(self, count: int) -> list[str]:
        eventually(lambda: len(self.lines) >= count, timeout_s=60)
        return [line for _, line in self.lines]

    def ended(self) -> list[str]:
        self._thread.join(60)
        assert not self._thread.is_alive()
        return [line for _, line in self.lines]


def test_a_launcher_that_is_tried_again_is_followed_line_by_line(job, launchers):
    following = Following(job)
    launchers.start("train-launcher-a", "for i in 1 2 3; do echo a $i; sleep 0.2; done; exit 1")
    assert following.until(3) == ["a 1\n", "a 2\n", "a 3\n"]
    eventually(lambda: launchers.end("train-launcher-a"))
    launchers.start("train-launcher-b", "for i in 1 2 3; do echo b $i; sleep 0.2; done; printf unfinished")
    assert following.until(6)[3:6] == ["b 1\n", "b 2\n", "b 3\n"]
    eventually(lambda: launchers.end("train-launcher-b"))
    launchers.finish_job()
    assert following.ended()[6:] == ["unfinished"]
    assert job.get_logs(tail_lines=2) == "b 3\nunfinished"


def test_a_container_that_is_restarted_is_followed_line_by_line(job, launchers):
    following = Following(job)
    tried = "if [ -e /dev/shm/b ]; then n=c; elif [ -e /dev/shm/a ]; then n=b; else n=a; fi; touch /dev/shm/$n"
    launchers.start("train-launcher-x", f"{tried}; seq 1 500 | sed s/^/$n/; [ $n = c ]", "OnFailure")
    eventually(lambda: launchers.end("train-launcher-x"), timeout_s=90)
    launchers.finish_job()
    lines = following.ended()
    assert len(lines) == len(set(lines))
    assert lines == [f"{attempt}{number}\n" for attempt in "abc" for number in range(1, 501)]


def test_many_lines_of_the_same_text_are_all_there(job, launchers):
    following = Following(job)
    launchers.start("train-launcher-x", "i=0; while [ $i -lt 5000 ]; do echo same; i=$((i+1)); done")
    eventually(lambda: launchers.end("train-launcher-x"))
    launchers.finish_job()
    assert following.ended() == ["same\n"] * 5000
