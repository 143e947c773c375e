"""Objects for tests of decisions: as a cache would have them, with what matters to a test and no more."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tessera.embedded.controllers.objects import (
    Budget,
    Deployment,
    EndpointSlice,
    Job,
    Node,
    ReplicaSet,
    Service,
    StatefulSet,
    Thing,
)
from tessera.embedded.controllers.pods import Pod
from tessera.embedded.controllers.times import write_time

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
SELECTOR = {"matchLabels": {"app": "web"}}


def ago(seconds: float) -> str:
    return write_time(NOW - timedelta(seconds=seconds))


def metadata(name: str, **more: Any) -> dict[str, Any]:
    identity = {"name": name, "namespace": "default", "uid": f"uid-of-{name}", "resourceVersion": "1"}
    return {**identity, "creationTimestamp": ago(60), "generation": 1, **more}


def pod(name: str, phase: str = "Running", *, ready: bool = True, status: Any = None, **more: Any) -> Pod:
    conditions = [{"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": ago(30)}]
    spec = more.pop("spec", {})
    document = {
        "metadata": metadata(name, **{"labels": {"app": "web"}, **more}),
        "spec": {"nodeName": "node-a", **spec},
        "status": {"phase": phase, "conditions": conditions, "podIP": "10.0.0.1", **(status or {})},
    }
    return msgspec.convert(document, Pod)


def going(name: str, phase: str = "Running", **more: Any) -> Pod:
    return pod(name, phase, deletionTimestamp=ago(1), **more)


def thing(name: str, **more: Any) -> Thing:
    return msgspec.convert({"metadata": metadata(name, **more)}, Thing)


def owned_by(name: str, **more: Any) -> list[dict[str, Any]]:
    return [{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": f"uid-of-{name}", **more}]


def replica_set(name: str, replicas: int, *, status: Any = None, template: Any = TEMPLATE, **more: Any) -> ReplicaSet:
    spec = {"replicas": replicas, "selector": SELECTOR, "template": template}
    return msgspec.convert({"metadata": metadata(name, **more), "spec": spec, "status": status or {}}, ReplicaSet)


def deployment(replicas: int, *, status: Any = None, **spec: Any) -> Deployment:
    whole = {"replicas": replicas, "selector": SELECTOR, "template": TEMPLATE, **spec}
    return msgspec.convert({"metadata": metadata("web"), "spec": whole, "status": status or {}}, Deployment)


def stateful_set(replicas: int, *, status: Any = None, **spec: Any) -> StatefulSet:
    whole = {"replicas": replicas, "selector": SELECTOR, "template": TEMPLATE, "serviceName": "db", **spec}
    return msgspec.convert({"metadata": metadata("db"), "spec": whole, "status": status or {}}, StatefulSet)


def job(*, status: Any = None, **spec: Any) -> Job:
    whole = {"selector": SELECTOR, "template": TEMPLATE, **spec}
    return msgspec.convert({"metadata": metadata("once"), "spec": whole, "status": status or {}}, Job)


def service(**spec: Any) -> Service:
    whole = {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}], **spec}
    return msgspec.convert({"metadata": metadata("web"), "spec": whole}, Service)


def endpoint_slice(body: dict[str, Any]) -> EndpointSlice:
    stored = {**body["metadata"], "uid": "x", "resourceVersion": "1"}
    return msgspec.convert({**body, "metadata": stored}, EndpointSlice)


def budget(*, status: Any = None, **spec: Any) -> Budget:
    whole = {"selector": SELECTOR, **spec}
    return msgspec.convert({"metadata": metadata("one"), "spec": whole, "status": status or {}}, Budget)


def node(ready: str | None = "True", *, taints: Any = None, unschedulable: bool = False) -> Node:
    conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": ago(5)}] if ready else []
    spec = {"taints": taints, "unschedulable": unschedulable}
    return msgspec.convert({"metadata": metadata("a"), "spec": spec, "status": {"conditions": conditions}}, Node)
