"""A whole cluster: a control plane, and with it the nodes that a test asks for.

with Cluster(node=True, simulated_nodes=20) as cluster:
    cluster.kubectl("get", "nodes")
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed.building import Programs
from testbed.control_plane import ControlPlane
from testbed.images.cache import default_cache
from testbed.images.oci import Image, write_image
from testbed.images.recipes.busybox import busybox_image
from testbed.images.recipes.pause import pause_image
from testbed.machine import Machine
from testbed.node import Node
from testbed.requirements import TestbedFailed


class Cluster:
    def __init__(
        self,
        *,
        programs: Programs | None = None,
        controllers: bool = True,
        node: bool = False,
        apiserver_flags: Mapping[str, str] | None = None,
    ) -> None:
        self.programs = programs or Programs()
        self.programs["etcd"], self.programs["kube-apiserver"]  # build before a machine waits for it
        self.machine = Machine()
        try:
            self.control_plane = ControlPlane(self.machine, self.programs, apiserver_flags=apiserver_flags)
            self.control_plane.start(controllers=controllers)
            if node:
                self.add_node()
            if controllers:
                self.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=60s")
        except BaseException:
            self.stop(failed=True)
            raise

    def add_node(self) -> None:
        """Start the one real node, with busybox on it; returns when it is ready."""
        pause = pause_image(default_cache())
        self.node = Node(self.machine, self.programs, self.control_plane, pause=pause.reference)
        self.node.runtime.start()
        self.load(pause)
        self.node.start()
        self.load(busybox_image(default_cache()))
        for event in ("create", "condition=Ready"):
            self.kubectl("wait", f"--for={event}", f"node/{self.node.name}", "--timeout=60s")

    def load(self, image: Image) -> None:
        """Put an image on the real node; pods name it with `imagePullPolicy: Never` or `IfNotPresent`."""
        file_name = image.reference.rpartition("/")[2].replace(":", "-")
        written = write_image(image, self.machine.directory / f"{file_name}.tar", default_cache())
        self.node.runtime.load(written.path)
        written.path.unlink()

    @property
    def kubeconfig(self) -> Path:
        """For the administrator."""
        return self.control_plane.kubeconfig

    def kubectl(self, *arguments: str, input: str | None = None, kubeconfig: Path | None = None) -> str:
        """Run kubectl as the administrator, or as whom the kubeconfig says, and give its output."""
        done = subprocess.run(
            [self.programs["kubectl"], *arguments],
            input=input,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env=os.environ | {"KUBECONFIG": str(kubeconfig or self.kubeconfig)},
        )
        if done.returncode:
            raise TestbedFailed(f"`kubectl {' '.join(arguments)}` failed: {done.stderr.strip()}")
        return done.stdout

    def stop(self, *, failed: bool = False) -> None:
        """End the cluster; the logs of one that failed are kept, and it is said where."""
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
