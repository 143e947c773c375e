"""Would the namespace's quota let all pods of the job in?

Kubernetes applies a quota to pods, not to MPIJobs: the job would be accepted, and wait for ever with an event that few
read. So what its pods will ask for is counted before it is created, as the API server counts it. Pure, but for `look`.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple, Optional

from . import api
from .documents import Document, int_at, list_at, mapping_at, mappings_at, text_at
from .errors import api_error
from .manifests import is_suspended
from .quantities import parse_quantity, show_quantity
from .settings import LAUNCHER, REPLICAS, WORKER, pod_template
from .watching import if_known

Amounts = dict[str, Decimal]
STANDARD = ("cpu", "memory", "ephemeral-storage")
LOOK_S = 5.0
OBJECTS = {"mpijobs.kubeflow.org": 1, "jobs.batch": 1, "configmaps": 1, "secrets": 1, "services": 1}
"""What a job brings along beside its pods."""


class Pods(NamedTuple):
    """Several alike."""

    role: str
    number: int
    template: Mapping[str, Any]


def check_quota(namespace: str, document: Document) -> None:
    """Raises ApiException (422) if a quota stands in the way. Where quotas cannot be read, nobody is held up."""
    quotas = if_known(lambda: _list(namespace, "resourcequotas")) or []
    ranges = if_known(lambda: _list(namespace, "limitranges")) or [] if quotas else []
    problems = [problem for quota in quotas for problem in problems_with(quota, document, ranges)]
    if problems:
        name = text_at(document, "metadata", "name")
        raise api_error(422, f"quota exceeded: MPIJob {namespace}/{name} would not get its pods: {'; '.join(problems)}")


def problems_with(quota: Mapping[str, Any], document: Document, limit_ranges: list[Mapping[str, Any]]) -> Iterator[str]:
    """A sentence for each resource of which the job wants more than is left."""
    name = text_at(quota, "metadata", "name")
    hard = mapping_at(quota, "status", "hard") or mapping_at(quota, "spec", "hard")
    used = mapping_at(quota, "status", "used")
    defaults = _defaults(limit_ranges)
    pods = [] if is_suspended(document) else [one for one in _pods(document) if _is_in_scope(quota, one, defaults)]
    for key, limit in hard.items():
        allowed, taken = parse_quantity(limit), parse_quantity(used.get(key, 0)) or Decimal(0)
        unsaid = _roles_without(key, pods, defaults)
        wanted = _wanted(key, pods, defaults, quota)
        if unsaid:
            yield f"quota {name} counts {key}, and the {unsaid[0].lower()} does not say how much it needs"
        elif allowed is not None and wanted > 0 and taken + wanted > allowed:
            figures = [show_quantity(value) for value in (wanted, max(allowed - taken, Decimal(0)), taken, allowed)]
            yield "{}: {} needed, {} left ({} of {} used, quota {})".format(key, *figures, name)


def _list(namespace: str, kind: str) -> list[Mapping[str, Any]]:
    return mappings_at(api.get(api.in_namespace(namespace, kind), answer_s=LOOK_S), "items")


def _pods(document: Document) -> Iterator[Pods]:
    for role, usual in ((LAUNCHER, 1), (WORKER, 0)):
        replicas = int_at(document, *REPLICAS, role, "replicas")
        count = usual if replicas is None else replicas
        if count and mapping_at(document, *REPLICAS, role):
            yield Pods(role, count, pod_template(document, role))


def _wanted(key: str, pods: list[Pods], defaults: Mapping[str, Any], quota: Mapping[str, Any]) -> Decimal:
    if key in ("pods", "count/pods"):
        return Decimal(sum(one.number for one in pods))
    counted = key[len("count/") :] if key.startswith("count/") else key
    if counted in OBJECTS and not _scopes(quota):
        return Decimal(OBJECTS[counted])
    kind, resource = _meaning(key)
    return sum(
        (_of_pod(one.template, kind, defaults).get(resource, Decimal(0)) * one.number for one in pods), Decimal(0)
    )


def _roles_without(key: str, pods: list[Pods], defaults: Mapping[str, Any]) -> list[str]:
    """Whose pods the API server would refuse because they do not say what the quota counts."""
    kind, resource = _meaning(key)
    if resource not in STANDARD[:2]:
        return []
    return [
        one.role for one in pods if not all(resource in _of_container(c, kind, defaults) for c in _main(one.template))
    ]


def _meaning(key: str) -> "tuple[str, str]":
    """`requests.nvidia.com/gpu` counts requests of nvidia.com/gpu; a bare name counts requests too."""
    kind, dot, resource = key.partition(".")
    return (kind, resource) if dot and kind in ("requests", "limits") else ("requests", key)


def _of_pod(template: Mapping[str, Any], kind: str, defaults: Mapping[str, Any]) -> Amounts:
    """App containers and sidecars add up; an init container comes before them."""
    before = mappings_at(template, "spec", "initContainers")
    sidecars = [one for one in before if one.get("restartPolicy") == "Always"]
    together = _sum(_of_container(one, kind, defaults) for one in [*_main(template), *sidecars])
    for one in before:
        for resource, amount in _of_container(one, kind, defaults).items():
            together[resource] = max(together.get(resource, Decimal(0)), amount)
    return together


def _main(template: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return mappings_at(template, "spec", "containers")


def _of_container(container: Mapping[str, Any], kind: str, defaults: Mapping[str, Any]) -> Amounts:
    """A request that is not said is the limit, and what is not said at all may be the namespace's default."""
    limits = {**mapping_at(defaults, "default"), **mapping_at(container, "resources", "limits")}
    said = mapping_at(container, "resources", "limits")
    requests = {**mapping_at(defaults, "defaultRequest"), **said, **mapping_at(container, "resources", "requests")}
    amounts = limits if kind == "limits" else {**limits, **requests}
    parsed = {resource: parse_quantity(amount) for resource, amount in amounts.items()}
    return {resource: amount for resource, amount in parsed.items() if amount is not None}


def _sum(many: Iterator[Amounts]) -> Amounts:
    total: Amounts = {}
    for amounts in many:
        for resource, amount in amounts.items():
            total[resource] = total.get(resource, Decimal(0)) + amount
    return total


def _defaults(limit_ranges: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    """What containers get that say nothing."""
    found: dict[str, dict[str, Any]] = {"default": {}, "defaultRequest": {}}
    for limits in (one for limit_range in limit_ranges for one in mappings_at(limit_range, "spec", "limits")):
        if limits.get("type") == "Container":
            for kind in found:
                found[kind].update(mapping_at(limits, kind))
    return found


def _scopes(quota: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Both ways of saying it, as expressions."""
    plain = [{"scopeName": one, "operator": "Exists"} for one in list_at(quota, "spec", "scopes")]
    return [*plain, *mappings_at(quota, "spec", "scopeSelector", "matchExpressions")]


def _is_in_scope(quota: Mapping[str, Any], pods: Pods, defaults: Mapping[str, Any]) -> bool:
    return all(_matches(scope, pods, defaults) for scope in _scopes(quota))


def _matches(scope: Mapping[str, Any], pods: Pods, defaults: Mapping[str, Any]) -> bool:
    name = scope.get("scopeName")
    if name in ("BestEffort", "NotBestEffort"):
        return _says_how_much(pods.template, defaults) == (name == "NotBestEffort")
    if name in ("Terminating", "NotTerminating"):
        ends = int_at(pods.template, "spec", "activeDeadlineSeconds") is not None
        return ends == (name == "Terminating")
    if name == "PriorityClass":
        return _matches_values(scope, text_at(pods.template, "spec", "priorityClassName"))
    return False


def _says_how_much(template: Mapping[str, Any], defaults: Mapping[str, Any]) -> bool:
    """Of CPU or memory: a pod that asks for a GPU alone is a best effort to Kubernetes."""
    containers = [*_main(template), *mappings_at(template, "spec", "initContainers")]
    asked = [_of_container(one, "requests", defaults) for one in containers]
    return any(amounts.get(resource) for amounts in asked for resource in STANDARD[:2])


def _matches_values(scope: Mapping[str, Any], value: Optional[str]) -> bool:
    values, operator = list_at(scope, "values"), scope.get("operator")
    answers = {"In": value in values, "NotIn": value not in values, "Exists": bool(value), "DoesNotExist": not value}
    return answers.get(str(operator), False)
