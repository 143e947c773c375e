"""What all things that make pods have in common: a template, and a selector that finds the pods made from it."""

from typing import Any

from tessera.embedded import causes
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.resources import label_selectors, metadata, pod_rules
from tessera.embedded.resources.parts import inside, part_of
from tessera.embedded.resources.pod_defaults import fill_in_spec


def fill_in(spec: Document, kind: str) -> None:
    """Complete the template of a spec, which need not have one."""
    template = part_of(spec, "template")
    part_of(template, "metadata")
    fill_in_spec(part_of(template, "spec"), kind)


def check(template: Frozen, field: str, *restart_policies: str) -> list[Cause]:
    """`restart_policies` are those that pods may have which are made again; all, where none is named."""
    meta, spec = inside(template, "metadata"), inside(template, "spec")
    found = metadata.check_labels(meta.get("labels"), f"{field}.metadata.labels")
    found += metadata.check_annotations(meta.get("annotations"), f"{field}.metadata.annotations")
    found += pod_rules.check_spec(spec, f"{field}.spec")
    policy = spec.get("restartPolicy")
    if restart_policies and policy not in restart_policies:
        found.append(causes.not_supported(f"{field}.spec.restartPolicy", policy, restart_policies))
    return found


def check_selection(selector: Any, template: Frozen, what: str) -> list[Cause]:
    """The selector must be there, say something, and find the pods of the template."""
    if selector is None:
        return [causes.required("spec.selector"), *_does_not_match(template)]
    if label_selectors.is_empty(selector):
        return [causes.invalid("spec.selector", {}, f"empty selector is invalid for {what}")]
    found = label_selectors.check(selector, "spec.selector")
    if found:
        return [*found, causes.invalid("spec.selector", selector, "invalid label selector")]
    labels = inside(template, "metadata").get("labels")
    return [] if label_selectors.matches(selector, labels) else _does_not_match(template)


def _does_not_match(template: Frozen) -> list[Cause]:
    labels = inside(template, "metadata").get("labels")
    detail = "`selector` does not match template `labels`"
    return [causes.invalid("spec.template.metadata.labels", labels, detail)]
