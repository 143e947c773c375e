"""Webhooks and admission policies, as they are registered. Whether expressions compile is asked elsewhere."""

from tessera.embedded import causes
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.resources.parts import each, part_of, set_defaults
from tessera.embedded.resources.strategy import Strategy

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_FAILURE_POLICIES = ("Fail", "Ignore")
_ACTIONS = ("Audit", "Deny", "Warn")
_LONGEST_TIMEOUT_S = 30
_HTTPS = 443


class Webhooks(Strategy):
    """Validating ones; mutating ones say in addition whether they want to see it again."""

    counts_generation = True

    def default(self, document: Document) -> Document:
        for webhook in each(document, "webhooks"):
            set_defaults(
                webhook,
                failurePolicy="Fail",
                matchPolicy="Equivalent",
                namespaceSelector={},
                objectSelector={},
                timeoutSeconds=10,
                clientConfig={},
            )
            _scope_rules(webhook.get("rules"))
            if webhook["clientConfig"].get("service"):
                set_defaults(webhook["clientConfig"]["service"], port=_HTTPS)
        return document

    def check(self, document: Frozen) -> list[Cause]:
        found: list[Cause] = []
        for number, webhook in enumerate(each(document, "webhooks")):
            found += _check_webhook(webhook, f"webhooks[{number}]")
        return found


class MutatingWebhooks(Webhooks):
    def default(self, document: Document) -> Document:
        for webhook in super().default(document).get("webhooks") or ():
            set_defaults(webhook, reinvocationPolicy="Never")
        return document


class AdmissionPolicies(Strategy):
    has_status = True
    counts_generation = True

    def default(self, document: Document) -> Document:
        spec = part_of(document, "spec")
        set_defaults(spec, failurePolicy="Fail")
        if spec.get("matchConstraints") is not None:
            _fill_in_match(spec["matchConstraints"])
        return document

    def check(self, document: Frozen) -> list[Cause]:
        spec: Frozen = document["spec"]
        found: list[Cause] = []
        if spec.get("matchConstraints") is None:
            found.append(causes.required("spec.matchConstraints"))
        elif not spec["matchConstraints"].get("resourceRules"):
            found.append(causes.required("spec.matchConstraints.resourceRules"))
        if not spec.get("validations") and not spec.get("auditAnnotations"):
            detail = "validations or auditAnnotations must contain at least one item"
            found += [causes.required(f"spec.{name}", detail) for name in ("validations", "auditAnnotations")]
        return found + causes.unsupported_choice("spec.failurePolicy", spec["failurePolicy"], _FAILURE_POLICIES)


class AdmissionPolicyBindings(Strategy):
    counts_generation = True

    def default(self, document: Document) -> Document:
        spec = part_of(document, "spec")
        if spec.get("matchResources") is not None:
            _fill_in_match(spec["matchResources"])
        return document

    def check(self, document: Frozen) -> list[Cause]:
        spec: Frozen = document["spec"]
        found = [] if spec.get("policyName") else [causes.required("spec.policyName")]
        actions = each(spec, "validationActions")
        if not actions:
            found.append(causes.required("spec.validationActions", "at least one validation action is required"))
        for number, action in enumerate(actions):
            found += causes.unsupported_choice(f"spec.validationActions[{number}]", action, _ACTIONS)
        return found


def _scope_rules(rules: list[Document] | None) -> None:
    for rule in rules or ():
        set_defaults(rule, scope="*")


def _fill_in_match(match: Document) -> None:
    set_defaults(match, matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})
    _scope_rules(match.get("resourceRules"))
    _scope_rules(match.get("excludeResourceRules"))


def _check_webhook(webhook: Frozen, field: str) -> list[Cause]:
    name = webhook.get("name") or ""
    found: list[Cause] = []
    if not name:
        found.append(causes.required(f"{field}.name"))
    elif name.count(".") < 2:
        detail = "should be a domain with at least three segments separated by dots"
        found.append(causes.invalid(f"{field}.name", name, detail))
    for number, rule in enumerate(each(webhook, "rules")):
        found += _check_rule(rule, f"{field}.rules[{number}]")
    found += causes.unsupported_choice(f"{field}.failurePolicy", webhook["failurePolicy"], _FAILURE_POLICIES)
    if not webhook.get("sideEffects"):
        found.append(causes.required(f"{field}.sideEffects", "must specify one of None, NoneOnDryRun"))
    else:
        found += causes.unsupported_choice(f"{field}.sideEffects", webhook["sideEffects"], _SIDE_EFFECTS)
    if not 1 <= webhook["timeoutSeconds"] <= _LONGEST_TIMEOUT_S:
        detail = f"the timeout value must be between 1 and {_LONGEST_TIMEOUT_S} seconds"
        found.append(causes.invalid(f"{field}.timeoutSeconds", webhook["timeoutSeconds"], detail))
    client: Frozen = webhook["clientConfig"]
    if bool(client.get("url")) == bool(client.get("service")):
        found.append(causes.required(f"{field}.clientConfig", "exactly one of url or service is required"))
    if not webhook.get("admissionReviewVersions"):
        found.append(causes.required(f"{field}.admissionReviewVersions", "must specify one of v1, v1beta1"))
    return found


def _check_rule(rule: Frozen, field: str) -> list[Cause]:
    found: list[Cause] = []
    if not rule.get("operations"):
        found.append(causes.required(f"{field}.operations"))
    for number, operation in enumerate(each(rule, "operations")):
        found += causes.unsupported_choice(f"{field}.operations[{number}]", operation, _OPERATIONS)
    return found + [
        causes.required(f"{field}.{name}") for name in ("apiGroups", "apiVersions", "resources") if not rule.get(name)
    ]
