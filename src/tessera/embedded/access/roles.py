"""The roles that a cluster has from the start, made from the table of kinds: whoever may view may view all of it.

`view`, `edit` and `admin` aggregate what is labelled for them, so that a chart can add its own kinds.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tessera.embedded.access.grants import rules_of
from tessera.embedded.access.users import AUTHENTICATED, MASTERS, UNAUTHENTICATED
from tessera.embedded.documents import Document
from tessera.embedded.kinds import Kind
from tessera.embedded.resources import table
from tessera.embedded.resources.table import AUTHENTICATION, AUTHORIZATION, RBAC

READERS = "tessera:readers"
"""A group whose members read everything in every namespace but secrets."""

_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
_BOOTSTRAPPED = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_NOT_FOR_VIEWERS = (table.SECRETS, table.ROLES, table.ROLE_BINDINGS, table.LEASES)
_KEPT_BY_CONTROLLERS = (table.ENDPOINTS, table.ENDPOINT_SLICES, table.RESOURCE_QUOTAS)
_CONNECTIONS = ["pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "services/proxy"]
_PUBLIC = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"]


class Seeded(NamedTuple):
    """What is there before anybody makes it; without identity."""

    kind: Kind
    document: Document


def _rule(verbs: Sequence[str], group: str, resources: Iterable[str]) -> Document:
    return {"verbs": list(verbs), "apiGroups": [group], "resources": sorted(resources)}


def _by_group(verbs: Sequence[str], kinds: Iterable[Kind], names: Callable[[Kind], list[str]]) -> list[Document]:
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        groups.setdefault(kind.group, []).extend(names(kind))
    return [_rule(verbs, group, resources) for group, resources in groups.items()]


def _with_figures(kind: Kind) -> list[str]:
    """A resource and what can be read of it."""
    return [kind.plural, *(f"{kind.plural}/{door}" for door in kind.subresources if door in ("log", "scale", "status"))]


def _with_scale(kind: Kind) -> list[str]:
    return [kind.plural, *(f"{kind.plural}/{door}" for door in kind.subresources if door == "scale")]


_KEPT = [kind for kind in table.BUILTIN if kind.resource not in table.REVIEWS]
_VIEWED = [kind for kind in _KEPT if kind.is_namespaced and kind not in _NOT_FOR_VIEWERS] + [table.NAMESPACES]
_EDITED = [kind for kind in _VIEWED if kind.is_namespaced and kind not in _KEPT_BY_CONTROLLERS]

_VIEW = _by_group(_READ, _VIEWED, _with_figures)
_EDIT = [
    *_by_group(_WRITE, [*_EDITED, table.SECRETS], _with_scale),
    _rule(_READ, "", ["secrets", *_CONNECTIONS]),
    _rule(_WRITE, "", _CONNECTIONS),
    _rule(["create"], "", ["pods/eviction", "serviceaccounts/token"]),
    _rule([*_READ, *_WRITE], table.LEASES.group, [table.LEASES.plural]),
]
_ADMIN = [
    _rule(["create"], AUTHORIZATION, [table.LOCAL_ACCESS_REVIEWS.plural]),
    _rule([*_READ, *_WRITE], RBAC, [table.ROLES.plural, table.ROLE_BINDINGS.plural]),
]
_ALL_BUT_SECRETS = _by_group(_READ, [kind for kind in _KEPT if kind is not table.SECRETS], _with_figures)


def _role(name: str, rules: Sequence[Document], *, aggregated_to: str = "") -> Document:
    labels = dict(_BOOTSTRAPPED) | ({_aggregation(aggregated_to): "true"} if aggregated_to else {})
    return {"metadata": {"name": name, "labels": labels}, "rules": list(rules)}


def _aggregating(name: str, *, aggregated_to: str = "") -> Document:
    selector = {"matchLabels": {_aggregation(name): "true"}}
    return _role(name, [], aggregated_to=aggregated_to) | {"aggregationRule": {"clusterRoleSelectors": [selector]}}


def _aggregation(name: str) -> str:
    return f"{RBAC}/aggregate-to-{name}"


def _about_oneself() -> list[Document]:
    asked = [table.SELF_ACCESS_REVIEWS.plural, table.SELF_RULES_REVIEWS.plural]
    return [
        _rule(["create"], AUTHORIZATION, asked),
        _rule(["create"], AUTHENTICATION, [table.SELF_SUBJECT_REVIEWS.plural]),
    ]


def _paths(*urls: str) -> list[Document]:
    return [{"verbs": ["get"], "nonResourceURLs": sorted(urls)}]


def _everything() -> list[Document]:
    every = ["*"]
    return [{"verbs": every, "apiGroups": every, "resources": every}, {"verbs": every, "nonResourceURLs": every}]


def _binding(role: str, *groups: str) -> Seeded:
    subjects = [{"kind": "Group", "apiGroup": RBAC, "name": group} for group in groups]
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
    metadata = {"name": role, "labels": dict(_BOOTSTRAPPED)}
    return Seeded(table.CLUSTER_ROLE_BINDINGS, {"metadata": metadata, "subjects": subjects, "roleRef": reference})


def _with_rules_in_place(roles: Sequence[Document]) -> Iterable[Seeded]:
    """Aggregated roles show what they amount to, for whoever reads them."""
    known = {role["metadata"]["name"]: role for role in roles}
    for role in roles:
        yield Seeded(table.CLUSTER_ROLES, role | {"rules": [dict(rule) for rule in rules_of(role, known)]})


BUILTIN_ROLES: Sequence[Seeded] = (
    *_with_rules_in_place(
        [
            _role("cluster-admin", _everything()),
            _aggregating("admin"),
            _aggregating("edit", aggregated_to="admin"),
            _aggregating("view", aggregated_to="edit"),
            _role("system:aggregate-to-admin", _ADMIN, aggregated_to="admin"),
            _role("system:aggregate-to-edit", _EDIT, aggregated_to="edit"),
            _role("system:aggregate-to-view", _VIEW, aggregated_to="view"),
            _role("system:basic-user", _about_oneself()),
            _role("system:discovery", _paths(*_DISCOVERY, *_PUBLIC)),
            _role("system:public-info-viewer", _paths(*_PUBLIC)),
            _role(READERS, _ALL_BUT_SECRETS),
        ]
    ),
    _binding("cluster-admin", MASTERS),
    _binding("system:basic-user", AUTHENTICATED),
    _binding("system:discovery", AUTHENTICATED),
    _binding("system:public-info-viewer", AUTHENTICATED, UNAUTHENTICATED),
    _binding(READERS, READERS),
)
"""ClusterRoles and ClusterRoleBindings."""
