"""What stands behind the Kubernetes API while the suite runs.

A test sees an `Engine` and never which one. Another engine is another class here and one line in `ENGINES`.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import urlencode

import pytest
import urllib3

from tessera.apps.api_server import kubeconfig
from testbed.building import Programs
from testbed.cluster import Cluster
from testbed.fixtures import NewCluster
from testbed.images.cache import default_cache
from testbed.images.recipes.busybox import REFERENCE as BUSYBOX
from testbed.images.recipes.busybox import busybox_program
from testbed.images.recipes.kpu import REFERENCE as KPU
from testbed.images.recipes.kpu import kpu_image
from tests.contract.api import Api
from tests.contract.command_line import CommandLine
from tests.embedded.server import HOST
from tests.embedded.whole_engine import WholeEngine

ROOT = Path(__file__).parents[2]


class Engine(Protocol):
    """A running API server, its administrator and what it can do."""

    @property
    def version(self) -> str:
        """As `/version` says it, without the leading v."""
        ...

    @property
    def url(self) -> str: ...

    @property
    def authority(self) -> Path:
        """The certificate that signs the server's own."""
        ...

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        ...

    @property
    def kubectl(self) -> CommandLine: ...

    @property
    def helm(self) -> CommandLine: ...

    @property
    def callback_host(self) -> str:
        """An address of this process that the API server can call, for webhooks."""
        ...

    @property
    def runs_pods(self) -> bool:
        """Whether a node really starts what a pod says."""
        ...

    @property
    def image(self) -> str:
        """An image with a shell and the usual small programs that the node has."""
        ...

    def run_python(self, program: str) -> Mapping[str, object]:
        """Image and command of a container that runs a Python program, which may use gRPC."""
        ...

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path: ...

    def forget_history(self, before: str) -> None:
        """Do now what time would do: let go of what was stored before this resourceVersion."""
        ...


class Kubernetes:
    """A real cluster of the testbed, with one node."""

    runs_pods = True
    image = BUSYBOX

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self._cluster = cluster
        self.kubeconfig = cluster.kubeconfig
        self.url = cluster.control_plane.url
        self.authority = cluster.control_plane.authority.files.certificate
        self.callback_host = cluster.machine.addresses.host
        self.kubectl = CommandLine(cluster.programs["kubectl"], self.kubeconfig, directory / "cache")
        self.helm = CommandLine(cluster.programs["helm"], self.kubeconfig, directory / "cache")
        with Api(self.kubeconfig) as api:
            self.version = api.get("/version")["gitVersion"].removeprefix("v")

    def run_python(self, program: str) -> Mapping[str, object]:
        self._cluster.load(kpu_image(ROOT, default_cache()))
        return {"image": KPU, "command": ["python3", "-c", program]}

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        return self._cluster.control_plane.kubeconfig_for(user, groups)

    def forget_history(self, before: str) -> None:
        etcd = f"{self._cluster.control_plane.etcd_url}/v3/kv/compaction"
        answer = urllib3.request("POST", etcd, json={"revision": before})
        assert answer.status == 200, answer.data


@contextmanager
def kubernetes(request: pytest.FixtureRequest, directory: Path) -> Iterator[Engine]:
    new_cluster: NewCluster = request.getfixturevalue("new_cluster")
    yield Kubernetes(new_cluster(node=True), directory)


class Embedded:
    """Our own engine, the whole of it, as `tessera up` starts it."""

    runs_pods = True
    image = "tessera.local/machine"
    callback_host = HOST

    def __init__(self, engine: WholeEngine, directory: Path) -> None:
        self._directory = directory
        self.authority = engine.authority
        self.kubeconfig = engine.kubeconfig
        programs = Programs()
        self.kubectl = CommandLine(programs["kubectl"], self.kubeconfig, directory / "cache")
        self.helm = CommandLine(programs["helm"], self.kubeconfig, directory / "cache")
        with Api(self.kubeconfig) as api:
            self.url = api.url
            self.version = api.get("/version")["gitVersion"].removeprefix("v")
            _forget_admission(api)

    def run_python(self, program: str) -> Mapping[str, object]:
        return {"command": [sys.executable, "-c", program]}

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        path = self._directory / f"{'-'.join((user, *groups)).replace(':', '-')}.kubeconfig"
        query = urlencode([("user", user), *(("group", group) for group in groups)])
        with Api(self.kubeconfig) as api:
            token = api.ask("POST", f"/debug/admit?{query}")
        path.write_bytes(kubeconfig(self.url, self.authority, token))
        return path

    def forget_history(self, before: str) -> None:
        with Api(self.kubeconfig) as api:
            api.ask("POST", "/debug/forget", query={"before": before})


@contextmanager
def embedded(_: pytest.FixtureRequest, directory: Path) -> Iterator[Engine]:
    found_first = f"{_small_programs(directory)}{os.pathsep}{os.environ['PATH']}"
    with WholeEngine(directory, environment={"PATH": found_first}).running() as engine:
        yield Embedded(engine, directory)


def _forget_admission(api: Api) -> None:
    """The contract is about an API server as such: on the other engine nothing of ours is installed either."""
    for plural in ("mutatingwebhookconfigurations", "validatingadmissionpolicybindings"):
        api.ask("DELETE", f"/apis/admissionregistration.k8s.io/v1/{plural}")


def _small_programs(directory: Path) -> Path:
    """What pods call and a machine may not have, such as a small web server."""
    programs = directory / "programs"
    programs.mkdir()
    for applet in ("httpd", "wget"):
        (programs / applet).symlink_to(busybox_program(default_cache()))
    return programs


ENGINES = {"embedded": embedded, "kubernetes": kubernetes}
