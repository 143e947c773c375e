"""Objects that the tests make."""

from tessera.kube.objects import Document


def a_config_map(name: str, **data: str) -> Document:
    return {"metadata": {"name": name}, "data": data}


def a_pod(name: str, **labels: str) -> Document:
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "none"}], "schedulerName": "nobody"},
    }


def a_deployment(name: str) -> Document:
    labels = {"app": name}
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": a_pod(name)["spec"] | {"restartPolicy": "Always"}},
        },
    }


RUNNING: Document = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
