"""What the operator's process counts: claims and gangs by phase, Computes by state, what came of looking at them."""

from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tessera.operators.compute_running import ComputeOperator
from tessera.operators.compute_status import STATES, state_of
from tessera.operators.objects import Phase
from tessera.operators.running import Operator

OUTCOMES = ("done", "again", "failed", "given_up")


def registry_of(operator: Operator, computes: ComputeOperator) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_Standing(operator, computes))
    return registry


class _Standing(Collector):
    """Asked when somebody looks."""

    def __init__(self, operator: Operator, computes: ComputeOperator) -> None:
        self._operator = operator
        self._computes = computes

    def collect(self) -> Iterable[Metric]:
        watched = self._operator.watched
        yield GaugeMetricFamily(
            "tessera_operator_leads", "Whether this replica writes statuses.", value=float(self._operator.leads)
        )
        yield _by_phase("tessera_claims", "GpuClaims, by phase.", [one.status.phase for one in watched.claims])
        yield _by_phase("tessera_gangs", "GpuGangs, by phase.", [one.status.phase for one in watched.gangs])
        yield self._by_state()
        yield self._looks()

    def describe(self) -> Iterator[Metric]:
        """Nothing is asked for until somebody looks."""
        return iter(())

    def _by_state(self) -> Metric:
        family = GaugeMetricFamily("tessera_computes", "Computes, by state.", labels=["state"])
        counted = Counter(state_of(compute) for compute in self._computes.watched.computes)
        for state in STATES:
            family.add_metric([state], counted[state])
        return family

    def _looks(self) -> Metric:
        looks = CounterMetricFamily(
            "tessera_operator_looks", "Objects looked at, by kind and by what came of it.", labels=["kind", "outcome"]
        )
        reconcilers = {
            "claims": self._operator.claims,
            "gangs": self._operator.gangs,
            "computes": self._computes.computes,
        }
        for kind, reconciler in reconcilers.items():
            for outcome in OUTCOMES:
                looks.add_metric([kind, outcome], getattr(reconciler.counts, outcome))
        return looks


def _by_phase(name: str, help: str, phases: list[Phase | None]) -> Metric:
    """Without a phase is what nobody has looked at yet."""
    family = GaugeMetricFamily(name, help, labels=["phase"])
    counted = Counter(phase or Phase.PENDING for phase in phases)
    for phase in Phase:
        family.add_metric([phase], counted[phase])
    return family
