"""Whom a webhook or a policy concerns: by operation and resource, by labels, by conditions in CEL."""

from collections.abc import Mapping, Sequence
from typing import Any

from tessera.embedded.admitting.registrations import GROUP, Condition, Matching, ResourceRule
from tessera.embedded.admitting.requests import Reader, Request
from tessera.embedded.documents import Frozen
from tessera.embedded.resources import label_selectors
from tessera.embedded.rules import Program, RuleFailed, compile_rule
from tessera.embedded.rules.types import BOOL, DYN, Type

NAMESPACES = "namespaces"
VARIABLES: Mapping[str, Type] = {"object": DYN, "oldObject": DYN, "request": DYN}
"""What every expression may use."""
_ANY = "*"


def is_exempt(request: Request) -> bool:
    """Registrations themselves are never intercepted, or a wrong one could not be taken back."""
    return request.kind.group == GROUP


def is_named_by(rule: ResourceRule, request: Request) -> bool:
    kind = request.kind
    return (
        _is_among(request.operation, rule.operations)
        and _is_among(kind.group, rule.api_groups)
        and _is_among(kind.version, rule.api_versions)
        and rule.scope in (_ANY, "Namespaced" if kind.is_namespaced else "Cluster")
        and any(_is_resource(pattern, kind.plural, request.subresource) for pattern in rule.resources)
        and (not rule.resource_names or request.name in rule.resource_names)
    )


def _is_among(word: str, words: Sequence[str]) -> bool:
    return word in words or _ANY in words


def _is_resource(pattern: str, plural: str, subresource: str) -> bool:
    resource, _, part = pattern.partition("/")
    return resource in (plural, _ANY) and part in (subresource, _ANY)


def is_matched_by(matching: Matching, request: Request, reader: Reader, *, by_default: bool) -> bool:
    """`by_default` is the answer where no rules are given."""
    rules = matching.resource_rules
    if not (any(is_named_by(rule, request) for rule in rules) if rules else by_default):
        return False
    if any(is_named_by(rule, request) for rule in matching.exclude_resource_rules):
        return False
    return is_selected_by(matching.namespace_selector, matching.object_selector, request, reader)


def is_selected_by(of_namespace: Frozen | None, of_object: Frozen | None, request: Request, reader: Reader) -> bool:
    """An object that goes or changes is selected as it was or as it will be."""
    documents = [document for document in (request.object, request.old_object) if document is not None]
    if of_object and not any(label_selectors.matches(of_object, _labels(document)) for document in documents):
        return False
    if not of_namespace:
        return True
    if request.kind.resource == NAMESPACES:
        return label_selectors.matches(of_namespace, _labels(request.document()))
    if not request.kind.is_namespaced:
        return True
    return label_selectors.matches(of_namespace, _labels(namespace_of(request, reader)))


def namespace_of(request: Request, reader: Reader) -> Frozen | None:
    return reader.get(NAMESPACES, "", request.namespace) if request.kind.is_namespaced else None


def _labels(document: Frozen | None) -> Mapping[str, str]:
    return (document or {}).get("metadata", {}).get("labels") or {}


def compile_conditions(conditions: Sequence[Condition]) -> Sequence[Program]:
    """Raises RuleBroken."""
    return [compile_rule(condition.expression, VARIABLES, result=BOOL) for condition in conditions]


def all_hold(conditions: Sequence[Program], variables: Mapping[str, Any]) -> bool:
    """One that does not hold decides, whatever became of the others. Raises RuleFailed."""
    failure: RuleFailed | None = None
    for condition in conditions:
        try:
            if condition.evaluate(variables) is not True:
                return False
        except RuleFailed as one:
            failure = failure or one
    if failure is not None:
        raise failure
    return True
