"""What the workers of a job use, by Prometheus: None where nobody knows, never 0.

Figures come from Tessera's exporter, from NVIDIA's (DCGM) and from the kubelet's. Depending on how Prometheus was told
to scrape, a pod is in the label `pod` or in `exported_pod`; both are asked for. Cards of a worker are put together
here, so that one card that two series speak of counts once.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Callable, NamedTuple, Optional

from .documents import list_at, mapping_at, text_at

Query = Callable[[str], list[Mapping[str, Any]]]
Card = tuple[str, ...]
UNITS = {
    "gpuUtilization": "percent",
    "gpuMemoryUsed": "MiB",
    "gpuPowerUsage": "W",
    "gpuTemperature": "°C",
    "cpuUsage": "cores",
    "memoryUsage": "bytes",
    "networkReceive": "bytes/s",
    "networkTransmit": "bytes/s",
}
CARD_LABELS = ("UUID", "device_uuid", "gpu", "device", "GPU_I_ID", "vdevice_index")
PART_LABELS = ("container", "interface", "cpu")
KUBELET = ("container_cpu_", "container_memory_")
"""Of these the kubelet also tells sums over the pod, in series without a container."""
SPELLINGS = (("namespace", "pod"), ("exported_namespace", "exported_pod"))


class Series(NamedTuple):
    """`factor` brings it to our unit; of a counter the rate is wanted."""

    name: str
    factor: float = 1.0
    is_counter: bool = False


class Figure(NamedTuple):
    """The first of `series` that tells something about a worker is believed. Cards are averaged, or added up."""

    series: tuple[Series, ...]
    is_sum: bool


class Sample(NamedTuple):
    """`card` is what was measured; a pod may have several."""

    series: str
    pod: str
    card: Card
    value: float


MIB = 1 / 2**20
FIGURES: Mapping[str, Figure] = {
    "gpuUtilization": Figure(
        (
            Series("hami_container_device_utilization_ratio"),
            Series("DCGM_FI_DEV_GPU_UTIL"),
            Series("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 100.0),
        ),
        is_sum=False,
    ),
    "gpuMemoryUsed": Figure((Series("hami_vgpu_memory_used_bytes", MIB), Series("DCGM_FI_DEV_FB_USED")), is_sum=True),
    "gpuPowerUsage": Figure((Series("DCGM_FI_DEV_POWER_USAGE"),), is_sum=True),
    "gpuTemperature": Figure((Series("DCGM_FI_DEV_GPU_TEMP"),), is_sum=False),
    "cpuUsage": Figure((Series("container_cpu_usage_seconds_total", is_counter=True),), is_sum=True),
    "memoryUsage": Figure((Series("container_memory_working_set_bytes"),), is_sum=True),
    "networkReceive": Figure((Series("container_network_receive_bytes_total", is_counter=True),), is_sum=True),
    "networkTransmit": Figure((Series("container_network_transmit_bytes_total", is_counter=True),), is_sum=True),
}
AGGREGATES = {
    "avgGpuUtilization": ("gpuUtilization", False),
    "totalGpuMemoryUsed": ("gpuMemoryUsed", True),
    "totalGpuPowerUsage": ("gpuPowerUsage", True),
    "avgCpuUsage": ("cpuUsage", False),
    "totalCpuUsage": ("cpuUsage", True),
    "totalMemoryUsage": ("memoryUsage", True),
    "totalNetworkReceive": ("networkReceive", True),
    "totalNetworkTransmit": ("networkTransmit", True),
}


def collect(query: Query, namespace: str, job: str, workers: int, window: str, source: str) -> dict[str, Any]:
    """Figures for each worker and for all of them, with where they come from and what is missing."""
    names = [f"{job}-worker-{index}" for index in range(workers)]
    samples = [sample for part in _ask(query, namespace, job, window) for sample in part]
    columns = {key: _column(figure, samples) for key, figure in FIGURES.items()}
    rows: list[dict[str, Any]] = [
        {"index": index, "name": name, **{key: column.get(name, (None, ""))[0] for key, column in columns.items()}}
        for index, name in enumerate(names)
    ]
    return {
        "workers": rows,
        "aggregated": {key: _aggregate(rows, of, is_sum) for key, (of, is_sum) in AGGREGATES.items()},
        "source": source,
        "series": sorted({name for column in columns.values() for _, name in column.values()}),
        "window": window,
        "units": dict(UNITS),
        "warnings": _warnings(rows),
    }


def _ask(query: Query, namespace: str, job: str, window: str) -> Iterator[list[Sample]]:
    """All gauges at once, and each counter by itself: a rate has no name. OpenShift asks not to be asked often."""
    series = [one for figure in FIGURES.values() for one in figure.series]
    gauges = "|".join(one.name for one in series if not one.is_counter)
    where = [f'{spaces}="{namespace}",{pods}=~"{job}-worker-[0-9]+"' for spaces, pods in SPELLINGS]
    expression = " or ".join(f'{{__name__=~"{gauges}",{one}}}' for one in where)
    yield list(_samples(query(expression), "", job))
    for one in series:
        if one.is_counter:
            rates = " or ".join(f"rate({one.name}{{{labels}}}[{window}])" for labels in where)
            yield list(_samples(query(rates), one.name, job))


def _samples(answer: list[Mapping[str, Any]], name: str, job: str) -> Iterator[Sample]:
    for one in answer:
        labels, value = mapping_at(one, "metric"), _value(one)
        series = name or text_at(labels, "__name__")
        pods = [text_at(labels, in_pod) for _, in_pod in SPELLINGS]
        pod = next((pod for pod in pods if pod.startswith(f"{job}-worker-")), "")
        is_whole_pod = series.startswith(KUBELET) and text_at(labels, "container") in ("", "POD")
        if value is not None and not is_whole_pod:
            yield Sample(series, pod, _card(labels), value)


def _column(figure: Figure, samples: list[Sample]) -> dict[str, tuple[float, str]]:
    """The figure of each worker that anything tells about, and by which series."""
    found: dict[str, tuple[float, str]] = {}
    for series in figure.series:
        cards: dict[str, dict[Card, float]] = defaultdict(dict)
        for sample in samples:
            if sample.series == series.name:
                cards[sample.pod].setdefault(sample.card, sample.value)
        for pod, by_card in cards.items():
            total = sum(by_card.values())
            value = total if figure.is_sum else total / len(by_card)
            found.setdefault(pod, (value * series.factor, series.name))
    return found


def _card(labels: Mapping[str, Any]) -> Card:
    """Where there is no card, it is the container or the interface. Who tells it does not count: a kubelet that two
    jobs scrape is told of twice.
    """
    card = tuple(text_at(labels, name) for name in CARD_LABELS)
    return card if any(card) else tuple(text_at(labels, name) for name in PART_LABELS)


def _value(sample: Mapping[str, Any]) -> Optional[float]:
    """Prometheus sends texts; NaN and infinity are no figures."""
    pair = list_at(sample, "value")
    try:
        value = float(pair[1])
    except (IndexError, TypeError, ValueError):
        return None
    return value if abs(value) != float("inf") and value == value else None


def _aggregate(rows: list[dict[str, Any]], key: str, is_sum: bool) -> Optional[float]:
    known = [row[key] for row in rows if row[key] is not None]
    if not known:
        return None
    return sum(known) if is_sum else sum(known) / len(known)


def _warnings(rows: list[dict[str, Any]]) -> list[str]:
    """What is known of some workers only would be taken for all of them."""
    told: list[str] = []
    for key in UNITS:
        unknown = [row["name"] for row in rows if row[key] is None]
        if unknown and len(unknown) < len(rows):
            told.append(
                f"{key} is known of {len(rows) - len(unknown)} of {len(rows)} workers; not of {', '.join(unknown)}"
            )
    if rows and all(row["gpuUtilization"] is None for row in rows):
        told.append(
            "no GPU figures: neither Tessera's exporter nor DCGM's tells about these pods; with honorLabels=false and "
            "a querier limited to one namespace they are not visible"
        )
    return told
