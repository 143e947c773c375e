"""Roles and their bindings: that a rule says something, and that a binding keeps to its role."""

from tessera.embedded import causes
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.resources import names
from tessera.embedded.resources.parts import each, part_of, set_defaults
from tessera.embedded.resources.strategy import Strategy
from tessera.embedded.resources.table import RBAC

SUBJECTS = ("ServiceAccount", "User", "Group")
_RULED = {"Role": ("Role", "ClusterRole"), "ClusterRole": ("ClusterRole",)}


class Roles(Strategy):
    is_namespaced = True

    def check_name(self, name: str) -> list[str]:
        return names.path_segment(name)

    def default(self, document: Document) -> Document:
        document.setdefault("rules", None)
        return document

    def check(self, document: Frozen) -> list[Cause]:
        found: list[Cause] = []
        for number, rule in enumerate(each(document, "rules")):
            found += self._check_rule(rule, f"rules[{number}]")
        return found

    def _check_rule(self, rule: Frozen, field: str) -> list[Cause]:
        found: list[Cause] = []
        if not rule.get("verbs"):
            found.append(causes.required(f"{field}.verbs", "verbs must contain at least one value"))
        if rule.get("nonResourceURLs"):
            return found + self._check_urls(rule, f"{field}.nonResourceURLs")
        if not rule.get("apiGroups"):
            found.append(causes.required(f"{field}.apiGroups", "resource rules must supply at least one api group"))
        if not rule.get("resources"):
            found.append(causes.required(f"{field}.resources", "resource rules must supply at least one resource"))
        return found

    def _check_urls(self, rule: Frozen, field: str) -> list[Cause]:
        urls = rule["nonResourceURLs"]
        if self.is_namespaced:
            return [causes.invalid(field, urls, "namespaced rules cannot apply to non-resource URLs")]
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            return [causes.invalid(field, urls, detail)]
        return []


class ClusterRoles(Roles):
    is_namespaced = False


class RoleBindings(Strategy):
    roles: tuple[str, ...] = _RULED["Role"]

    def check_name(self, name: str) -> list[str]:
        return names.path_segment(name)

    def default(self, document: Document) -> Document:
        reference = part_of(document, "roleRef")
        if not reference.get("apiGroup"):
            reference["apiGroup"] = RBAC
        for subject in each(document, "subjects"):
            if subject.get("kind") in ("User", "Group"):
                set_defaults(subject, apiGroup=RBAC)
        return document

    def check(self, document: Frozen) -> list[Cause]:
        reference: Frozen = document["roleRef"]
        found = [] if reference["apiGroup"] == RBAC else [_wrong_group("roleRef", reference["apiGroup"])]
        found += causes.unsupported_choice("roleRef.kind", reference.get("kind"), self.roles)
        if not reference.get("name"):
            found.append(causes.required("roleRef.name"))
        for number, subject in enumerate(each(document, "subjects")):
            found += self._check_subject(subject, f"subjects[{number}]")
        return found

    def check_change(self, new: Frozen, old: Frozen) -> list[Cause]:
        if new["roleRef"] == old["roleRef"]:
            return []
        return [causes.invalid("roleRef", new["roleRef"], "cannot change roleRef")]

    def _check_subject(self, subject: Frozen, field: str) -> list[Cause]:
        found = [] if subject.get("name") else [causes.required(f"{field}.name")]
        kind, group = subject.get("kind"), subject.get("apiGroup") or ""
        if kind not in SUBJECTS:
            return [*found, causes.not_supported(f"{field}.kind", kind or "", SUBJECTS)]
        if kind == "ServiceAccount":
            return found + self._check_account(subject, field)
        return found if group == RBAC else [*found, _wrong_group(field, group)]

    def _check_account(self, subject: Frozen, field: str) -> list[Cause]:
        """An account without a namespace is one of the binding's own."""
        del subject, field
        return []


class ClusterRoleBindings(RoleBindings):
    roles = _RULED["ClusterRole"]

    def _check_account(self, subject: Frozen, field: str) -> list[Cause]:
        return [] if subject.get("namespace") else [causes.required(f"{field}.namespace")]


def _wrong_group(field: str, group: str) -> Cause:
    return causes.not_supported(f"{field}.apiGroup", group, (RBAC,))
