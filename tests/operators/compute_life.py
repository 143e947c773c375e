"""Computes as their users make, change and remove them, and engines that run them."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from testbed.building import Programs
from testbed.cluster import Cluster
from testbed.fixtures import NewCluster, require_testbed
from testbed.images.cache import default_cache
from testbed.images.recipes.kpu import REFERENCE, kpu_image
from tests.contract.command_line import CommandLine
from tests.contract.waiting import eventually
from tests.embedded.whole_engine import WholeEngine
from tests.operators.processes import an_operator

Document = dict[str, Any]
IMAGE = REFERENCE
ROOT = Path(__file__).parents[2]
HEALTH_SERVER = (Path(__file__).parent / "health_server.py").read_text()
PATIENCE_S = 60.0


class ComputeEngine(NamedTuple):
    """`python` is an interpreter with gRPC, as containers call it."""

    name: str
    kubeconfig: Path
    kubectl: CommandLine
    python: str


ENGINES = ("embedded", "kubernetes")


def running_engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComputeEngine]:
    """What a fixture with one of ENGINES as its parameter yields."""
    require_testbed()
    directory = tmp_path_factory.mktemp("computes")
    if request.param == "embedded":
        running = embedded_engine(directory)
    else:
        running = real_engine(directory, request.getfixturevalue("new_cluster"))
    with running as engine:
        yield engine


@contextmanager
def own_namespace(engine: ComputeEngine) -> Iterator[CommandLine]:
    name = f"lab-{uuid4().hex[:8]}"
    engine.kubectl("create", "namespace", name)
    eventually(lambda: "default" in engine.kubectl("get", "sa", "-n", name, "-o", "name"))
    yield engine.kubectl.within(name)
    engine.kubectl("delete", "namespace", name, "--wait=false")


@contextmanager
def embedded_engine(directory: Path) -> Iterator[ComputeEngine]:
    engine = WholeEngine(directory, "--nodes", "1", "--cards", "1xA100-SXM4-80GB")
    with engine.running():
        kubectl = CommandLine(Programs()["kubectl"], engine.kubeconfig, directory / "cache")
        yield ComputeEngine("embedded", engine.kubeconfig, kubectl, sys.executable)


@contextmanager
def real_engine(directory: Path, new_cluster: NewCluster) -> Iterator[ComputeEngine]:
    """A kubelet, and our operator beside it."""
    cluster: Cluster = new_cluster(node=True)
    cluster.load(kpu_image(ROOT, default_cache()))
    kubectl = CommandLine(cluster.programs["kubectl"], cluster.kubeconfig, directory / "cache")
    with an_operator(cluster.kubeconfig, "default", directory / "operator.log", "--install-definitions"):
        yield ComputeEngine("kubernetes", cluster.kubeconfig, kubectl, "python3")
    cluster.stop()


class Computes:
    """Those of one namespace, by kubectl."""

    def __init__(self, kubectl: CommandLine, python: str = "python3") -> None:
        self.kubectl = kubectl
        self._python = python

    def serving(self, **spec: Any) -> Document:
        """The spec of a Compute whose server only says that it serves."""
        return {**self.running(HEALTH_SERVER), **spec}

    def running(self, program: str) -> Document:
        """The spec of a Compute that runs a program of ours."""
        return {"image": IMAGE, "command": [self._python, "-c", program]}

    def apply(self, name: str, spec: Mapping[str, Any], **metadata: Any) -> None:
        self.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(a_compute(name, spec, **metadata)))

    def change(self, name: str, spec: Mapping[str, Any]) -> None:
        self.kubectl("patch", "compute", name, "--type=merge", f"--patch={json.dumps({'spec': spec})}")

    def get(self, name: str) -> Document:
        return self._get("compute", name)

    def condition(self, name: str, kind: str) -> Document:
        return condition_of(self.get(name), kind)

    def pod(self, name: str) -> Document:
        return self._get("pod", f"{name}-0")

    def until(self, name: str, is_so: Callable[[Document], object], within_s: float = PATIENCE_S) -> Document:
        """The Compute as it first is so, by a status that is about its present spec."""
        seen: list[Document] = []

        def look() -> bool:
            compute = self.get(name)
            seen[:] = [compute]
            told = compute.get("status", {}).get("observedGeneration")
            return told == compute["metadata"]["generation"] and bool(is_so(compute))

        try:
            eventually(look, timeout_s=within_s)
        except AssertionError:
            raise AssertionError(json.dumps(seen[0].get("status"), indent=1)) from None
        return seen[0]

    def until_ready(self, name: str) -> Document:
        return self.until(name, is_ready)

    def until_reason(self, name: str, reason: str, within_s: float = PATIENCE_S) -> Document:
        """The condition Ready, once it is not so for this reason."""
        found = self.until(name, lambda one: condition_of(one, "Ready").get("reason") == reason, within_s)
        return condition_of(found, "Ready")

    def until_stalled(self, name: str, within_s: float = PATIENCE_S) -> Document:
        found = self.until(name, lambda one: condition_of(one, "Stalled").get("status") == "True", within_s)
        return condition_of(found, "Stalled")

    def _get(self, kind: str, name: str) -> Document:
        return json.loads(self.kubectl("get", kind, name, "-o", "json"))


def a_compute(name: str, spec: Mapping[str, Any], **metadata: Any) -> Document:
    head = {"apiVersion": "compute.kpu.dev/v1alpha1", "kind": "Compute"}
    return {**head, "metadata": {"name": name, **metadata}, "spec": dict(spec)}


def condition_of(compute: Document, kind: str) -> Document:
    conditions = compute.get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == kind), {})


def is_ready(compute: Document) -> bool:
    return condition_of(compute, "Ready").get("status") == "True"
