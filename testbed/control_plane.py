"""etcd, kube-apiserver, kube-controller-manager and kube-scheduler, with RBAC, admission and aggregation.

Everything listens on its usual port inside the machine. etcd does not wait for the disk: a test cluster that outlives a
power cut is of no use to anybody.
"""

import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed.building import Programs
from testbed.certificates import Authority, Pair, signing_key
from testbed.kubeconfig import write_kubeconfig
from testbed.machine import Machine
from testbed.program import Program

Flags = Mapping[str, str]
GENEROUS = {"kube-api-qps": "500", "kube-api-burst": "1000"}
"""How fast a component may call the API server; by default its own limit would be what a test measures."""


class ControlPlane:
    def __init__(self, machine: Machine, programs: Programs, *, apiserver_flags: Flags | None = None) -> None:
        self._machine = machine
        self._programs = programs
        self._apiserver_flags = dict(apiserver_flags or {})
        self._pki = machine.directory / "pki"
        self.authority = Authority(self._pki, "ca")
        self._front_proxy = Authority(self._pki, "front-proxy-ca")
        self._tokens = signing_key(self._pki, "service-account")
        self.etcd_url = f"http://{machine.addresses.machine}:2379"
        self.url = f"https://{machine.addresses.machine}:6443"
        self.admin = self.authority.issue("admin", "kubernetes-admin", groups=["system:masters"])
        self.kubeconfig = self._kubeconfig("admin", self.admin)
        self._trust = ssl.create_default_context(cafile=str(self.authority.files.certificate))
        self._trust.load_cert_chain(str(self.admin.certificate), str(self.admin.key))

    def start(self, *, controllers: bool = True) -> None:
        """Bring everything up; returns when the API server says that it is ready."""
        etcd = self._machine.start("etcd", self._etcd())
        etcd.until(lambda: self.answers(f"{self.etcd_url}/health"), "healthy")
        self._machine.start("kube-apiserver", self._apiserver())
        self.wait_until_ready()
        if controllers:
            self._machine.start("kube-controller-manager", self._controller_manager())
            self.start_scheduler()

    def start_scheduler(self, config: Path | None = None) -> Program:
        """Start kube-scheduler, with its own configuration or that of the file."""
        if old := self._machine.programs.get("kube-scheduler"):
            old.stop()
        return self._machine.start("kube-scheduler", self._scheduler(config))

    def wait_until_ready(self) -> None:
        apiserver = self._machine.programs["kube-apiserver"]
        apiserver.until(lambda: self.answers(f"{self.url}/readyz"), "ready")

    def answers(self, url: str) -> bool:
        try:
            with urllib.request.urlopen(url, timeout=2, context=self._trust) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def client_certificate(self, user: str, groups: Sequence[str] = ()) -> Pair:
        return self.authority.issue(user.replace(":", "-"), user, groups=groups)

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig for any user and groups; what they may do is up to RBAC."""
        return self._kubeconfig(user.replace(":", "-"), self.client_certificate(user, groups))

    def _kubeconfig(self, name: str, client: Pair) -> Path:
        path = self._machine.directory / f"{name}.kubeconfig"
        return write_kubeconfig(path, server=self.url, authority=self.authority.files.certificate, client=client)

    def _etcd(self) -> list[str | Path]:
        flags = {
            "data-dir": self._machine.directory / "etcd",
            "listen-client-urls": self.etcd_url,
            "advertise-client-urls": self.etcd_url,
            "listen-peer-urls": "http://127.0.0.1:2380",
            "unsafe-no-fsync": "true",
            "quota-backend-bytes": str(8 << 30),
            "log-level": "warn",
        }
        return [self._programs["etcd"], *_flags(flags)]

    def _apiserver(self) -> list[str | Path]:
        addresses = self._machine.addresses
        names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"]
        reachable_at = [addresses.machine, addresses.kubernetes_service, "127.0.0.1", "localhost", *names]
        serving = self.authority.issue("kube-apiserver", "kube-apiserver", reachable_at=reachable_at)
        to_kubelet = self.authority.issue("apiserver-to-kubelet", "kube-apiserver", groups=["system:masters"])
        proxy = self._front_proxy.issue("front-proxy", "front-proxy-client")
        flags = {
            "advertise-address": addresses.machine,
            "allow-privileged": "true",
            "authorization-mode": "Node,RBAC",
            "client-ca-file": self.authority.files.certificate,
            "enable-admission-plugins": "NodeRestriction",
            "enable-aggregator-routing": "true",
            "etcd-servers": self.etcd_url,
            "kubelet-certificate-authority": self.authority.files.certificate,
            "kubelet-client-certificate": to_kubelet.certificate,
            "kubelet-client-key": to_kubelet.key,
            "kubelet-preferred-address-types": "InternalIP",
            "proxy-client-cert-file": proxy.certificate,
            "proxy-client-key-file": proxy.key,
            "requestheader-allowed-names": "front-proxy-client",
            "requestheader-client-ca-file": self._front_proxy.files.certificate,
            "requestheader-extra-headers-prefix": "X-Remote-Extra-",
            "requestheader-group-headers": "X-Remote-Group",
            "requestheader-username-headers": "X-Remote-User",
            "secure-port": "6443",
            "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
            "service-account-key-file": self._tokens.certificate,
            "service-account-signing-key-file": self._tokens.key,
            "service-cluster-ip-range": addresses.services,
            "tls-cert-file": serving.certificate,
            "tls-private-key-file": serving.key,
        }
        return [self._programs["kube-apiserver"], *_flags(flags | self._apiserver_flags)]

    def _controller_manager(self) -> list[str | Path]:
        user = "system:kube-controller-manager"
        flags = {
            "cluster-signing-cert-file": self.authority.files.certificate,
            "cluster-signing-key-file": self.authority.files.key,
            "kubeconfig": self.kubeconfig_for(user),
            "leader-elect": "false",
            **GENEROUS,
            "root-ca-file": self.authority.files.certificate,
            "service-account-private-key-file": self._tokens.key,
            "use-service-account-credentials": "true",
        }
        return [self._programs["kube-controller-manager"], *_flags(flags)]

    def _scheduler(self, config: Path | None) -> list[str | Path]:
        kubeconfig = self.kubeconfig_for("system:kube-scheduler")
        flags: dict[str, str | Path] = {"kubeconfig": kubeconfig, "leader-elect": "false", **GENEROUS}
        if config:
            flags = {"config": config}
        flags |= {"authentication-kubeconfig": kubeconfig, "authorization-kubeconfig": kubeconfig}
        return [self._programs["kube-scheduler"], *_flags(flags)]


def _flags(values: Mapping[str, str | Path]) -> list[str]:
    return [f"--{name}={value}" for name, value in values.items()]
