"""The policy that keeps people's hands off what the scheduler and the agents write on pods.

Whoever could write those annotations could take a card that another pod holds. The API server decides by itself, so
there is nothing that could be down. Everything else about a pod, other annotations included, is none of its business.

The scheduler may write all of it. An agent may change it on pods of its own node only, which its token names: a node
in wrong hands must not reach the others. At creation a pod may carry a pin, the wish for certain cards.

Which claim a pod names and which gang it is in is the user's to say until it is on a node. From then on it tells who
holds what.
"""

from typing import Any

import msgspec

from tessera.admission.expressions import TOKENS_NODES, either, list_of, quoted
from tessera.admission.policies import policy_in_force
from tessera.model.annotations import keys
from tessera.model.annotations.extras import extra_keys
from tessera.model.catalogue import Catalogue

Document = dict[str, Any]
_OURS = (
    keys.DEVICES_TO_ALLOCATE,
    keys.SCHEDULING_RESULT,
    keys.DEVICE_ALLOCATED,
    keys.VGPU_NODE,
    keys.VGPU_TIME,
    keys.BIND_PHASE,
    keys.BIND_TIME,
    keys.MIG_ALLOCATIONS,
    keys.ALLOCATION,
    keys.PIN,
    keys.CLAIMED,
    keys.VISIBLE_DEVICES,
    keys.VOLCANO_NODE,
    keys.VOLCANO_TIME,
    keys.VOLCANO_BIND_PHASE,
    keys.VOLCANO_BIND_TIME,
)
_SETTLED = (keys.CLAIM, keys.GANG)
"""What users write, and nobody any more once the pod is on a node."""


class Writers(msgspec.Struct, frozen=True, kw_only=True):
    """User names, as `service_account` makes them. Another scheduler that we read from (Volcano) belongs here too."""

    schedulers: tuple[str, ...]
    agents: tuple[str, ...] = ()


def service_account(namespace: str, name: str) -> str:
    return f"system:serviceaccount:{namespace}:{name}"


def guarded_annotations(catalogue: Catalogue) -> tuple[str, ...]:
    """Every annotation of a pod from which anybody reads that it was given cards, in a stable order."""
    guarded = set(_OURS)
    for vendor, lists in catalogue.allocation_keys().items():
        guarded |= {lists.allocated, *lists.aliases, *extra_keys(vendor)}
        guarded |= {lists.to_allocate} - {""}
    return tuple(sorted(guarded))


def policy_manifests(catalogue: Catalogue, writers: Writers, *, name: str = "hami-allocations") -> tuple[Document, ...]:
    """The policy and what puts it in force."""
    return policy_in_force(
        name,
        writes=_WRITES_TO_PODS,
        concerns=("not-the-scheduler", _not_among(writers.schedulers)),
        variables=_variables(catalogue, writers),
        validations=(
            _forbid("annotation", "variables.annotations"),
            _forbid("label", "variables.labels"),
            _forbid_resettling(),
        ),
    )


# Metadata can be changed through the status of a pod, and is copied from a Binding of either address.
_WRITES_TO_PODS: list[Document] = [
    {"operations": operations, "apiGroups": [""], "apiVersions": ["v1"], "resources": resources}
    for operations, resources in (
        (["CREATE", "UPDATE"], ["pods"]),
        (["UPDATE"], ["pods/status"]),
        (["CREATE"], ["pods/binding", "bindings"]),
    )
]


def _variables(catalogue: Catalogue, writers: Writers) -> dict[str, str]:
    """`annotations` and `labels` are the keys among the guarded ones that the request sets, changes or removes.

    `resettled` are those that it changes too late.
    """
    is_placed = either("object.kind == 'Binding'", "oldObject.?spec.?nodeName.orValue('') != ''")
    is_new_pod = "request.operation == 'CREATE' && object.kind == 'Pod'"
    return {
        "isAgentOfNode": _is_agent_of_node(writers),
        "guarded": list_of(guarded_annotations(catalogue)),
        "annotations": f"variables.guarded.filter(k, {_differs('annotations')} && !({is_new_pod} && k == "
        f"{quoted(keys.PIN)}))",
        "labels": f"[{quoted(keys.VGPU_NODE)}].filter(k, {_differs('labels')})",
        "resettled": f"{list_of(_SETTLED)}.filter(k, ({is_placed}) && {_differs('annotations')})",
    }


def _differs(field: str) -> str:
    before, after = (f"{thing}.?metadata.?{field}[?k]" for thing in ("oldObject", "object"))
    return f"{before} != {after}"


def _is_agent_of_node(writers: Writers) -> str:
    return (
        f"request.operation == 'UPDATE' && request.userInfo.username in {list_of(writers.agents)} && "
        f"oldObject.?spec.?nodeName.orValue('') in {TOKENS_NODES}"
    )


def _not_among(users: tuple[str, ...]) -> str:
    return f"!(request.userInfo.username in {list_of(users)})"


def _forbid(what: str, touched: str) -> Document:
    expected = "expected only the scheduler and the agent of the pod's node to write it; leave it out or as it was"
    facts = (_POD, quoted(f": {what} "), f"{touched}[0]", quoted(" is written by "), "request.userInfo.username")
    return {
        "expression": f"variables.isAgentOfNode || {touched}.size() == 0",
        "reason": "Forbidden",
        "message": f"the pod's {what}s that tell which cards it holds are written by a user, {expected}",
        "messageExpression": " + ".join((*facts, quoted(f", {expected}"))),
    }


def _forbid_resettling() -> Document:
    expected = "expected it to stay as it is while the pod is on a node; make a new pod"
    facts = (_POD, quoted(": annotation "), "variables.resettled[0]", quoted(" is changed, "), quoted(expected))
    return {
        "expression": "variables.resettled.size() == 0",
        "reason": "Forbidden",
        "message": f"an annotation that tells by which claim or in which gang a pod holds cards is changed, {expected}",
        "messageExpression": " + ".join(facts),
    }


_POD = "request.namespace + '/' + object.metadata.?name.orValue(object.metadata.?generateName.orValue('(unnamed)'))"
