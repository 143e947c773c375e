"""A whole cluster: a control plane, and with it the nodes that a test asks for.

with Cluster(node=True, simulated_nodes=20) as cluster:
    cluster.kubectl("get", "nodes")
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed import name_service
from testbed.building import Programs
from testbed.control_plane import ControlPlane
from testbed.images.cache import default_cache
from testbed.images.oci import Image, write_image
from testbed.images.recipes.busybox import busybox_image
from testbed.images.recipes.coredns import coredns_image
from testbed.images.recipes.pause import pause_image
from testbed.machine import Machine
from testbed.node import Node
from testbed.requirements import TestbedFailed
from testbed.simulated_nodes import EIGHT_CARDS, NodeShape, SimulatedNodes

PATIENCE = "--timeout=60s"


class Cluster:
    """Without `controllers` only etcd and the API server run: enough for whoever tests a client of the API."""

    def __init__(
        self,
        *,
        controllers: bool = True,
        node: bool = False,
        simulated_nodes: int = 0,
        shape: NodeShape = EIGHT_CARDS,
        apiserver_flags: Mapping[str, str] | None = None,
        programs: Programs | None = None,
        has_failed: Callable[[], bool] = lambda: False,
    ) -> None:
        """`has_failed` is asked when the cluster is stopped: whether something was wrong that its logs may tell of."""
        self._has_failed = has_failed
        self.programs = programs or Programs()
        self.programs.build(
            "etcd", "kube-apiserver", *["containerd", "coredns"] * node, *["kwok"] * bool(simulated_nodes)
        )
        self.machine = Machine()
        self._stopped = False
        try:
            self.control_plane = ControlPlane(self.machine, self.programs, apiserver_flags=apiserver_flags)
            self.control_plane.start(controllers=controllers)
            if node:
                self._start_node()
            if simulated_nodes:
                self.simulated.add([f"gpu-{number:04}" for number in range(simulated_nodes)], shape)
            if controllers:
                self.kubectl("wait", "--for=create", "serviceaccount/default", PATIENCE)
        except BaseException:
            self.stop(failed=True)
            raise

    @property
    def kubeconfig(self) -> Path:
        """For the administrator."""
        return self.control_plane.kubeconfig

    @cached_property
    def node(self) -> Node:
        """The one real node."""
        pause = pause_image(default_cache())
        return Node(self.machine, self.programs, self.control_plane, pause=pause.reference)

    @cached_property
    def simulated(self) -> SimulatedNodes:
        """The nodes that kwok keeps; the first who asks starts it."""
        nodes = SimulatedNodes(self.machine, self.programs, self.control_plane)
        nodes.start()
        return nodes

    def _start_node(self) -> None:
        """Returns when the node is ready and names are resolved."""
        self.node.runtime.start()
        self.load(pause_image(default_cache()))
        self.node.start()
        dns = coredns_image(self.programs["coredns"])
        address = self.machine.addresses.dns_service
        self.load(dns)
        self.kubectl("apply", "-f", "-", input=name_service.manifests(image=dns.reference, address=address))
        self.load(busybox_image(default_cache()))
        try:
            for event in ("create", "condition=Ready"):
                self.kubectl("wait", f"--for={event}", f"node/{self.node.name}", PATIENCE)
        except TestbedFailed as late:
            raise TestbedFailed(f"{late}; the kubelet's log ends:\n{self.node.kubelet.last_words()}") from None
        self.kubectl("rollout", "status", "--namespace=kube-system", "deployment/coredns", PATIENCE)

    def load(self, image: Image) -> None:
        """Put an image on the real node; pods name it with `imagePullPolicy: Never` or `IfNotPresent`."""
        file_name = image.reference.rpartition("/")[2].replace(":", "-")
        written = write_image(image, self.machine.directory / f"{file_name}.tar", default_cache())
        self.node.runtime.load(written.path)
        written.path.unlink()

    def kubectl(self, *arguments: str, input: str | None = None, kubeconfig: Path | None = None) -> str:
        """Run kubectl as the administrator, or as whom the kubeconfig says, and give its output."""
        return self._run("kubectl", arguments, input, kubeconfig)

    def helm(self, *arguments: str, input: str | None = None, kubeconfig: Path | None = None) -> str:
        return self._run("helm", arguments, input, kubeconfig)

    def _run(self, program: str, arguments: tuple[str, ...], input: str | None, kubeconfig: Path | None) -> str:
        cache = self.machine.directory / "kubectl"  # of its own: kubectl's goes by address, and addresses come again
        done = subprocess.run(
            [self.programs[program], *arguments],
            input=input,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env=os.environ | {"KUBECONFIG": str(kubeconfig or self.kubeconfig), "KUBECACHEDIR": str(cache)},
        )
        if done.returncode:
            raise TestbedFailed(f"`{program} {' '.join(arguments)}` failed: {done.stderr.strip()}")
        return done.stdout

    def stop(self, *, failed: bool = False) -> None:
        """End the cluster; the logs of one that failed are kept, and it is said where."""
        if self._stopped:
            return
        self._stopped = True
        failed = failed or self._has_failed()
        if "simulated" in self.__dict__:
            self.simulated.stop()
        kept = Path(tempfile.gettempdir()) / f"tessera-testbed-failed-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        self.machine.stop(keep_logs_in=kept if failed else None)
        if failed:
            print(f"The logs of the cluster are kept in {kept}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(failed=kind is not None)
