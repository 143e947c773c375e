"""What the tests ask controllers for: pods that start at once on the simulated node, or wait for ever."""

from typing import Any

from tests.contract.api import Collection, Object
from tests.contract.waiting import eventually

NODE = "gpu-0000"
CONTAINER: Object = {"name": "main", "image": "registry.invalid/none"}


def template(app: str, *, runs: bool = True, **spec: Any) -> Object:
    placed = {"nodeName": NODE} if runs else {"schedulerName": "nobody"}
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [CONTAINER], **placed, **spec}}


def workload(kind: str, name: str, *, replicas: int, runs: bool = True, **spec: Any) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": template(name, runs=runs),
            **spec,
        },
    }


def job(name: str, *, runs: bool = True, restarts: str = "Never", **spec: Any) -> Object:
    pods = template(name, runs=runs, restartPolicy=restarts)
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": pods, **spec}}


def conditions(thing: Object) -> dict[str, Object]:
    """Those that hold, by type."""
    told = thing.get("status", {}).get("conditions") or []
    return {condition["type"]: condition for condition in told if condition["status"] == "True"}


def condition_when(collection: Collection, name: str, kind: str) -> Object:
    """The condition of this type, once it holds."""
    eventually(lambda: kind in conditions(collection.get(name)))
    return conditions(collection.get(name))[kind]
