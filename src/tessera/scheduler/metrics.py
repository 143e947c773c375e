"""What the scheduler's process counts about itself: how long answers take, what becomes of pods, what it knows.

What it knows of cards and pods is on the same page but elsewhere, in `hami_metrics`: that is by far the larger part.
"""

import platform
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sized
from time import perf_counter
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tessera import __version__
from tessera.engine.ledger import State
from tessera.kube.events import Recorder
from tessera.model.refusals import Reason
from tessera.scheduler.drift import Drift
from tessera.scheduler.world import World

T = TypeVar("T")
SECONDS = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.0, 2.0, 4.0, 8.0)


class Figures:
    """Counted as it happens. `collectors` are asked when somebody looks."""

    def __init__(self, *collectors: Collector) -> None:
        self.registry = CollectorRegistry()
        self._seconds = Histogram(
            "tessera_request_seconds",
            "How long an answer took, by what was asked.",
            ["verb"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self._refusals = self._counter(
            "tessera_refusals", "Pods that no node could take, by the nearest reason.", "reason"
        )
        self._binds = self._counter("tessera_binds", "Pods that kube-scheduler wanted bound, by outcome.", "outcome")
        self._reviews = self._counter(
            "tessera_reviews", "Pods that the webhook was asked about, by verdict.", "verdict"
        )
        _show_build(self.registry)
        for collector in collectors:
            self.registry.register(collector)

    def _counter(self, name: str, help: str, label: str) -> Counter:
        return Counter(name, help, [label], registry=self.registry)

    def timed(self, verb: str, handler: Callable[[bytes], Awaitable[T]]) -> Callable[[bytes], Awaitable[T]]:
        """The same handler, with its time taken."""
        histogram = self._seconds.labels(verb)

        async def answer(body: bytes) -> T:
            begun = perf_counter()
            try:
                return await handler(body)
            finally:
                histogram.observe(perf_counter() - begun)

        return answer

    def refused(self, reason: Reason | None) -> None:
        self._refusals.labels(reason or "Other").inc()

    def bound(self, outcome: str) -> None:
        self._binds.labels(outcome).inc()

    def reviewed(self, verdict: str) -> None:
        self._reviews.labels(verdict).inc()


class Standing(Collector):
    """How things stand."""

    def __init__(
        self, world: World, waiting: Sized, drift: Drift, recorder: Recorder, decides: Callable[[], bool]
    ) -> None:
        self._world = world
        self._waiting = waiting
        self._drift = drift
        self._recorder = recorder
        self._decides = decides

    def collect(self) -> Iterable[Metric]:
        short, complaints = self._world.ledger.overcommitted(), self._world.complaints
        yield _gauge("tessera_decides", "Whether this replica answers kube-scheduler.", float(self._decides()))
        yield _gauge("tessera_waiting_pods", "Pods that no node could take and that still wait.", len(self._waiting))
        yield _gauge("tessera_overcommitted_cards", "Cards that are promised more than they have.", len(short))
        yield _gauge("tessera_unreadable_objects", "Objects that cannot be read in full.", len(complaints))
        yield self._holdings()
        yield self._events()
        yield from self._drifting()

    def _holdings(self) -> Metric:
        holdings = GaugeMetricFamily("tessera_holdings", "Pods in the ledger, by state.", labels=["state"])
        states = [holding.state for holding in self._world.ledger]
        for state in State:
            holdings.add_metric([state], states.count(state))
        return holdings

    def _events(self) -> Metric:
        events = CounterMetricFamily("tessera_events", "Events about pods, by what became of them.", labels=["outcome"])
        for outcome in ("written", "limited", "dropped", "failed"):
            events.add_metric([outcome], getattr(self._recorder.counts, outcome))
        return events

    def _drifting(self) -> Iterator[Metric]:
        drift, at = self._drift, self._drift.last_checked_at
        yield CounterMetricFamily("tessera_drift", "Figures that did not agree with the API.", value=drift.found_total)
        yield CounterMetricFamily("tessera_drift_checks", "Comparisons with the API.", value=drift.checks_total)
        yield _gauge("tessera_drift_standing", "Figures that did not agree at the last comparison.", drift.standing)
        last_s = at.timestamp() if at else 0.0
        yield _gauge("tessera_drift_checked_seconds", "When the last comparison ended, in Unix time.", last_s)

    def describe(self) -> Iterator[Metric]:
        """Nothing is asked for until somebody looks."""
        return iter(())


def _gauge(name: str, help: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, help, value=value)


def _show_build(registry: CollectorRegistry) -> None:
    """HAMi's dashboards look for it. What Go says of itself is left empty."""
    labels = {
        "version": __version__,
        "revision": "",
        "build_date": "",
        "go_version": "",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system()}/{platform.machine()}".lower(),
    }
    info = Gauge("hami_build_info", "What was built, in its labels.", list(labels), registry=registry)
    info.labels(**labels).set(1)
