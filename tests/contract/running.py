"""Pods that really run, and waiting for what becomes of them."""

from collections.abc import Callable
from typing import Any

from tests.contract.api import Collection, Object
from tests.contract.engines import Engine
from tests.contract.objects import pod

SHARED: list[Object] = [{"name": "shared", "emptyDir": {}}]
SHARE: Object = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
FOREVER = "trap 'exit 0' TERM; while :; do sleep 0.1; done"


class Runner:
    """Starts shell scripts as pods of the test's namespace."""

    def __init__(self, engine: Engine, pods: Collection) -> None:
        self._image = engine.image
        self.pods = pods

    def container(self, script: str, **more: Any) -> Object:
        container = {"name": "main", "image": self._image, "imagePullPolicy": "Never"}
        return container | {"command": ["sh", "-c", script]} | more

    def spec(self, *containers: Object, **more: Any) -> Object:
        """A pod's spec that the cluster's own scheduler places and that ends quickly when it is told to."""
        placed = {"schedulerName": "default-scheduler", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
        return placed | {"containers": list(containers)} | more

    def start(self, *what: str | Object, name: str = "worker", metadata: Object | None = None, **spec: Any) -> Object:
        """Create a pod from scripts or whole containers."""
        containers = [self.container(one) if isinstance(one, str) else one for one in what]
        return self.pods.create(pod(name, spec=self.spec(*containers, **spec), **(metadata or {})))

    def wait(self, condition: Callable[[Object], Any], *, name: str = "worker") -> Object:
        """The pod as it is when the condition first holds."""
        with self.pods.watch(fieldSelector=f"metadata.name={name}") as watch:
            return watch.until(lambda event: bool(condition(event.object))).object

    def run(self, *what: str | Object, **more: Any) -> str:
        """Everything that a pod printed, once it has succeeded."""
        self.start(*what, **more)
        ended = self.wait(has_ended)
        log = self.pods.get("worker/log")
        assert ended["status"]["phase"] == "Succeeded", log
        return log


def has_ended(pod: Object) -> bool:
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def is_running(pod: Object) -> bool:
    return pod["status"]["phase"] == "Running"


def has_node(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName"))


def is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any((entry["type"], entry["status"]) == ("Ready", "True") for entry in conditions)


def was_restarted(pod: Object) -> bool:
    return any(status["restartCount"] for status in pod["status"].get("containerStatuses", []))
