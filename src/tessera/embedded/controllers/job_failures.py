"""What a Job's podFailurePolicy makes of a pod that failed: the first rule that matches decides.

By `Ignore` the failure does not count, and the pod is made anew; by `FailJob` no other try is made; by `Count`, and
where no rule matches, it is one failure more. Failures of single indexes are not told apart: there is no `FailIndex`.
"""

from collections.abc import Iterable

from tessera.embedded.controllers.objects import Job
from tessera.embedded.controllers.pods import Pod
from tessera.embedded.resources.parts import each, inside
from tessera.kube.objects import Document


def counts(job: Job, pod: Pod) -> bool:
    """Whether its failure is one of those that the Job can bear only so many of. To be suspended is none."""
    if job.spec.suspend and pod.metadata.is_going:
        return False
    matched = _match(job, pod)
    return matched is None or matched[0] != "Ignore"


def fatal_failure(job: Job, pods: Iterable[Pod]) -> str | None:
    """Why the Job is to be given up, if one of its failed pods is reason enough."""
    matches = (_match(job, pod) for pod in pods if pod.status.phase == "Failed")
    return next((why for action, why in filter(None, matches) if action == "FailJob"), None)


def _match(job: Job, pod: Pod) -> tuple[str, str] | None:
    """The action of the first rule that matches, and what it found."""
    for number, rule in enumerate(each(job.spec.pod_failure_policy or {}, "rules")):
        found = _matching_exit(rule, pod) if rule.get("onExitCodes") else _matching_condition(rule, pod)
        if found:
            action: str = rule["action"]
            return action, f"{found} matching {action} rule at index {number}"
    return None


def _matching_exit(rule: Document, pod: Pod) -> str:
    wanted = inside(rule, "onExitCodes")
    statuses = (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ()))
    for status in statuses:
        terminated = status.state.terminated if status.state else None
        if terminated is None or not terminated.exit_code or wanted.get("containerName") not in (None, status.name):
            continue
        if (terminated.exit_code in each(wanted, "values")) == (wanted["operator"] == "In"):
            where = f"pod {pod.metadata.namespace}/{pod.metadata.name}"
            return f"Container {status.name} for {where} failed with exit code {terminated.exit_code}"
    return ""


def _matching_condition(rule: Document, pod: Pod) -> str:
    wanted = {(one["type"], one.get("status", "True")) for one in each(rule, "onPodConditions")}
    for condition in pod.status.conditions or ():
        if (condition.type, condition.status) in wanted:
            return f"Pod {pod.metadata.namespace}/{pod.metadata.name} has condition {condition.type}"
    return ""
