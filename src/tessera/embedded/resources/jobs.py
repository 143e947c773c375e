"""Jobs: pods that are to succeed a number of times. A Job finds its pods by its own uid, which it is given."""

from tessera.embedded import causes
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.resources import label_selectors, templates
from tessera.embedded.resources.parts import each, part_of, set_defaults
from tessera.embedded.resources.strategy import Strategy

UID_LABEL = "batch.kubernetes.io/controller-uid"
NAME_LABEL = "batch.kubernetes.io/job-name"
_OLD_UID_LABEL, _OLD_NAME_LABEL = "controller-uid", "job-name"
_NUMBERS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
_FAILURE_ACTIONS = ("Count", "FailJob", "Ignore")
"""FailIndex is not among them: failures of single indexes are not counted here."""
_PLACEMENT = ("nodeSelector", "tolerations", "affinity", "schedulingGates")


class Jobs(Strategy):
    has_status = True
    counts_generation = True
    keeps_labels_in_status = True

    def default(self, document: Document) -> Document:
        spec = part_of(document, "spec")
        templates.fill_in(spec, "Job")
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = spec["parallelism"] = 1
        policy = part_of(spec, "podFailurePolicy") if spec.get("podFailurePolicy") else {}
        for rule in each(policy, "rules"):
            for pattern in each(rule, "onPodConditions"):
                set_defaults(pattern, status="True")
        set_defaults(
            spec,
            parallelism=1,
            backoffLimit=6,
            completionMode="NonIndexed",
            suspend=False,
            manualSelector=False,
            podReplacementPolicy="Failed" if policy else "TerminatingOrFailed",
        )
        labels = spec["template"]["metadata"].get("labels")
        if labels and not document.get("metadata", {}).get("labels"):
            part_of(document, "metadata")["labels"] = dict(labels)
        return document

    def prepare_create(self, document: Document, now: str) -> Document:
        spec, meta = document["spec"], document["metadata"]
        if not spec.get("manualSelector"):
            found_by = {UID_LABEL: meta["uid"]}
            told = {NAME_LABEL: meta["name"], _OLD_UID_LABEL: meta["uid"], _OLD_NAME_LABEL: meta["name"]}
            part_of(spec["template"]["metadata"], "labels").update(found_by | told)
            part_of(meta, "labels").update(found_by | told)
            part_of(part_of(spec, "selector"), "matchLabels").update(found_by)
        return super().prepare_create(document, now)

    def prepare_update(self, new: Document, old: Frozen) -> Document:
        if new["spec"].get("selector") is None:
            new["spec"]["selector"] = old["spec"].get("selector")
        return super().prepare_update(new, old)

    def check(self, document: Frozen) -> list[Cause]:
        spec: Frozen = document["spec"]
        found: list[Cause] = []
        for name in _NUMBERS:
            found += causes.below_zero(f"spec.{name}", spec.get(name))
        found += causes.unsupported_choice("spec.completionMode", spec["completionMode"], ("NonIndexed", "Indexed"))
        found += _check_selector(spec, document["metadata"])
        found += templates.check(spec["template"], "spec.template")
        if spec["template"]["spec"].get("restartPolicy") == "Always":
            detail = 'valid values: "OnFailure", "Never"'
            found.append(causes.required("spec.template.spec.restartPolicy", detail))
        return found + _check_failure_policy(spec)

    def check_change(self, new: Frozen, old: Frozen) -> list[Cause]:
        after, before = new["spec"], old["spec"]
        fixed = ["selector", "completionMode", *(() if after["completionMode"] == "Indexed" else ("completions",))]
        found = [
            causes.immutable(f"spec.{name}", after.get(name)) for name in fixed if after.get(name) != before.get(name)
        ]
        free = _PLACEMENT if before.get("suspend") else ()
        pods, pods_before = (_without(spec["template"]["spec"], free) for spec in (after, before))
        return (
            found
            if pods == pods_before
            else [*found, causes.immutable("spec.template.spec", after["template"]["spec"])]
        )


def _check_failure_policy(spec: Frozen) -> list[Cause]:
    policy = spec.get("podFailurePolicy")
    if not policy:
        return []
    found: list[Cause] = []
    for number, rule in enumerate(each(policy, "rules")):
        field = f"spec.podFailurePolicy.rules[{number}]"
        found += causes.unsupported_choice(f"{field}.action", rule.get("action"), _FAILURE_ACTIONS)
        codes = rule.get("onExitCodes")
        if bool(codes) == bool(rule.get("onPodConditions")):
            found.append(causes.invalid(field, rule, "specifying one of OnExitCodes and OnPodConditions is required"))
        if codes:
            found += causes.unsupported_choice(f"{field}.onExitCodes.operator", codes.get("operator"), ("In", "NotIn"))
    if spec["template"]["spec"].get("restartPolicy") != "Never":
        policy = spec["template"]["spec"].get("restartPolicy")
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        found.append(causes.invalid("spec.template.spec.restartPolicy", policy, detail))
    return found


def _check_selector(spec: Frozen, meta: Frozen) -> list[Cause]:
    if spec.get("manualSelector") or spec.get("selector") == {"matchLabels": {UID_LABEL: meta.get("uid")}}:
        found: list[Cause] = []
    else:
        found = [causes.invalid("spec.selector", spec.get("selector"), "`selector` not auto-generated")]
    labels = spec["template"]["metadata"].get("labels")
    if not label_selectors.matches(spec.get("selector"), labels):
        detail = "`selector` does not match template `labels`"
        found.append(causes.invalid("spec.template.metadata.labels", labels, detail))
    return found


def _without(spec: Frozen, names: tuple[str, ...]) -> Document:
    return {name: value for name, value in spec.items() if name not in names}
