"""The policy that keeps an agent to its own node.

RBAC cannot say "the node that you run on": whoever may patch a node may patch them all. But a token says on which node
its pod runs, and the API server can compare. So a node in wrong hands can neither drain another, nor forge its cards,
nor answer for its agent. On its own node an agent writes what tells of cards and nothing else: no taint, no label by
which pods are steered, and of its status only the one condition that is ours.

Its Lease says that its node's agent lives, and which pods have ended there, its GpuNodeStatus which cards are there; it
may speak for no other node. Pods are read by agents, never written, beyond what `guarding` lets them write on pods of
their own node.
"""

from typing import Any

from tessera.admission.expressions import TOKENS_NODES, either, list_of, quoted
from tessera.admission.policies import policy_in_force
from tessera.model.annotations import keys
from tessera.model.catalogue import Catalogue

Document = dict[str, Any]
LEASES = "tessera-agent-"
NAMESPACE = "kube-system"
STATUSES = "gpunodestatuses"
_OURS = "tessera.io/"
_LABELS = ("gpu",)
_CONDITIONS = (keys.LATE_BINDING, keys.LIMITS_HELD)


def reported_annotations(catalogue: Catalogue) -> tuple[str, ...]:
    """What an agent writes on its node in any of its forms, beside what has our own domain, in a stable order."""
    named: set[str | None] = set()
    for vendor in catalogue:
        written = vendor.annotations
        named |= {written.register, written.handshake, *written.handshake_aliases, written.links}
    return tuple(sorted(key for key in named if key))


def agent_policy_manifests(
    catalogue: Catalogue, agents: tuple[str, ...], *, name: str = "hami-agents"
) -> tuple[Document, ...]:
    """The policy and what puts it in force. `agents` are user names, as `guarding.service_account` makes them."""
    return policy_in_force(
        name,
        writes=_WRITES,
        concerns=("an-agent", f"request.userInfo.username in {list_of(agents)}"),
        variables=_variables(catalogue),
        validations=(
            _confine("nodes", _IS_OWN_NODE, "expected an agent to write its own node and no other"),
            _confine(
                "nodes",
                "variables.foreign.size() == 0",
                "expected an agent to write its register, its handshake, its links and the label gpu alone",
                "variables.foreign.join(', ')",
            ),
            _confine("leases", _IS_OWN_LEASE, f"expected {LEASES}<node> in {NAMESPACE} that speaks for that node"),
            _confine(STATUSES, _IS_OWN_STATUS, "expected an agent to write the one that is named like its own node"),
            _confine("pods", _IS_OWN_POD, "expected an agent to leave pods alone, but for notes on its own node's"),
        ),
    )


_WRITES: list[Document] = [
    {"operations": ["CREATE", "UPDATE", "DELETE"], "apiGroups": [group], "apiVersions": ["*"], "resources": resources}
    for group, resources in (
        ("", ["nodes", "nodes/*", "pods", "pods/*"]),
        ("coordination.k8s.io", ["leases"]),
        ("gpu.scheduling", [STATUSES, f"{STATUSES}/*"]),
    )
]
_UPDATES_ITSELF = "request.operation == 'UPDATE' && request.?subResource.orValue('') == ''"
_IS_OWN_NODE = (
    "request.operation == 'UPDATE' && request.?subResource.orValue('') in ['', 'status'] && "
    "request.name == variables.node"
)
_STATUS = ("capacity", "allocatable", "addresses", "nodeInfo")
_IS_OWN_POD = (
    f"{_UPDATES_ITSELF} && oldObject.?spec.?nodeName.orValue('') in {TOKENS_NODES} && object.?spec == oldObject.?spec"
)
_IS_OWN_LEASE = (
    "request.operation in ['CREATE', 'UPDATE'] && variables.node != '' && "
    f"request.namespace == {quoted(NAMESPACE)} && object.metadata.name == {quoted(LEASES)} + variables.node && "
    f"object.metadata.?annotations[?{quoted(keys.AGENT_NODE)}].orValue(variables.node) == variables.node"
)
_IS_OWN_STATUS = (
    "request.operation in ['CREATE', 'UPDATE'] && variables.node != '' && object.metadata.name == variables.node && "
    "object.?spec.?nodeName.orValue(variables.node) == variables.node"
)


def _variables(catalogue: Catalogue) -> dict[str, str]:
    """`foreign` is what of a node the request changes though it is not the agent's."""
    annotations = either(f"k.startsWith({quoted(_OURS)})", f"k in {list_of(reported_annotations(catalogue))}")
    labels = either(f"k.startsWith({quoted(_OURS)})", f"k in {list_of(_LABELS)}")
    parts = ("spec", "metadata.?ownerReferences", "metadata.?finalizers", *(f"status.?{field}" for field in _STATUS))
    fields = " + ".join((*(_changed(part) for part in parts), _changed_conditions()))
    return {
        "node": f"{TOKENS_NODES}.size() == 1 ? {TOKENS_NODES}[0] : ''",
        "foreign": "request.operation != 'UPDATE' || request.resource.resource != 'nodes' ? [] : "
        f"{fields} + {_changed_keys('annotations', annotations)} + {_changed_keys('labels', labels)}",
    }


def _changed(field: str) -> str:
    return f"(object.?{field} == oldObject.?{field} ? [] : [{quoted(field.replace('?', ''))}])"


def _changed_conditions() -> str:
    before, after = (
        f"{thing}.?status.?conditions.orValue([]).filter(c, !(c.type in {list_of(_CONDITIONS)}))"
        for thing in ("oldObject", "object")
    )
    return f"({after} == {before} ? [] : ['status.conditions'])"


def _changed_keys(field: str, allowed: str) -> str:
    """The keys of a map that were added, removed or given another value, less those that may be."""
    before, after = (f"{thing}.metadata.?{field}" for thing in ("oldObject", "object"))
    removed = f"{before}.orValue({{}}).map(k, k).filter(k, !{after}[?k].hasValue())"
    set_anew = f"{after}.orValue({{}}).map(k, k).filter(k, {before}[?k] != {after}[?k])"
    return f"({removed} + {set_anew}).filter(k, !({allowed}))"


def _confine(resource: str, expression: str, expected: str, touched: str = "") -> Document:
    where = (quoted(f"{resource}/"), "request.name", *((quoted(": "), touched) if touched else ()))
    who = (quoted(" is written by "), "request.userInfo.username", quoted(" of node "), "variables.node")
    return {
        "expression": f"request.resource.resource != {quoted(resource)} || ({expression})",
        "reason": "Forbidden",
        "message": f"{resource} are written by an agent, {expected}",
        "messageExpression": " + ".join((*where, *who, quoted(f", {expected}"))),
    }
