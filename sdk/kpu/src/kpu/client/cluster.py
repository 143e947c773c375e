"""Which cluster this process talks to, and in which namespace: decided once, by `init` or by the first Compute."""

import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config

from kpu.client.api import Api
from kpu.errors import KpuError

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
DEFAULT_NAMESPACE = "default"
UNUSABLE = (config.ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, AttributeError, KeyError)
"""What the official client says of a file that is no kubeconfig, or not a whole one."""
official: Any = config
"""Its functions have half-known types."""
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class NoCluster(KpuError, config.ConfigException):
    """Neither a kubeconfig nor a service account says where the cluster is."""


@dataclass(frozen=True)
class Cluster:
    api: Api
    namespace: str


def init(client_config: client.Configuration | None = None, namespace: str | None = None) -> None:
    """Say which cluster and namespace all Computes of this process are in. Optional, and at most once.

    Without `client_config` the default kubeconfig is read, and in a pod without one the service account. Without
    `namespace` it is the one of the kubeconfig's current context, else the service account's, else "default".
    """
    with _lock:
        if _made:
            raise RuntimeError(
                "kpu.client is already initialised: call init() once, before the first Compute of the process is made"
            )
        _made.append(_find_cluster(client_config, namespace))


def current_cluster() -> Cluster:
    """What `init` said; if nobody called it, what is found now."""
    with _lock:
        if not _made:
            _made.append(_find_cluster(None, None))
        return _made[0]


_lock = threading.Lock()
_made: list[Cluster] = []


def _find_cluster(configuration: client.Configuration | None, namespace: str | None) -> Cluster:
    if namespace is not None and not (isinstance(namespace, str) and _LABEL.fullmatch(namespace)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(
            f"namespace is {namespace!r}, expected the name of a namespace: "
            "at most 63 lower-case letters, digits and hyphens, such as 'ml-team'"
        )
    if configuration is not None and not hasattr(configuration, "host"):
        raise ValueError(
            f"client_config is {configuration!r}, expected a kubernetes.client.Configuration; "
            "a namespace is given as init(namespace=...)"
        )
    found = _find_configuration() if configuration is None else configuration
    return Cluster(Api(found), namespace or _context_namespace() or _account_namespace() or DEFAULT_NAMESPACE)


def _find_configuration() -> client.Configuration:
    found = client.Configuration()
    try:
        official.load_kube_config(_kubeconfig(), _current_context(), client_configuration=found)
    except UNUSABLE as no_kubeconfig:
        found = client.Configuration()
        try:
            official.load_incluster_config(client_configuration=found)
        except config.ConfigException as not_in_pod:
            raise NoCluster(
                f"No cluster to talk to: the kubeconfig cannot be used ({_sentence(no_kubeconfig)}), and this is not "
                f"a pod ({_sentence(not_in_pod)}); set KUBECONFIG, or call kpu.client.init(client_config=...)"
            ) from no_kubeconfig
    return found


def _kubeconfig() -> str:
    """Asked for now: the official client remembers what KUBECONFIG was when it was imported."""
    return os.environ.get("KUBECONFIG") or "~/.kube/config"


def _current_context() -> str | None:
    """Of several files the first that names one decides, as for kubectl; for the official client it is the last."""
    paths = (Path(path).expanduser() for path in _kubeconfig().split(os.pathsep) if path)
    documents: Iterator[Any] = (yaml.safe_load(path.read_bytes()) for path in paths if path.exists())
    named = (str(one.get("current-context") or "") for one in documents if hasattr(one, "get"))
    return next((name for name in named if name), None)


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


def _context_namespace() -> str | None:
    try:
        contexts: Sequence[Mapping[str, Any]] = official.list_kube_config_contexts(_kubeconfig())[0]
        current = _current_context()
    except UNUSABLE:
        return None
    return next((one["context"].get("namespace") for one in contexts if one["name"] == current), None)


def _account_namespace() -> str | None:
    try:
        return NAMESPACE_FILE.read_text(encoding="utf-8").strip() or None
    except OSError:
        return None
