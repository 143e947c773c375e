"""What stands behind the Kubernetes API while the suite runs.

A test sees an `Engine` and never which one. Another engine is another class here and one line in `ENGINES`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pytest
import urllib3

from testbed.cluster import Cluster
from testbed.fixtures import NewCluster
from testbed.images.recipes.busybox import REFERENCE as BUSYBOX
from tests.contract.api import Api
from tests.contract.command_line import CommandLine


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

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        return self._cluster.control_plane.kubeconfig_for(user, groups)

    def forget_history(self, before: str) -> None:
        etcd = f"{self._cluster.control_plane.etcd_url}/v3/kv/compaction"
        answer = urllib3.request("POST", etcd, json={"revision": before})
        assert answer.status == 200, answer.data


def kubernetes(request: pytest.FixtureRequest, directory: Path) -> Engine:
    new_cluster: NewCluster = request.getfixturevalue("new_cluster")
    return Kubernetes(new_cluster(node=True), directory)


ENGINES: Mapping[str, Callable[[pytest.FixtureRequest, Path], Engine]] = {"kubernetes": kubernetes}
