"""How much of a dump's cards a pod takes, in thousandths of a card, and whether any node could ever hold it."""

from collections.abc import Sequence
from functools import cache

from tessera.engine.demand import accepts_mode, accepts_type
from tessera.model.devices import Device, Node
from tessera.model.requests import DeviceRequest, PodRequest, Role
from tessera.simulation.scenario import CARD_MILLI


class Shares:
    """Requests measured against the cards of some nodes; one that comes again is looked up."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._milli = cache(self._measure)
        self._is_possible = cache(self._some_node_has)

    def of_pod(self, request: PodRequest) -> int:
        """The peak, as Kubernetes counts it: an init container runs beside the sidecars started before it."""
        steady = peak = 0
        for container in request.containers:
            milli = sum(self._milli(device) for device in container.devices)
            peak = max(peak, steady + milli)
            steady += 0 if container.role is Role.INIT else milli
        return peak

    def could_hold(self, request: PodRequest) -> bool:
        return all(self._is_possible(device) for container in request.containers for device in container.devices)

    def _measure(self, device: DeviceRequest) -> int:
        """The share of the first card that would do; where none would, whole cards."""
        for node in self._nodes:
            for card in node.devices:
                if _suits(device, card):
                    return device.count * _share(device, card)
        return device.count * CARD_MILLI

    def _some_node_has(self, device: DeviceRequest) -> bool:
        return any(sum(_suits(device, card) for card in node.devices) >= device.count for node in self._nodes)


def has_size(card: Device) -> bool:
    return card.memory_mib > 0 and card.cores_percent > 0


def _share(device: DeviceRequest, card: Device) -> int:
    memory = CARD_MILLI * device.memory_on(card.memory_mib) // card.memory_mib
    cores = CARD_MILLI * device.cores_percent // card.cores_percent
    return max(memory, cores, 1)


def _suits(device: DeviceRequest, card: Device) -> bool:
    """Would the card do, were it empty and well?"""
    selector = device.selector
    return (
        has_size(card)
        and card.vendor == device.vendor
        and accepts_type(selector, card.model)
        and accepts_mode(selector, card.mode)
        and (not selector.use_uuids or card.uuid in selector.use_uuids)
        and card.uuid not in selector.avoid_uuids
        and device.memory_on(card.memory_mib) <= card.memory_mib
        and device.cores_percent <= card.cores_percent
    )
