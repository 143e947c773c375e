"""containerd with runc and a bridge network, configured for one machine.

runc and the network plugins are Debian's, unpacked and not installed. The bridge does not enforce NetworkPolicy.
"""

import json
from pathlib import Path

from testbed.building import Programs
from testbed.images.debian import Tree
from testbed.machine import Machine
from testbed.network import Addresses
from testbed.program import Program

SOCKET = "/run/containerd/containerd.sock"
KUBERNETES_NAMESPACE = "k8s.io"

CONFIGURATION = """\
version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = "{socket}"

[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{pause}"

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
enable_cdi = true
cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{plugins}"]
conf_dir = "{networks}"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "{runc}"
SystemdCgroup = false
"""


class ContainerRuntime:
    def __init__(self, machine: Machine, programs: Programs, tree: Tree, *, pause: str) -> None:
        self._machine = machine
        self._programs = programs
        self._tree = tree
        self._pause = pause

    def start(self) -> Program:
        directory = self._machine.directory / "containerd"
        networks = directory / "net.d"
        networks.mkdir(parents=True)
        (networks / "10-bridge.conflist").write_text(json.dumps(network(self._machine.addresses)))
        config = directory / "config.toml"
        config.write_text(
            CONFIGURATION.format(
                socket=SOCKET,
                pause=self._pause,
                plugins=self._tree.cni_plugins,
                networks=networks,
                runc=self._tree.launcher("runc"),
            )
        )
        program = self._machine.start("containerd", [self._programs["containerd"], "--config", config])
        program.until(lambda: self._machine.host_path(SOCKET).exists(), "listening")
        return program

    def load(self, archive: Path) -> None:
        """Make the image of this OCI archive known to the kubelet."""
        self.ctr("images", "import", str(archive))

    def ctr(self, *arguments: str) -> str:
        command = [self._programs["ctr"], "--address", SOCKET, "--namespace", KUBERNETES_NAMESPACE, *arguments]
        return self._machine.run(*command)


def network(addresses: Addresses) -> dict[str, object]:
    ranges = [[{"subnet": addresses.pods}]]
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]},
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, ports]}
