"""Pods on their way in, and what a review makes of them."""

from copy import deepcopy
from typing import Any

from tessera.admission import DEFAULT_SETTINGS, Denial, Mutation, Settings, Untouched, review
from tessera.model.admission import Operation
from tessera.vendors.loading import load_catalogue

CATALOGUE = load_catalogue()


def a_container(limits: Any = None, **fields: Any) -> dict[str, Any]:
    resources = {"resources": {"limits": limits}} if limits is not None else {}
    return {"name": "train", "image": "none", **resources, **fields}


def a_pod(*containers: dict[str, Any], annotations: Any = None, labels: Any = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "web-0", "namespace": "default", "annotations": annotations, "labels": labels}
    return {
        "metadata": {key: value for key, value in metadata.items() if value is not None},
        "spec": {"containers": list(containers), "schedulerName": "default-scheduler", **spec},
    }


def a_gpu_pod(**limits: str) -> dict[str, Any]:
    """A pod whose only container has these limits of NVIDIA's."""
    return a_pod(a_container({f"nvidia.com/{key.replace('_', '-')}": value for key, value in limits.items()}))


def mutate(pod: Any, settings: Settings = DEFAULT_SETTINGS, **options: Any) -> dict[str, Any]:
    """The pod after a review that must change it."""
    verdict = review(pod, CATALOGUE, settings, **options)
    assert isinstance(verdict, Mutation), verdict
    return apply_patch(pod, verdict.patch)


def warnings_of(pod: Any, settings: Settings = DEFAULT_SETTINGS) -> tuple[str, ...]:
    verdict = review(pod, CATALOGUE, settings)
    assert isinstance(verdict, Mutation), verdict
    return verdict.warnings


def denial_of(pod: Any, settings: Settings = DEFAULT_SETTINGS, **options: Any) -> str:
    verdict = review(pod, CATALOGUE, settings, **options)
    assert isinstance(verdict, Denial), verdict
    return verdict.sentence


def is_untouched(pod: Any, settings: Settings = DEFAULT_SETTINGS) -> bool:
    return isinstance(review(pod, CATALOGUE, settings), Untouched)


def apply_patch(document: Any, patch: tuple[Operation, ...]) -> Any:
    """RFC 6902 to the letter: a parent that is missing is an error, as it is to an API server."""
    changed = deepcopy(document)
    for operation in patch:
        *parents, last = (step.replace("~1", "/").replace("~0", "~") for step in operation.path.split("/")[1:])
        holder = changed
        for step in parents:
            holder = holder[int(step)] if isinstance(holder, list) else holder[step]
        if isinstance(holder, list) and last == "-":
            holder.append(operation.value)
        elif isinstance(holder, list):
            holder[int(last)] = operation.value
        else:
            assert operation.op == "add" or last in holder
            holder[last] = operation.value
    return changed
