"""Pods for the engine's tests, and waiting for what becomes of them."""

from collections.abc import Callable
from typing import Any

from tests.contract.api import Collection, Object

FOREVER = "trap 'exit 0' TERM; while :; do sleep 0.1; done"


def gpu_pod(name: str, script: str = FOREVER, *, memory_mib: int = 0, cards: int = 1, **spec: Any) -> Object:
    """A pod that asks for cards; without memory for whole ones."""
    limits = {"nvidia.com/gpu": str(cards)} | ({"nvidia.com/gpumem": str(memory_mib)} if memory_mib else {})
    container = {"name": "main", "image": "tessera.local/machine", "command": ["sh", "-c", script]}
    ending = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    return {
        "metadata": {"name": name},
        "spec": {**ending, "containers": [container | {"resources": {"limits": limits}}], **spec},
    }


def wait_for(pods: Collection, name: str, condition: Callable[[Object], Any]) -> Object:
    """The pod as it is when the condition first holds."""
    with pods.watch(fieldSelector=f"metadata.name={name}") as watch:
        return watch.until(lambda event: bool(condition(event.object))).object
