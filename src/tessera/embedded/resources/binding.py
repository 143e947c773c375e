"""A Binding gives a pod its node, and whatever annotations come with it, in one write."""

from http import HTTPStatus

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import ApiRefusal, bad_request, conflict
from tessera.embedded.resources.parts import inside, part_of
from tessera.embedded.resources.table import PODS


def bind(pod: Document, binding: Frozen, now: str) -> Document:
    """The pod on its node. Refuses a pod that has one, is going, waits at a gate, or is not the one that was meant."""
    node = _target(binding)
    metadata: Frozen = pod["metadata"]
    _require_the_same(metadata, inside(binding, "metadata"))
    name: str = metadata["name"]
    if metadata.get("deletionTimestamp"):
        raise _refused(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if pod["spec"].get("nodeName"):
        raise _refused(name, f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"')
    if pod["spec"].get("schedulingGates"):
        raise _refused(name, f"pod {name} has non-empty .spec.schedulingGates")
    pod["spec"]["nodeName"] = node
    for field in ("annotations", "labels"):
        if given := inside(binding, "metadata").get(field):
            part_of(pod["metadata"], field).update(given)
    _say_scheduled(part_of(pod, "status"), now)
    return pod


def _target(binding: Frozen) -> str:
    target = inside(binding, "target")
    if target.get("kind") not in (None, "", "Node"):
        message = f'target.kind: Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"'
        raise ApiRefusal(HTTPStatus.INTERNAL_SERVER_ERROR, "", message)  # as kube-apiserver has it
    if not target.get("name"):
        raise ApiRefusal(HTTPStatus.INTERNAL_SERVER_ERROR, "", "target.name: Required value")
    return str(target["name"])


def _require_the_same(pod: Frozen, meant: Frozen) -> None:
    if meant.get("name") not in (None, "", pod["name"]):
        raise bad_request("name in URL does not match name in Binding object")
    for field, word in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        if meant.get(field) and meant[field] != pod[field]:
            told = f"{word} in precondition: {meant[field]}, {word} in object meta: {pod[field]}"
            raise conflict(PODS, pod["name"], f"Precondition failed: {told}")


def _refused(name: str, why: str) -> ApiRefusal:
    message = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
    return ApiRefusal(HTTPStatus.CONFLICT, "Conflict", message, {"name": name, "kind": "pods/binding"})


def _say_scheduled(status: Document, now: str) -> None:
    others = [entry for entry in status.get("conditions") or () if entry.get("type") != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    status["conditions"] = [*others, scheduled]
