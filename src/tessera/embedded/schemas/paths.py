"""Where in a document, as Kubernetes writes it: `spec.containers[0].image`."""

from collections.abc import Iterable

Step = str | int

COMPOUND = frozenset({dict, list})
"""The types of values that have parts to which a step leads."""


def written(steps: Iterable[Step]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
