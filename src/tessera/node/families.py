"""Families of figures as Prometheus reads them: with HAMi's labels, and by its new name and its old."""

from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

MIB = 2**20
ZONE = "vGPU"
CARD_LABELS = (
    ("node", "nodeid"),
    ("device_index", "deviceidx"),
    ("device_uuid", "deviceuuid"),
    ("device_type", "devicetype"),
)
TILE_LABELS = (
    ("namespace", "podnamespace"),
    ("pod", "podname"),
    ("container", "ctrname"),
    ("vdevice_index", "vdeviceid"),
    ("device_uuid", "deviceuuid"),
)
Samples = Sequence[tuple[Sequence[str], float]]


def gauge(name: str, text: str, labels: Sequence[str], samples: Samples) -> Metric:
    return _filled(GaugeMetricFamily(name, text, labels=[*labels, "zone"]), samples)


def counter(name: str, text: str, labels: Sequence[str], samples: Samples) -> Metric:
    return _filled(CounterMetricFamily(name, text, labels=[*labels, "zone"]), samples)


def pair(
    new: str, old: str, text: str, labels: Sequence[tuple[str, str]], samples: Samples, *, legacy: bool
) -> Iterator[Metric]:
    """A gauge by its new name, and by its old one where that is wanted; `labels` have both names too."""
    yield gauge(new, text, [name for name, _ in labels], samples)
    if legacy:
        yield gauge(old, f"{text} The old name of {new}.", [name for _, name in labels], samples)


def _filled(family: GaugeMetricFamily | CounterMetricFamily, samples: Samples) -> Metric:
    for values, figure in samples:
        family.add_metric([*values, ZONE], figure)
    return family
