"""What a pod asks of the node beside cards, counted as Kubernetes counts it.

Init containers run one after the other, so the pod needs the most that any moment needs: all of the app containers
with all sidecars, or one init container with the sidecars that started before it. Overhead comes on top.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from tessera.errors import InvalidQuantity, InvalidRequest
from tessera.model.mismatches import show
from tessera.model.pod_documents import NO_RESOURCES, Container, Expression, Spec, Term, TolerationPart, Values
from tessera.model.quantities import bytes_of, milli_of
from tessera.model.requests import HostRequest, LabelRule, Toleration

NODE_NAME_FIELD = "metadata.name"
MATCHES_NOTHING = (LabelRule(NODE_NAME_FIELD, "In", ()),)

Counting = Callable[[str | int | float], int]


def is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def read_host_request(spec: Spec) -> HostRequest:
    return HostRequest(
        cpu_milli=_effective(spec, "cpu", milli_of),
        memory_bytes=_effective(spec, "memory", bytes_of),
        node_terms=_read_node_terms(spec),
        tolerations=tuple(_read_toleration(part, index) for index, part in enumerate(spec.tolerations or ())),
    )


def restrict_nodes(host: HostRequest, rules: Sequence[LabelRule]) -> HostRequest:
    """The same, on nodes alone for which these rules hold too."""
    if not rules:
        return host
    terms = tuple((*term, *rules) for term in host.node_terms or ((),))
    return msgspec.structs.replace(host, node_terms=terms)


def _effective(spec: Spec, resource: str, counting: Counting) -> int:
    def asked(container: Container) -> int:
        return _figure((container.resources or NO_RESOURCES).first_of_requests(), resource, counting)

    peak = sidecars = 0
    for container in spec.init_containers or ():
        if is_sidecar(container):
            sidecars += asked(container)
            peak = max(peak, sidecars)
        else:
            peak = max(peak, sidecars + asked(container))
    peak = max(peak, sidecars + sum(asked(container) for container in spec.containers))
    # A figure for the pod as a whole replaces the sum over its containers (Kubernetes 1.34 and later).
    whole = (spec.resources or NO_RESOURCES).requests or {}
    if whole.get(resource) is not None:
        peak = _figure(whole, resource, counting)
    return peak + _figure(spec.overhead or {}, resource, counting)


def _figure(values: Values, resource: str, counting: Counting) -> int:
    value = values.get(resource)
    if value is None:
        return 0
    example = "500m" if resource == "cpu" else "2Gi"
    if not isinstance(value, str | int | float):
        raise InvalidRequest(f'{resource} is {show(value)}, expected a quantity such as "{example}"')
    try:
        return counting(value)
    except InvalidQuantity:
        raise InvalidRequest(f'{resource} is {show(value)}, expected a quantity such as "{example}"') from None


def _read_node_terms(spec: Spec) -> tuple[tuple[LabelRule, ...], ...]:
    chosen = tuple(LabelRule(key, "In", (value,)) for key, value in sorted((spec.node_selector or {}).items()))
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    if required is None:
        return (chosen,) if chosen else ()
    terms = tuple((*chosen, *rules) for rules in map(_read_term, required.node_selector_terms) if rules)
    return terms or (MATCHES_NOTHING,)  # to Kubernetes an empty term matches no node


def _read_term(term: Term) -> tuple[LabelRule, ...]:
    labels = tuple(_read_expression(expression) for expression in term.match_expressions or ())
    return (*labels, *_read_fields(term.match_fields or ()))


_VALUE_COUNTS: dict[str, tuple[str, Callable[[int], bool]]] = {
    "In": ("at least one value", lambda count: count > 0),
    "NotIn": ("at least one value", lambda count: count > 0),
    "Exists": ("no value", lambda count: count == 0),
    "DoesNotExist": ("no value", lambda count: count == 0),
    "Gt": ("one value", lambda count: count == 1),
    "Lt": ("one value", lambda count: count == 1),
}


def _read_expression(expression: Expression) -> LabelRule:
    values: tuple[str, ...] = expression.values or ()
    where = f"node affinity on {expression.key}"
    if expression.operator not in _VALUE_COUNTS:
        known = ", ".join(_VALUE_COUNTS)
        raise InvalidRequest(f"{where}: operator is {show(expression.operator)}, expected one of {known}")
    wanted, holds = _VALUE_COUNTS[expression.operator]
    if not holds(len(values)):
        raise InvalidRequest(f"{where}: values is {len(values)} long, expected {wanted} with {expression.operator}")
    for value in values if expression.operator in ("Gt", "Lt") else ():
        if not value.lstrip("-").isdecimal():
            raise InvalidRequest(f"{where}: value is {show(value)}, expected a whole number")
    return LabelRule(expression.key, expression.operator, values)


def _read_fields(expressions: Iterable[Expression]) -> tuple[LabelRule, ...]:
    rules = tuple(_read_expression(expression) for expression in expressions)
    for rule in rules:
        if rule.key != NODE_NAME_FIELD or rule.operator not in ("In", "NotIn"):
            raise InvalidRequest(
                f"matchFields is {rule.key} {rule.operator}, expected {NODE_NAME_FIELD} with In or NotIn"
            )
    return rules


def _read_toleration(part: TolerationPart, index: int) -> Toleration:
    operator = part.operator or "Equal"
    if operator not in ("Equal", "Exists"):
        raise InvalidRequest(f"spec.tolerations[{index}].operator is {show(operator)}, expected Equal or Exists")
    return Toleration(key=part.key or "", operator=operator, value=part.value or "", effect=part.effect or "")
