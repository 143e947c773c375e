"""The chart as files, and what helm makes of it without a cluster."""

import subprocess
from typing import Any

import yaml

from testbed.building import Programs
from tests.repository.files import ROOT

CHART = ROOT / "charts/gpu-scheduler"
SEEDS_CHART = "charts/gpu-scheduler"
KUBERNETES = "v1.36.3"

Document = dict[str, Any]


def read(name: str) -> Document:
    return yaml.safe_load((CHART / name).read_text())


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [Programs()["helm"], *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


class Rendered:
    """The objects that the chart would make, found by kind and name."""

    def __init__(self, *values: str, version: str = KUBERNETES) -> None:
        settings = [f"--set={value}" for value in values]
        done = helm("template", "gpu-scheduler", SEEDS_CHART, f"--kube-version={version}", *settings)
        assert done.returncode == 0, done.stderr
        self.objects = [document for document in yaml.safe_load_all(done.stdout) if document]

    def find(self, kind: str, name: str) -> Document | None:
        found = [one for one in self.objects if (one["kind"], one["metadata"]["name"]) == (kind, name)]
        return found[0] if found else None

    def get(self, kind: str, name: str) -> Document:
        found = self.find(kind, name)
        assert found, f"no {kind} {name} among the chart's objects"
        return found

    def pod_of(self, kind: str, name: str) -> Document:
        return self.get(kind, name)["spec"]["template"]["spec"]

    def container(self, kind: str, name: str, container: str) -> Document:
        (found,) = [one for one in self.pod_of(kind, name)["containers"] if one["name"] == container]
        return found
