"""May somebody do something? Asked at every request, so that the answer is looked up and not worked out.

Roles and bindings are turned around once, and again when one of them has changed: a look at their versions tells.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tessera.embedded.access.grants import Grant, Roles, Subject, grants_by_subject
from tessera.embedded.access.reading import Reading
from tessera.embedded.access.rules import Attributes, Rule
from tessera.embedded.access.users import MASTERS, User
from tessera.embedded.documents import Document
from tessera.embedded.resources.table import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES

_READ = tuple(kind.resource for kind in (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS))


class Decision(NamedTuple):
    """`reason` names what granted it; it is empty for those who may do everything."""

    is_allowed: bool
    reason: str = ""


class OwnRules(NamedTuple):
    """What somebody may do in a namespace, as rules."""

    resources: list[Document]
    paths: list[Document]


class Authorizer:
    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._seen_at = -1
        self._versions: Sequence[tuple[int, ...]] = ()
        self._grants: Mapping[Subject, Sequence[Grant]] = {}

    def allows(self, wanted: Attributes) -> bool:
        return MASTERS in wanted.user.groups or self._granting(wanted) is not None

    def decide(self, wanted: Attributes) -> Decision:
        """The same, with the reason."""
        if MASTERS in wanted.user.groups:
            return Decision(True)
        grant = self._granting(wanted)
        return Decision(True, grant.told) if grant else Decision(False)

    def rules_for(self, user: User, namespace: str) -> OwnRules:
        everything: list[Rule] = []
        if MASTERS in user.groups:
            every = ["*"]
            everything.append(Rule({"verbs": every, "apiGroups": every, "resources": every}))
            everything.append(Rule({"verbs": every, "nonResourceURLs": every}))
        granted = [rule for grant in self._grants_of(user, namespace) for rule in grant.rules]
        rules = [*granted, *everything]
        paths = [rule.told() for rule in rules if rule.is_about_paths]
        return OwnRules([rule.told() for rule in rules if not rule.is_about_paths], paths)

    def _granting(self, wanted: Attributes) -> Grant | None:
        for grant in self._grants_of(wanted.user, "" if wanted.path else wanted.namespace):
            if any(rule.grants(wanted) for rule in grant.rules):
                return grant
        return None

    def _grants_of(self, user: User, namespace: str) -> Iterator[Grant]:
        """What holds everywhere or in this namespace."""
        self._keep_up()
        subjects = [("User", user.name), *(("Group", group) for group in user.groups)]
        for subject in subjects:
            for grant in self._grants.get(subject, ()):
                if not grant.namespace or grant.namespace == namespace:
                    yield grant

    def _keep_up(self) -> None:
        now = self._reading.version
        if now == self._seen_at:
            return
        self._seen_at = now
        listed = [self._reading.list(resource) for resource in _READ]
        versions = [tuple(one.version for one in stored) for stored in listed]
        if versions != self._versions:
            self._versions = versions
            self._grants = grants_by_subject(Roles(*([one.document() for one in stored] for stored in listed)))
