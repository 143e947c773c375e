"""Who was granted what: bindings and roles, turned around into what each subject may do.

An aggregated ClusterRole has the rules of those that its selectors find, however they came to have them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tessera.embedded.access.rules import Rule
from tessera.embedded.access.users import account_name
from tessera.embedded.documents import Frozen
from tessera.embedded.resources.label_selectors import matches
from tessera.embedded.resources.parts import each, inside

Subject = tuple[str, str]
"""`User` or `Group`, and its name; a ServiceAccount is the user that it is."""


class Grant(NamedTuple):
    """`namespace` is empty for what holds everywhere. `told` says where it comes from."""

    namespace: str
    rules: Sequence[Rule]
    told: str


class Roles(NamedTuple):
    """Everything that decides, as documents."""

    roles: Sequence[Frozen]
    cluster_roles: Sequence[Frozen]
    role_bindings: Sequence[Frozen]
    cluster_role_bindings: Sequence[Frozen]


def grants_by_subject(found: Roles) -> Mapping[Subject, Sequence[Grant]]:
    cluster_roles = {role["metadata"]["name"]: role for role in found.cluster_roles}
    everywhere = {name: [Rule(rule) for rule in rules_of(role, cluster_roles)] for name, role in cluster_roles.items()}
    own = {_key(role): [Rule(rule) for rule in each(role, "rules")] for role in found.roles}
    grants: defaultdict[Subject, list[Grant]] = defaultdict(list)
    for binding in found.cluster_role_bindings:
        rules = everywhere.get(binding["roleRef"].get("name", ""), [])
        _add(grants, binding, "ClusterRoleBinding", "", rules)
    for binding in found.role_bindings:
        namespace: str = binding["metadata"]["namespace"]
        name: str = binding["roleRef"].get("name", "")
        is_own = binding["roleRef"].get("kind") == "Role"
        rules = own.get((namespace, name), []) if is_own else everywhere.get(name, [])
        _add(grants, binding, "RoleBinding", namespace, rules)
    return grants


def rules_of(role: Frozen, known: Mapping[str, Frozen], above: frozenset[str] = frozenset()) -> Iterable[Frozen]:
    """The rules of a ClusterRole; `above` are those that aggregate it, which it does not aggregate again."""
    selectors = each(inside(role, "aggregationRule"), "clusterRoleSelectors")
    if not selectors:
        return each(role, "rules")
    above = above | {role["metadata"]["name"]}
    parts = [
        part
        for name, part in sorted(known.items())
        if name not in above and any(matches(one, part["metadata"].get("labels")) for one in selectors)
    ]
    return _distinct(rule for part in parts for rule in rules_of(part, known, above))


def _distinct(rules: Iterable[Frozen]) -> list[Frozen]:
    found: list[Frozen] = []
    for rule in rules:
        if rule not in found:
            found.append(rule)
    return found


def _add(
    grants: Mapping[Subject, list[Grant]], binding: Frozen, kind: str, namespace: str, rules: Sequence[Rule]
) -> None:
    reference, name = binding["roleRef"], binding["metadata"]["name"]
    where = f"{name}/{namespace}" if namespace else name
    for subject in each(binding, "subjects"):
        whose, named = _subject(subject, namespace)
        shown = f'{subject["kind"]} "{_shown(subject, namespace)}"'
        told = f'RBAC: allowed by {kind} "{where}" of {reference["kind"]} "{reference["name"]}" to {shown}'
        grants[(whose, named)].append(Grant(namespace, rules, told))


def _subject(subject: Frozen, namespace: str) -> Subject:
    if subject["kind"] != "ServiceAccount":
        return subject["kind"], subject["name"]
    return "User", account_name(subject.get("namespace") or namespace, subject["name"])


def _shown(subject: Frozen, namespace: str) -> str:
    if subject["kind"] != "ServiceAccount":
        return str(subject["name"])
    return f"{subject['name']}/{subject.get('namespace') or namespace}"


def _key(role: Frozen) -> tuple[str, str]:
    return role["metadata"]["namespace"], role["metadata"]["name"]
