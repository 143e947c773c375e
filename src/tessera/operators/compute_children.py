"""What is made for a Compute: a StatefulSet, a Service, a Secret with its token and a route, as documents. Pure.

The user's variables are merged with ours by name and theirs win, so that a name never stands there twice. Their labels
go everywhere, but those by which the pod is found stay ours. Pods come in Parallel: with OrderedReady a pod that never
became ready would hold up the change that mends it.
"""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from tessera.kube.kinds import SERVICES
from tessera.kube.objects import Document
from tessera.operators.compute_objects import (
    COMPUTE_DOCUMENTS,
    GRPC_ROUTES,
    NAME_LABEL,
    PORT,
    STATEFUL_SETS,
    Compute,
    Route,
    SharedMemory,
)

CONTAINER, PORT_NAME = "server", "grpc"
HEALTH_SERVICE = "kpu.torch.Service"
DEFAULT_REQUESTS = {"cpu": "100m", "memory": "256Mi"}
DEFAULT_LIMITS = {"cpu": "1", "memory": "2Gi"}
PROBE_TIMES = {"initialDelaySeconds": 2, "periodSeconds": 2, "timeoutSeconds": 5, "failureThreshold": 3}
TOKEN_KEY = "token"
TOKEN_DIGEST = "compute.kpu.dev/token-digest"
UNTIL_KILLED_S = 86400
"""A day: whoever ends a pod says how long it has, which its server never learns, and kills it then."""
TLS_VOLUME, TLS_DIRECTORY = "tls", "/etc/kpu/tls"
SHARED_VOLUME, SHARED_DIRECTORY = "shared", "/run/kpu/shared"
ROUTE_HEADER = "compute-id"
CONFINED_POD: Document = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
CONFINED_CONTAINER: Document = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""What the Pod Security Standard "restricted" asks for."""
MOST_SET_NAME, HASH_LENGTH = 52, 8
"""A pod's label has the name of its set and a hash of the template, and may be 63 characters long."""


class ComputeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`host_field` is the field of the pod that has the server's own address, where pods share the host's network.

    Without a `cluster_domain` there is no DNS. What may pass by itself, an image that cannot be pulled or a pod that no
    node can hold, is given up after `patience_s`. `host_paths` are the directories of a node below which Computes may
    have theirs: whoever may make a Compute could otherwise write anywhere on a node. Without `has_claims` there are no
    PersistentVolumeClaims.
    """

    image: str = "kpu-torch-server:latest"
    host_field: str = ""
    cluster_domain: str = "cluster.local"
    patience_s: float = 30.0
    host_paths: tuple[str, ...] = ("/run/kpu",)
    has_claims: bool = True


def set_name(compute: Compute) -> str:
    """The Compute's own, shortened where its pods could not have the labels that a StatefulSet gives them.

    Clients look for events of the set and its pod by the same rule.
    """
    name = compute.name
    if len(name) <= MOST_SET_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:HASH_LENGTH]
    return f"{name[: MOST_SET_NAME - HASH_LENGTH - 1].rstrip('-')}-{digest}"


def secret_name(compute: Compute) -> str:
    return f"{compute.name}-token"


def make_secret(compute: Compute, token: str) -> Document:
    encoded = base64.b64encode(token.encode()).decode()
    metadata = _metadata(compute, secret_name(compute))
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {TOKEN_KEY: encoded}}


def token_digest(secret: Document) -> str:
    """What changes when the token does, and tells nothing of it. Empty, if there is no token."""
    data: Mapping[str, str] = secret.get("data") or {}
    token = data.get(TOKEN_KEY)
    return hashlib.sha256(token.encode()).hexdigest()[:16] if token else ""


def digest_on(stateful_set: Document) -> str:
    """That of the token with which its pods were made."""
    annotations: Mapping[str, str] = stateful_set["spec"]["template"]["metadata"].get("annotations") or {}
    return annotations.get(TOKEN_DIGEST, "")


def is_confined(stateful_set: Document) -> bool:
    """Whether its pods are made for a namespace that takes none with more rights than they need."""
    pod: Document = stateful_set["spec"]["template"]["spec"].get("securityContext") or {}
    return pod.get("runAsNonRoot") is True


def make_stateful_set(compute: Compute, settings: ComputeSettings, digest: str, *, confined: bool = False) -> Document:
    """`digest` is that of the token, which the pod learns when it starts: with another one it is started anew.

    `confined` pods have the fewest rights there are. An image may need more, so it is only where others are refused.
    """
    annotations = {**(compute.spec.annotations or {}), **({TOKEN_DIGEST: digest} if digest else {})}
    template = {
        "metadata": {"labels": _labels(compute), **({"annotations": annotations} if annotations else {})},
        "spec": _pod_spec(compute, settings, confined),
    }
    return {
        **_head(STATEFUL_SETS.api_version, STATEFUL_SETS.name, compute, set_name(compute)),
        "spec": {
            "serviceName": compute.name,
            "replicas": 0 if compute.spec.suspend else 1,
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate"},
            "selector": {"matchLabels": selector_of(compute)},
            "template": template,
        },
    }


def make_service(compute: Compute) -> Document:
    port = {"name": PORT_NAME, "port": PORT, "targetPort": PORT_NAME, "protocol": "TCP"}
    spoken = {} if compute.spec.tls else {"appProtocol": "kubernetes.io/h2c"}
    return {
        **_head(SERVICES.api_version, SERVICES.name, compute, compute.name),
        "spec": {"type": "ClusterIP", "selector": selector_of(compute), "ports": [{**port, **spoken}]},
    }


def make_route(compute: Compute, route: Route) -> Document:
    header = {"type": "Exact", "name": ROUTE_HEADER, "value": f"{compute.namespace}/{compute.name}"}
    rule = {"matches": [{"headers": [header]}], "backendRefs": [{"name": compute.name, "port": PORT}]}
    hostnames = {"hostnames": list(route.hostnames)} if route.hostnames else {}
    return {
        **_head(GRPC_ROUTES.api_version, GRPC_ROUTES.name, compute, compute.name),
        "spec": {"parentRefs": list(route.parent_refs), **hostnames, "rules": [rule]},
    }


def selector_of(compute: Compute) -> dict[str, str]:
    return {"app.kubernetes.io/name": "kpu-torch-server", "app.kubernetes.io/instance": compute.name}


def _head(api_version: str, kind: str, compute: Compute, name: str) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": _metadata(compute, name)}


def _metadata(compute: Compute, name: str) -> Document:
    owner = {
        "apiVersion": COMPUTE_DOCUMENTS.api_version,
        "kind": COMPUTE_DOCUMENTS.name,
        "name": compute.name,
        "uid": compute.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "name": name,
        "namespace": compute.namespace,
        "labels": _labels(compute),
        "ownerReferences": [owner],
    }


def _labels(compute: Compute) -> dict[str, str]:
    usual = {
        "app.kubernetes.io/component": "compute",
        "app.kubernetes.io/managed-by": "kpu-operator",
        "app.kubernetes.io/part-of": "kpu",
    }
    return {**usual, **(compute.spec.labels or {}), **selector_of(compute), NAME_LABEL: compute.name}


def _pod_spec(compute: Compute, settings: ComputeSettings, confined: bool) -> Document:
    spec = compute.spec
    env = _environment(compute, settings)
    port = _port_of(env)
    volumes, mounts = _volumes(compute)
    container: Document = {
        "name": CONTAINER,
        "image": spec.image or settings.image,
        "imagePullPolicy": "IfNotPresent",
        "ports": [{"name": PORT_NAME, "containerPort": port, "protocol": "TCP"}],
        "env": list(env.values()),
        "resources": _resources(spec.resources or {}),
        "readinessProbe": {**_probe(compute, port), **PROBE_TIMES},
        # Without a message of its own a container leaves the end of its log, and the status can say why it ended.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    container |= {"command": list(spec.command)} if spec.command else {}
    container |= {"args": list(spec.args)} if spec.args else {}
    container |= {"volumeMounts": mounts} if mounts else {}
    container |= {"securityContext": CONFINED_CONTAINER} if confined else {}
    # A Service called kpu would otherwise become the variable KPU_PORT of every pod beside it.
    pod: Document = {"automountServiceAccountToken": False, "enableServiceLinks": False, "containers": [container]}
    pod |= {"securityContext": CONFINED_POD} if confined else {}
    return pod | ({"volumes": volumes} if volumes else {})


def _environment(compute: Compute, settings: ComputeSettings) -> dict[str, Document]:
    """By name; ours first, so that a user's variable may refer to them."""
    spec = compute.spec
    host = {"valueFrom": {"fieldRef": {"fieldPath": settings.host_field}}} if settings.host_field else {"value": "[::]"}
    ours: dict[str, Document] = {
        "KPU_PORT": {"value": str(PORT)},
        "KPU_HOST": host,
        "KPU_GRACE_SECONDS": {"value": str(UNTIL_KILLED_S)},
    }
    users = {variable["name"]: variable for variable in spec.env or ()}
    if "LOG_LEVEL" not in users:  # the server takes either, ours before that
        ours["KPU_LOG_LEVEL"] = {"value": "INFO"}
    if compute.has_token:
        key = {"name": secret_name(compute), "key": TOKEN_KEY}
        ours["KPU_TOKEN"] = {"valueFrom": {"secretKeyRef": key}}
    if spec.tls:
        ours["KPU_TLS_CERT"] = {"value": f"{TLS_DIRECTORY}/tls.crt"}
        ours["KPU_TLS_KEY"] = {"value": f"{TLS_DIRECTORY}/tls.key"}
    if spec.shared_memory:
        # A Unix socket's path is short, so it is called after the Compute's uid and not after its namespace and name.
        ours["KPU_SHARED_SOCKET"] = {"value": f"{_shared_directory(spec.shared_memory)}/{compute.metadata.uid}.sock"}
    named = {name: {"name": name, **source} for name, source in ours.items()}
    return named | users


def _port_of(env: Mapping[str, Document]) -> int:
    """The port that the server will listen on, as far as that can be known."""
    told = env["KPU_PORT"].get("value") or ""
    return int(told) if told.isascii() and told.isdecimal() and 0 < int(told) < 65536 else PORT


def _probe(compute: Compute, port: int) -> Document:
    """The kubelet asks over gRPC without TLS alone; where there is TLS, it can only see whether somebody listens."""
    if compute.spec.tls:
        return {"tcpSocket": {"port": port}}
    return {"grpc": {"port": port, "service": HEALTH_SERVICE}}


def _resources(wanted: Mapping[str, Any]) -> Document:
    return {"requests": {**DEFAULT_REQUESTS, **wanted}, "limits": {**DEFAULT_LIMITS, **wanted}}


def _shared_directory(shared: SharedMemory) -> str:
    """A directory of the node is mounted under its own path, so that the socket is called the same everywhere."""
    return (shared.host_path or SHARED_DIRECTORY).rstrip("/")


def _volumes(compute: Compute) -> tuple[list[Document], list[Document]]:
    volumes: list[Document] = []
    mounts: list[Document] = []
    if tls := compute.spec.tls:
        volumes.append({"name": TLS_VOLUME, "secret": {"secretName": tls.secret_name}})
        mounts.append({"name": TLS_VOLUME, "mountPath": TLS_DIRECTORY, "readOnly": True})
    if shared := compute.spec.shared_memory:
        claim = {"persistentVolumeClaim": {"claimName": shared.claim_name}}
        directory = {"hostPath": {"path": shared.host_path, "type": "DirectoryOrCreate"}}
        volumes.append({"name": SHARED_VOLUME, **(directory if shared.host_path else claim)})
        mounts.append({"name": SHARED_VOLUME, "mountPath": _shared_directory(shared)})
    return volumes, mounts
