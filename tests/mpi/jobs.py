"""MPIJobs as their users make, watch and remove them, by kubectl."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.contract.command_line import CommandLine
from tests.contract.waiting import eventually

Document = dict[str, Any]
PATIENCE_S = 60.0
RANKS_PROGRAM = str(Path(__file__).parent / "ranks.py")
RAN_ON = "tessera.io/ranks-ran-on"
LINE = re.compile(r"rank (\d+) of (\d+) on (\S+) as (\S+) found (.*)")


class Told(NamedTuple):
    """What a rank of our program printed."""

    rank: int
    size: int
    host: str
    role: str
    found: str


def an_mpi_job(
    name: str,
    command: Sequence[str],
    *,
    workers: int = 2,
    env: Mapping[str, str] | None = None,
    limits: Mapping[str, Any] | None = None,
    run_policy: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Document:
    variables = [{"name": key, "value": value} for key, value in (env or {}).items()]
    launcher = {"name": "launcher", "image": "horovod/horovod:latest", "command": [*command], "env": variables}
    worker = {"name": "worker", "image": "horovod/horovod:latest", "env": variables}
    if limits:
        worker["resources"] = {"limits": dict(limits)}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "runPolicy": {"cleanPodPolicy": "Running", **(run_policy or {})},
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "restartPolicy": "Never", "template": _template(launcher)},
                "Worker": {"replicas": workers, "template": _template(worker)},
            },
            **spec,
        },
    }


def _template(container: Document) -> Document:
    return {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}


class MpiJobs:
    """Those of one namespace."""

    def __init__(self, kubectl: CommandLine) -> None:
        self.kubectl = kubectl

    def apply(self, job: Document) -> None:
        self.kubectl("apply", "-f", "-", input=json.dumps(job))

    def delete(self, name: str) -> None:
        self.kubectl("delete", "mpijob", name)

    def patch_run_policy(self, name: str, **policy: Any) -> None:
        patch = json.dumps({"spec": {"runPolicy": policy}})
        self.kubectl("patch", "mpijob", name, "--type=merge", f"--patch={patch}")

    def get(self, name: str) -> Document:
        return json.loads(self.kubectl("get", "mpijob", name, "-o", "json"))

    def pods(self, name: str) -> dict[str, Document]:
        found = json.loads(self.kubectl("get", "pods", "-l", f"training.kubeflow.org/job-name={name}", "-o", "json"))
        return {pod["metadata"]["name"]: pod for pod in found["items"]}

    def log(self, pod: str) -> str:
        return self.kubectl("logs", pod)

    def told(self, name: str) -> list[Told]:
        """By the ranks of a job, in their order."""
        lines = LINE.findall(self.log(f"{name}-launcher"))
        return sorted(Told(int(rank), int(size), host, role, found) for rank, size, host, role, found in lines)

    def ran_on(self, name: str) -> dict[str, int]:
        return json.loads(self.get(name)["metadata"]["annotations"][RAN_ON])

    def events(self, name: str, reason: str) -> list[str]:
        selector = f"involvedObject.kind=MPIJob,involvedObject.name={name},reason={reason}"
        found = json.loads(self.kubectl("get", "events", f"--field-selector={selector}", "-o", "json"))
        return [event["message"] for event in found["items"]]

    def until(self, name: str, is_so: Callable[[Document], object], within_s: float = PATIENCE_S) -> Document:
        seen: list[Document] = []

        def look() -> bool:
            seen[:] = [self.get(name)]
            return bool(is_so(seen[0]))

        try:
            eventually(look, timeout_s=within_s)
        except AssertionError:
            raise AssertionError(json.dumps(seen[0].get("status"), indent=1)) from None
        return seen[0]

    def until_condition(self, name: str, kind: str, within_s: float = PATIENCE_S) -> Document:
        """The condition, once it is true; a job that ends otherwise will not become it."""
        found = self.until(name, lambda job: _is_true(job, kind) or _is_over(job), within_s)
        assert _is_true(found, kind), self._explain(found)
        return condition_of(found, kind)

    def _explain(self, job: Document) -> str:
        name: str = job["metadata"]["name"]
        logs = {pod: self.log(pod)[-3000:] for pod in self.pods(name)}
        return json.dumps({"status": job["status"], "logs": logs}, indent=1)


def condition_of(job: Document, kind: str) -> Document:
    conditions = job.get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == kind), {})


def _is_true(job: Document, kind: str) -> bool:
    return condition_of(job, kind).get("status") == "True"


def _is_over(job: Document) -> bool:
    return _is_true(job, "Succeeded") or _is_true(job, "Failed")
