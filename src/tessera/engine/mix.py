"""Which shapes of pods arrive, learned from those seen so far.

Old pods count less: each arrival weighs a little more than the one before, so a mix that drifts is followed, with a
half-life counted in pods. A shape is what a pod takes of cards and host; who asks does not matter.
"""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from tessera.model.requests import CardSelector, DeviceRequest, PodRequest, Role

HALF_LIFE_PODS = 3_000
_RESCALE_AT = 1e12


class Shape(NamedTuple):
    """`device` is what the pod asks of cards in its largest request, or None for a pod without cards."""

    device: DeviceRequest | None
    cpu_milli: int
    memory_bytes: int


A_WHOLE_CARD = Shape(DeviceRequest(vendor="NVIDIA", count=1, memory_percent=100, cores_percent=100), 1000, 2**30)
"""What a policy expects that has not seen any pod yet."""


def shape_of(request: PodRequest) -> Shape:
    steady = [
        device for container in request.containers if container.role is not Role.INIT for device in container.devices
    ]
    if request.claim is not None:
        steady.append(request.claim.card)
    largest = max(steady, key=_size, default=None)
    return Shape(largest and _without_whims(largest), request.host.cpu_milli, request.host.memory_bytes)


def _size(device: DeviceRequest) -> tuple[int, ...]:
    return device.count, device.cores_percent, device.memory_percent, device.memory_mib


def _without_whims(device: DeviceRequest) -> DeviceRequest:
    """The request without its priority and the cards it names: what is left comes again."""
    kept = device.selector
    if not (device.priority or kept.use_uuids or kept.avoid_uuids):
        return device
    selector = CardSelector(
        use_types=kept.use_types, avoid_types=kept.avoid_types, mode=kept.mode, same_numa=kept.same_numa
    )
    return replace(device, priority=0, selector=selector)


class Mix:
    def __init__(self, *, half_life_pods: float = HALF_LIFE_PODS) -> None:
        self._growth = 2.0 ** (1.0 / half_life_pods)
        self._weight_of_next = 1.0
        self._weights: dict[Shape, float] = {}
        self.seen = 0

    def observe(self, shape: Shape) -> None:
        self.seen += 1
        self._weights[shape] = self._weights.get(shape, 0.0) + self._weight_of_next
        self._weight_of_next *= self._growth
        if self._weight_of_next > _RESCALE_AT:
            self._rescale()

    def recall(self, live: Mapping[Shape, int]) -> None:
        """Begin with the pods that are already there, as if they had just arrived: for a scheduler that restarts."""
        for shape, count in live.items():
            self._weights[shape] = self._weights.get(shape, 0.0) + count * self._weight_of_next
            self.seen += count

    def frequencies(self) -> list[tuple[Shape, float]]:
        """Every shape and its share of arrivals, the most frequent first; equal shares in order of first sight."""
        total = sum(self._weights.values()) or 1.0
        ranked = sorted(self._weights.items(), key=lambda item: -item[1])
        return [(shape, weight / total) for shape, weight in ranked]

    def _rescale(self) -> None:
        """Make the newest weigh one again, and forget what no longer weighs anything."""
        newest = self._weight_of_next
        self._weights = {shape: weight / newest for shape, weight in self._weights.items() if weight / newest > 1e-6}
        self._weight_of_next = 1.0


def most_typical(
    frequencies: list[tuple[Shape, float]], *, cover: float = 0.95, step: int = 10, at_most: int = 256
) -> list[tuple[Shape, float]]:
    """The most frequent shapes, `step` at a time, until they cover their part of all arrivals."""
    taken, covered = 0, 0.0
    while covered < cover and taken < min(len(frequencies), at_most):
        covered += sum(share for _, share in frequencies[taken : taken + step])
        taken += step
    return frequencies[: min(taken, at_most)]
