"""Which cluster this process talks to.

In this order: what the program set as the official client's default, the kubeconfig, the service account of a pod. It
is looked for when it is first needed, so a job may be described where there is no cluster at all.
"""

import os
import threading
from pathlib import Path
from typing import Any, NamedTuple, Optional

import urllib3
import yaml
from kubernetes import client, config
from urllib3.exceptions import ReadTimeoutError

from .documents import text_at

DEFAULT_KUBECONFIG = "~/.kube/config"
# The last four are what the official client makes of a kubeconfig whose parts are of an odd shape.
UNUSABLE = (config.ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, LookupError, AttributeError)
_official: Any = config
_SAYING_WHO = ("host", "api_key", "ssl_ca_cert", "cert_file", "key_file", "verify_ssl", "proxy", "username", "password")


class Retries(urllib3.Retry):
    """urllib3's own, but for a server that has not answered in time: to ask it again is to wait four times as long."""

    def increment(self, *arguments: Any, error: Optional[Exception] = None, **more: Any) -> "Retries":
        if isinstance(error, ReadTimeoutError):
            raise error
        return super().increment(*arguments, error=error, **more)


class Cluster(NamedTuple):
    """`problem` says why there is none; a request would then go nowhere."""

    api_client: Any
    configuration: Any
    problem: Optional[str] = None


def current_cluster() -> Cluster:
    """The same as long as nothing that decides it has changed, so that connections are kept."""
    chosen = _chosen_by_program()
    key = _identity(chosen) if chosen is not None else _kubeconfig_identity()
    with _lock:
        if key not in _found:
            _found.clear()
            _found[key] = _cluster(chosen)
        return _found[key]


_lock = threading.Lock()
_found: dict[tuple[Any, ...], Cluster] = {}


def _chosen_by_program() -> Optional[Any]:
    """What `config.load_kube_config()` or `client.Configuration.set_default()` left behind, if anybody called it."""
    untyped: Any = client.Configuration
    chosen = untyped.get_default_copy()
    return chosen if chosen.host != untyped().host else None


def _identity(configuration: Any) -> tuple[Any, ...]:
    return tuple(str(getattr(configuration, name, None)) for name in _SAYING_WHO)


def _kubeconfig_identity() -> tuple[Any, ...]:
    return ("kubeconfig", *((str(path), _changed_at(path)) for path in _kubeconfig_paths()))


def _changed_at(path: Path) -> Optional[int]:
    """None, if nothing can be found out about it."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def _cluster(chosen: Optional[Any]) -> Cluster:
    if chosen is not None:
        return _with(chosen)
    found: Any = client.Configuration()
    try:
        _official.load_kube_config(_kubeconfig(), _current_context(), client_configuration=found)
    except UNUSABLE as no_kubeconfig:
        return _in_pod(no_kubeconfig)
    return _with(found)


def _in_pod(no_kubeconfig: BaseException) -> Cluster:
    found: Any = client.Configuration()
    try:
        _official.load_incluster_config(client_configuration=found)
    except config.ConfigException as not_in_pod:
        problem = (
            f"no cluster to talk to: the kubeconfig cannot be used ({_sentence(no_kubeconfig)}), and this is not a pod "
            f"({_sentence(not_in_pod)}); set KUBECONFIG or call kubernetes.config.load_kube_config()"
        )
        return Cluster(None, found, problem)
    return _with(found)


def _with(configuration: Any) -> Cluster:
    if configuration.retries is None:
        configuration.retries = Retries(3)
    api_client: Any = client.ApiClient(configuration)
    return Cluster(api_client, configuration)


def _kubeconfig() -> str:
    """Asked for now: the official client remembers what KUBECONFIG was when it was imported."""
    return os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG


def _kubeconfig_paths() -> list[Path]:
    return [Path(path).expanduser() for path in _kubeconfig().split(os.pathsep) if path]


def _current_context() -> Optional[str]:
    """Of several files the first that names one decides, as for kubectl; for the official client it is the last."""
    documents = (yaml.safe_load(path.read_bytes()) for path in _kubeconfig_paths() if path.exists())
    named = (text_at(document, "current-context") for document in documents)
    return next((name for name in named if name), None)


def _sentence(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")
