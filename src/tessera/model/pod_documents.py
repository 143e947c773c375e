"""The part of a Kubernetes Pod that we read, and one sentence for a pod that is not shaped like one.

Pods reach us from the API server, from admission requests and from files people wrote, so no shape is taken for
granted. Fields that we do not read may hold anything; `null` is the same as absent, as it is to Kubernetes.
"""

from typing import Any, TypeVar

import msgspec

from tessera.errors import InvalidRequest
from tessera.model.mismatches import explain_mismatch

Values = dict[str, Any]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class Metadata(_Part, frozen=True, kw_only=True):
    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    labels: Values | None = None
    annotations: Values | None = None


class Resources(_Part, frozen=True, kw_only=True):
    limits: Values | None = None
    requests: Values | None = None

    def first_of_limits(self) -> Values:
        """Each figure as the limits have it, else as the requests have it."""
        return _present(self.requests) | _present(self.limits)

    def first_of_requests(self) -> Values:
        return _present(self.limits) | _present(self.requests)


NO_RESOURCES = Resources()


class Container(_Part, frozen=True, kw_only=True):
    resources: Resources | None = None
    restart_policy: str | None = None
    ports: tuple[Any, ...] | None = None


class Expression(_Part, frozen=True, kw_only=True):
    key: str
    operator: str
    values: tuple[str, ...] | None = None


class Term(_Part, frozen=True, kw_only=True):
    match_expressions: tuple[Expression, ...] | None = None
    match_fields: tuple[Expression, ...] | None = None


class Terms(_Part, frozen=True, kw_only=True):
    node_selector_terms: tuple[Term, ...]


class NodeAffinity(_Part, frozen=True, kw_only=True):
    required_during_scheduling_ignored_during_execution: Terms | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[Any, ...] | None = None


class PodAffinity(_Part, frozen=True, kw_only=True):
    required_during_scheduling_ignored_during_execution: tuple[Any, ...] | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[Any, ...] | None = None


class Affinity(_Part, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TolerationPart(_Part, frozen=True, kw_only=True):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class Spec(_Part, frozen=True, kw_only=True):
    containers: tuple[Container, ...]
    init_containers: tuple[Container, ...] | None = None
    resources: Resources | None = None
    overhead: Values | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[TolerationPart, ...] | None = None
    topology_spread_constraints: tuple[Any, ...] | None = None
    resource_claims: tuple[Any, ...] | None = None
    scheduling_gates: tuple[Any, ...] | None = None


class PodHead(_Part, frozen=True, kw_only=True):
    metadata: Metadata | None = None


class PodDocument(PodHead, frozen=True, kw_only=True):
    spec: Spec


NO_METADATA = Metadata()
PartT = TypeVar("PartT", bound=_Part)


def read_head(pod: object) -> Metadata:
    return _convert(pod, PodHead).metadata or NO_METADATA


def read_document(pod: object) -> PodDocument:
    return _convert(pod, PodDocument)


def _present(values: Values | None) -> Values:
    if not values:
        return {}
    return values if None not in values.values() else {key: it for key, it in values.items() if it is not None}


def _convert(pod: object, part: type[PartT]) -> PartT:
    if isinstance(pod, part):
        return pod
    try:
        return msgspec.convert(pod, part)
    except msgspec.ValidationError as error:
        raise InvalidRequest(explain_mismatch(error, pod)) from None
