"""Which programs the testbed builds, from which Go modules and with which flags.

The versions stand in `tools/*/go.mod`, their checksums beside them in go.sum; nothing here repeats them.
"""

import re
from pathlib import Path
from typing import NamedTuple

TOOLS = Path(__file__).parent / "tools"


class Tool(NamedTuple):
    """One Go module, the programs built from it (file name → package), and files of it that they need."""

    name: str
    module: str
    programs: dict[str, str]
    files: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    version_variables: tuple[str, ...] = ()

    @property
    def directory(self) -> Path:
        return TOOLS / self.name

    @property
    def version(self) -> str:
        pattern = rf"^(?:require )?\s*{re.escape(self.module)} (v\S+)"
        found = re.search(pattern, (self.directory / "go.mod").read_text(), re.MULTILINE)
        assert found, f"{self.directory}/go.mod does not require {self.module}"
        return found[1]

    @property
    def linker_flags(self) -> str:
        major, minor = self.version.removeprefix("v").split(".")[:2]
        values = {"version": self.version, "major": major, "minor": minor}
        return " ".join(["-s", "-w", *(f"-X {variable.format(**values)}" for variable in self.version_variables)])


def _in_module(module: str, *names: str) -> dict[str, str]:
    return {name: f"{module}/cmd/{name}" for name in names}


ETCD = Tool("etcd", "go.etcd.io/etcd/server/v3", {"etcd": "go.etcd.io/etcd/server/v3"})
KUBERNETES = Tool(
    "kubernetes",
    "k8s.io/kubernetes",
    _in_module(
        "k8s.io/kubernetes",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kubectl",
        "kubelet",
        "kube-proxy",
    ),
    version_variables=(
        "k8s.io/component-base/version.gitVersion={version}",
        "k8s.io/component-base/version.gitMajor={major}",
        "k8s.io/component-base/version.gitMinor={minor}",
    ),
)
CONTAINERD = Tool(
    "containerd",
    "github.com/containerd/containerd/v2",
    _in_module("github.com/containerd/containerd/v2", "containerd", "containerd-shim-runc-v2", "ctr"),
    tags=("no_btrfs", "no_devmapper", "no_zfs"),
    version_variables=("github.com/containerd/containerd/v2/version.Version={version}",),
)
COREDNS = Tool("coredns", "github.com/coredns/coredns", {"coredns": "github.com/coredns/coredns"})
KWOK = Tool(
    "kwok",
    "sigs.k8s.io/kwok",
    _in_module("sigs.k8s.io/kwok", "kwok"),
    files=(
        "kustomize/stage/node/fast/node-initialize.yaml",
        "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
        "kustomize/stage/pod/fast/pod-complete.yaml",
        "kustomize/stage/pod/fast/pod-delete.yaml",
        "kustomize/stage/pod/fast/pod-ready.yaml",
    ),
    version_variables=("sigs.k8s.io/kwok/pkg/consts.Version={version}",),
)
HELM = Tool(
    "helm",
    "helm.sh/helm/v3",
    _in_module("helm.sh/helm/v3", "helm"),
    version_variables=("helm.sh/helm/v3/internal/version.version={version}",),
)

ALL = (ETCD, KUBERNETES, KWOK, CONTAINERD, COREDNS, HELM)
