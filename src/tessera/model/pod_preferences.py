"""What a pod would like of its node or of its neighbours, beyond what it needs.

These are the preferences that kube-scheduler weighs against each other with scores. Where there are none, the scores
for cards decide alone.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

from tessera.model.pod_documents import Affinity, PodAffinity, Spec
from tessera.model.requests import LabelRule

NO_AFFINITY = Affinity()
NO_NEIGHBOURS = PodAffinity()


class Neighbours(msgspec.Struct, frozen=True):
    """Those whom one term of a pod's affinity is about. Without `namespaces` they may be in any."""

    namespaces: tuple[str, ...]
    rules: tuple[LabelRule, ...]


def prefers_nodes(spec: Spec) -> bool:
    """Whether some nodes may be dearer to the pod than others, or to who gives it what it claims."""
    nodes = (spec.affinity or NO_AFFINITY).node_affinity
    prefers = nodes is not None and nodes.preferred_during_scheduling_ignored_during_execution
    return bool(prefers or spec.topology_spread_constraints or spec.resource_claims)


def wanted_neighbours(spec: Spec, namespace: str) -> tuple[Neighbours, ...]:
    """Whom the pod draws to it or keeps off. To be drawn is a wish even where it is a need as well."""
    affinity = spec.affinity or NO_AFFINITY
    near, far = affinity.pod_affinity or NO_NEIGHBOURS, affinity.pod_anti_affinity or NO_NEIGHBOURS
    terms = (
        *(near.required_during_scheduling_ignored_during_execution or ()),
        *_weighted(near),
        *_weighted(far),
    )
    return tuple(_read_term(term, namespace) for term in terms)


def _weighted(affinity: PodAffinity) -> Iterator[Any]:
    for preference in affinity.preferred_during_scheduling_ignored_during_execution or ():
        yield _part(preference, "podAffinityTerm")


def _read_term(term: object, namespace: str) -> Neighbours:
    """A term that chooses namespaces by their labels may mean any of them: we do not follow namespaces."""
    named = tuple(map(str, cast("list[object]", _part(term, "namespaces")) or ()))
    anywhere = _part(term, "namespaceSelector") is not None
    return Neighbours(() if anywhere else named or (namespace,), _read_selector(_part(term, "labelSelector")))


NOBODY = (LabelRule("", "In", ()),)


def _read_selector(selector: object) -> tuple[LabelRule, ...]:
    """To Kubernetes no selector matches nobody, and an empty one everybody."""
    if selector is None:
        return NOBODY
    labels = cast("dict[str, str]", _part(selector, "matchLabels") or {})
    expressions = cast("list[object]", _part(selector, "matchExpressions") or [])
    return (
        *(LabelRule(key, "In", (value,)) for key, value in sorted(labels.items())),
        *(
            LabelRule(str(_part(one, "key")), str(_part(one, "operator")), tuple(_part(one, "values") or ()))
            for one in expressions
        ),
    )


def _part(holder: object, key: str) -> Any:
    return cast("Mapping[str, Any]", holder).get(key) if isinstance(holder, Mapping) else None
