"""The smallest objects that an API server accepts, for tests to say only what matters to them."""

from typing import Any

from tests.contract.api import Object

NOBODY = "nobody"  # a scheduler that does not exist: whatever names it stays unscheduled


def config_map(name: str, data: dict[str, str] | None = None, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name} | metadata,
        "data": data if data is not None else {"colour": "red"},
    }


def pod(name: str, *, spec: Object | None = None, container: Object | None = None, **metadata: Any) -> Object:
    """A pod that no scheduler looks at, unless its spec says otherwise."""
    main = {"name": "main", "image": "registry.invalid/none"} | (container or {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name} | metadata,
        "spec": {"schedulerName": NOBODY, "containers": [main]} | (spec or {}),
    }


def pod_template(app: str) -> Object:
    template = pod("unnamed")
    return {"metadata": {"labels": {"app": app}}, "spec": template["spec"]}


def deployment(name: str, *, replicas: int = 1) -> Object:
    """`replicas` pods that stay unscheduled."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": pod_template(name),
        },
    }


def owned_by(owner: Object, *, blocks: bool = False) -> list[Object]:
    """The ownerReferences of something that goes when `owner` goes."""
    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
    return [reference | ({"blockOwnerDeletion": True} if blocks else {})]
