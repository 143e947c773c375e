"""The scale of an object: how many there should be and are, wherever the object says so."""

from typing import NamedTuple

from tessera.embedded import causes
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.kinds import Kind
from tessera.embedded.refusals import ApiRefusal, invalid
from tessera.embedded.resources import json_paths, label_selectors
from tessera.embedded.resources.parts import inside

SCALE = Kind(group="autoscaling", version="v1", kind="Scale", plural="scales")


class ScalePaths(NamedTuple):
    """Where the numbers lie. A workload has an object for a selector, a custom resource has text."""

    wanted: str = ".spec.replicas"
    observed: str = ".status.replicas"
    selector: str = ".spec.selector"
    is_custom: bool = False


WORKLOAD = ScalePaths()


def paths_of(declared: Frozen | None) -> ScalePaths:
    """Where a definition says that the numbers of its kind lie."""
    if declared is None:
        return WORKLOAD
    wanted, observed = declared["specReplicasPath"], declared["statusReplicasPath"]
    return ScalePaths(wanted, observed, declared.get("labelSelectorPath") or "", is_custom=True)


def scale_of(document: Frozen, paths: ScalePaths) -> Document:
    """The object seen as a Scale. A number that is zero is left out of the spec, as the wire has it."""
    metadata = document["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    wanted = _number(document, paths.wanted)
    if wanted is None and paths.is_custom:
        message = f'Internal error occurred: the spec replicas field "{paths.wanted}" does not exist'
        raise ApiRefusal(500, "InternalError", message)
    status: Document = {"replicas": _number(document, paths.observed) or 0}
    if selector := _selector(document, paths):
        status["selector"] = selector
    return {
        "kind": SCALE.kind,
        "apiVersion": SCALE.api_version,
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {"replicas": wanted} if wanted else {},
        "status": status,
    }


def scaled(document: Document, scale: Frozen, kind: Kind, paths: ScalePaths) -> Document:
    """The object with as many replicas as the Scale wants; 422 where that is less than none."""
    wanted = inside(scale, "spec").get("replicas") or 0
    if wanted < 0:
        name = document["metadata"]["name"]
        if paths.is_custom:
            cause = causes.invalid(paths.wanted, wanted, "should be a non-negative integer")
            raise invalid(kind, name, [cause])
        raise invalid(SCALE, name, causes.below_zero("spec.replicas", wanted))
    return json_paths.put(document, paths.wanted, wanted)


def _number(document: Frozen, path: str) -> int | None:
    found = json_paths.find(document, path)
    return found[0] if found and isinstance(found[0], int) else None


def _selector(document: Frozen, paths: ScalePaths) -> str:
    found = json_paths.find(document, paths.selector) if paths.selector else []
    if not found or not found[0]:
        return ""
    return found[0] if paths.is_custom else label_selectors.written(found[0])
