"""Deployments, ReplicaSets, StatefulSets and DaemonSets: what keeps a number of pods alive."""

from typing import Any

from tessera.embedded import causes
from tessera.embedded.documents import Document, Frozen
from tessera.embedded.refusals import Cause
from tessera.embedded.resources import names, templates
from tessera.embedded.resources.parts import part_of, set_defaults
from tessera.embedded.resources.strategy import Strategy

_KEPT_REVISIONS = 10
_PATIENCE_S = 600
_QUARTER = "25%"
_STATEFUL_MAY_CHANGE = frozenset(
    {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    }
)


class Workloads(Strategy):
    has_status = True
    counts_generation = True
    keeps_labels_in_status = True
    noun = ""

    def default(self, document: Document) -> Document:
        spec = part_of(document, "spec")
        templates.fill_in(spec, document.get("kind") or self.noun)
        self.fill_in(spec)
        return document

    def fill_in(self, spec: Document) -> None:
        """What the kind has beside its template."""

    def check(self, document: Frozen) -> list[Cause]:
        spec: Frozen = document["spec"]
        template: Frozen = spec["template"]
        found = causes.below_zero("spec.replicas", spec.get("replicas"))
        found += causes.below_zero("spec.minReadySeconds", spec.get("minReadySeconds"))
        found += causes.below_zero("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))
        found += templates.check_selection(spec.get("selector"), template, self.noun.lower())
        found += templates.check(template, "spec.template", "Always")
        return found + self.check_more(spec)

    def check_more(self, spec: Frozen) -> list[Cause]:
        del spec
        return []

    def check_change(self, new: Frozen, old: Frozen) -> list[Cause]:
        selector = new["spec"].get("selector")
        return [] if selector == old["spec"].get("selector") else [causes.immutable("spec.selector", selector)]


class Deployments(Workloads):
    noun = "Deployment"

    def fill_in(self, spec: Document) -> None:
        set_defaults(
            spec, replicas=1, revisionHistoryLimit=_KEPT_REVISIONS, progressDeadlineSeconds=_PATIENCE_S, strategy={}
        )
        strategy: Document = spec["strategy"]
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            set_defaults(part_of(strategy, "rollingUpdate"), maxUnavailable=_QUARTER, maxSurge=_QUARTER)

    def check_more(self, spec: Frozen) -> list[Cause]:
        strategy: Frozen = spec["strategy"]
        rolling: Any = strategy.get("rollingUpdate")
        if strategy["type"] == "Recreate" and rolling is not None:
            detail = "may not be specified when strategy `type` is 'Recreate'"
            return [causes.forbidden("spec.strategy.rollingUpdate", detail)]
        if strategy["type"] not in ("Recreate", "RollingUpdate"):
            return [causes.not_supported("spec.strategy", strategy, ("Recreate", "RollingUpdate"))]
        if rolling and _is_nothing(rolling["maxUnavailable"]) and _is_nothing(rolling["maxSurge"]):
            field = "spec.strategy.rollingUpdate.maxUnavailable"
            return [causes.invalid(field, rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0")]
        return []


class ReplicaSets(Workloads):
    noun = "ReplicaSet"

    def fill_in(self, spec: Document) -> None:
        set_defaults(spec, replicas=1)

    def initial_status(self, document: Frozen, now: str) -> Document:
        del document, now
        return {"replicas": 0}


class StatefulSets(Workloads):
    noun = "StatefulSet"

    def fill_in(self, spec: Document) -> None:
        retention = {"whenDeleted": "Retain", "whenScaled": "Retain"}
        set_defaults(
            spec,
            replicas=1,
            serviceName="",
            podManagementPolicy="OrderedReady",
            revisionHistoryLimit=_KEPT_REVISIONS,
            persistentVolumeClaimRetentionPolicy=retention,
            updateStrategy={},
        )
        strategy: Document = spec["updateStrategy"]
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            set_defaults(part_of(strategy, "rollingUpdate"), partition=0)

    def initial_status(self, document: Frozen, now: str) -> Document:
        del document, now
        return {"replicas": 0, "availableReplicas": 0}

    def check_more(self, spec: Frozen) -> list[Cause]:
        policy, service = spec["podManagementPolicy"], spec["serviceName"]
        found = [
            causes.invalid("spec.serviceName", service, told) for told in (names.subdomain(service) if service else ())
        ]
        if policy not in ("OrderedReady", "Parallel"):
            detail = "must be 'OrderedReady' or 'Parallel'"
            found.append(causes.invalid("spec.podManagementPolicy", policy, detail))
        if spec.get("volumeClaimTemplates"):
            detail = "this engine has no PersistentVolumes; mount an emptyDir or a hostPath by the pod template instead"
            found.append(causes.forbidden("spec.volumeClaimTemplates", detail))
        return found

    def check_change(self, new: Frozen, old: Frozen) -> list[Cause]:
        after, before = new["spec"], old["spec"]
        if all(after.get(name) == before.get(name) for name in {*after, *before} - _STATEFUL_MAY_CHANGE):
            return []
        detail = (
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
            "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        )
        return [causes.forbidden("spec", detail)]


class DaemonSets(Workloads):
    noun = "DaemonSet"

    def fill_in(self, spec: Document) -> None:
        set_defaults(spec, revisionHistoryLimit=_KEPT_REVISIONS, updateStrategy={})
        strategy: Document = spec["updateStrategy"]
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            set_defaults(part_of(strategy, "rollingUpdate"), maxUnavailable=1, maxSurge=0)

    def initial_status(self, document: Frozen, now: str) -> Document:
        del document, now
        counted = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
        return dict.fromkeys(counted, 0)


def _is_nothing(amount: int | str) -> bool:
    return amount in (0, "0", "0%")
