"""May a pod be evicted? Whoever evicts asks the budgets that protect it; whoever deletes does not.

A budget that can bear it is counted down in the same breath, so that two evictions cannot share what one may take.
"""

from collections.abc import Sequence
from http import HTTPStatus

from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import ApiRefusal
from tessera.embedded.resources import label_selectors
from tessera.embedded.resources.parts import each, inside, part_of
from tessera.embedded.resources.pods import ENDED

_MESSAGE = "Cannot evict pod as it would violate the pod's disruption budget."
_TOO_MANY_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


def budget_of(pod: Frozen, budgets: Sequence[Document]) -> Document | None:
    """The budget that must be asked; None where the pod counts for nobody any more, or for no budget."""
    if _counts_for_nobody(pod):
        return None
    labels = pod["metadata"].get("labels")
    protecting = [budget for budget in budgets if label_selectors.matches(budget["spec"].get("selector"), labels)]
    if len(protecting) > 1:
        raise ApiRefusal(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", _TOO_MANY_BUDGETS)
    return protecting[0] if protecting else None


def charge(budget: Document, pod: Frozen, now: str) -> Document | None:
    """The budget with one disruption less to give; None if the pod takes none of it. Refuses where none is left."""
    status = inside(budget, "status")
    if not _is_ready(pod) and status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0:
        return None
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _refused(budget, "is still being processed by the server.")
    if status.get("disruptionsAllowed", 0) <= 0:
        healthy, needed = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
        raise _refused(budget, f"needs {needed} healthy pods and has {healthy} currently")
    after = part_of(budget, "status")
    after["disruptionsAllowed"] -= 1
    after["disruptedPods"] = dict(inside(after, "disruptedPods")) | {pod["metadata"]["name"]: now}
    return budget


def _counts_for_nobody(pod: Frozen) -> bool:
    phase = inside(pod, "status").get("phase")
    return phase in (*ENDED, "Pending") or bool(pod["metadata"].get("deletionTimestamp"))


def _is_ready(pod: Frozen) -> bool:
    conditions = each(inside(pod, "status"), "conditions")
    return any((entry.get("type"), entry.get("status")) == ("Ready", "True") for entry in conditions)


def _refused(budget: Frozen, why: str) -> ApiRefusal:
    told = f"The disruption budget {budget['metadata']['name']} {why}"
    cause = {"reason": "DisruptionBudget", "message": told}
    return ApiRefusal(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", _MESSAGE, {"causes": [cause]})
