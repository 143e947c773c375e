"""The one real node of a cluster: containerd, kubelet and kube-proxy, where a real machine has them."""

import json
from pathlib import Path
from typing import Any

from testbed.building import Programs
from testbed.container_runtime import SOCKET, ContainerRuntime
from testbed.control_plane import ControlPlane
from testbed.images.debian import unpack
from testbed.machine import Machine
from testbed.program import Program

DEBIAN_PACKAGES = ("conntrack", "containernetworking-plugins", "iptables", "nftables", "runc")


class Node:
    """`runtime` takes images; `kubelet` and `proxy` are programs to be stopped and started by tests."""

    def __init__(self, machine: Machine, programs: Programs, control_plane: ControlPlane, *, pause: str) -> None:
        self._machine = machine
        self._programs = programs
        self._control_plane = control_plane
        self._tree = unpack(DEBIAN_PACKAGES)
        self.runtime = ContainerRuntime(machine, programs, self._tree, pause=pause)
        self._directory = machine.directory / "node"
        self._directory.mkdir()

    @property
    def name(self) -> str:
        return self._machine.name

    @property
    def kubelet(self) -> Program:
        return self._machine.programs["kubelet"]

    def start(self) -> None:
        """Start kubelet and kube-proxy beside a runtime that already runs."""
        path = {"PATH": f"{self._tree.launchers}:{self._programs.search_path}:/usr/sbin:/usr/bin:/sbin:/bin"}
        kubelet = [self._programs["kubelet"], *self._kubelet_flags()]
        self._machine.start("kubelet", kubelet, environment=path)
        proxy = [
            self._programs["kube-proxy"],
            f"--config={self._write('kube-proxy.json', self._proxy_configuration())}",
        ]
        self._machine.start("kube-proxy", proxy, environment=path)

    def _kubelet_flags(self) -> list[str]:
        user = f"system:node:{self.name}"
        kubeconfig = self._control_plane.kubeconfig_for(user, ["system:nodes"])
        return [
            f"--config={self._write('kubelet.json', self._kubelet_configuration())}",
            f"--kubeconfig={kubeconfig}",
            f"--hostname-override={self.name}",
            f"--node-ip={self._machine.addresses.machine}",
        ]

    def _kubelet_configuration(self) -> dict[str, Any]:
        authority = self._control_plane.authority
        at = [self._machine.addresses.machine, self.name]
        serving = authority.issue("kubelet", f"system:node:{self.name}", groups=["system:nodes"], reachable_at=at)
        resolver = self._directory / "resolv.conf"
        resolver.write_text("# this machine can look up nothing outside itself\n")
        plenty = dict.fromkeys(("nodefs.available", "imagefs.available", "nodefs.inodesFree"), "0%")
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(authority.files.certificate)},
            },
            "authorization": {"mode": "Webhook"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self._machine.cgroup}",
            "clusterDNS": [self._machine.addresses.dns_service],
            "clusterDomain": "cluster.local",
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "enforceNodeAllocatable": [],
            "evictionHard": plenty | {"memory.available": "50Mi", "imagefs.inodesFree": "0%"},
            "failCgroupV1": False,
            "failSwapOn": False,
            "imageGCHighThresholdPercent": 100,
            "kubeAPIBurst": 200,
            "kubeAPIQPS": 100,
            "maxPods": 240,
            "nodeStatusUpdateFrequency": "4s",
            "resolvConf": str(resolver),
            "serializeImagePulls": False,
            "syncFrequency": "5s",
            "tlsCertFile": str(serving.certificate),
            "tlsPrivateKeyFile": str(serving.key),
            "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        }

    def _proxy_configuration(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": str(self._control_plane.kubeconfig_for("system:kube-proxy"))},
            "clusterCIDR": self._machine.addresses.pods,
            "conntrack": {"maxPerCore": 0, "min": 0},
            "hostnameOverride": self.name,
            "mode": "nftables",
            "nodePortAddresses": ["primary"],
        }

    def _write(self, name: str, document: dict[str, Any]) -> Path:
        path = self._directory / name
        path.write_text(json.dumps(document, indent=2))
        return path
