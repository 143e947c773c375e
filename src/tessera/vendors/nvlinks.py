"""NVLinks: which of NVIDIA's cards they join, and how fast.

A link that is down is none, and whatever a card or a driver does not tell is an empty answer. Bandwidth counts as data
sheets count it, both directions together: an A100 has twelve links of 50 GB/s, and 600 GB/s to its island.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tessera.model.devices import Device
from tessera.vendors.nvml_asking import ask_nvml, text_of

MOST_NVLINKS = 18
_TO_SWITCH = 2
_MOST_LINK_INDEX = 36
_NOMINAL_GBPS = (100, 50, 25, 20)
"""Of one link in one direction. Drivers tell the rate of the line, which is up to six percent more, or two less."""
_LEAST_PART = 0.95
_GBPS_BY_VERSION = {1: 20, 2: 25, 3: 25, 4: 25, 5: 25, 6: 25, 7: 50}
"""As NVML numbers versions: 4 is NVLink 3.0, 6 is 4.0, 7 is 5.0."""


class NvLinks(msgspec.Struct, frozen=True, kw_only=True):
    """The links of one card that are up. `to_cards` counts those that end at a card, by its bus address."""

    to_cards: Mapping[str, int] = {}
    to_switch: int = 0
    bandwidth_gbps: int = 0


class LinkedCard(msgspec.Struct, frozen=True):
    """A card while NVML is open."""

    handle: Any
    device: Device
    bus_id: str
    nvlinks: NvLinks


def read_nvlinks(nvml: Any, handle: Any) -> NvLinks:
    to_cards: dict[str, int] = {}
    to_switch = bandwidth_gbps = 0
    for link in range(_MOST_LINK_INDEX):
        if not ask_nvml(nvml, lambda link=link: nvml.nvmlDeviceGetNvLinkState(handle, link), 0):
            continue
        bandwidth_gbps += 2 * _direction_gbps(nvml, handle, link)
        if ask_nvml(nvml, lambda link=link: nvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, link), None) == _TO_SWITCH:
            to_switch += 1
            continue
        far_end = ask_nvml(nvml, lambda link=link: nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link).busId, "")
        if far_end:
            bus_id = text_of(far_end).lower()
            to_cards[bus_id] = to_cards.get(bus_id, 0) + 1
    return NvLinks(to_cards=to_cards, to_switch=to_switch, bandwidth_gbps=bandwidth_gbps)


def nvlinks_between(one: LinkedCard, other: LinkedCard) -> int:
    """A switch joins every pair at the width of the narrower card. A link that only one end sees does not count."""
    direct = min(one.nvlinks.to_cards.get(other.bus_id, 0), other.nvlinks.to_cards.get(one.bus_id, 0))
    return min(direct + min(one.nvlinks.to_switch, other.nvlinks.to_switch), MOST_NVLINKS)


def on_islands(cards: Sequence[LinkedCard]) -> tuple[Device, ...]:
    """The cards with their islands: those that NVLink joins, directly or through others. A card alone is on none."""
    names = _name_islands(cards)
    return tuple(
        msgspec.structs.replace(card.device, island=island, bandwidth_gbps=card.nvlinks.bandwidth_gbps if island else 0)
        for card in cards
        for island in (names[card.device.uuid],)
    )


def _name_islands(cards: Sequence[LinkedCard]) -> dict[str, str]:
    names = {card.device.uuid: "" for card in cards}
    count = 0
    for card in cards:
        if names[card.device.uuid]:
            continue
        reached, waiting = [card], [card]
        while waiting:
            here = waiting.pop()
            near = [there for there in cards if there not in reached and nvlinks_between(here, there)]
            reached += near
            waiting += near
        if len(reached) > 1:
            names |= {member.device.uuid: f"nvlink-{count}" for member in reached}
            count += 1
    return names


def _direction_gbps(nvml: Any, handle: Any, link: int) -> int:
    """By what the driver tells of the link's speed, else by the link's version."""
    mbps = ask_nvml(nvml, lambda: _read_mbps(nvml, handle, link), 0)
    if mbps:
        return next((gbps for gbps in _NOMINAL_GBPS if mbps >= gbps * 1000 * _LEAST_PART), mbps // 1000)
    version = ask_nvml(nvml, lambda: nvml.nvmlDeviceGetNvLinkVersion(handle, link), 0)
    return _GBPS_BY_VERSION.get(version, 0)


def _read_mbps(nvml: Any, handle: Any, link: int) -> int:
    """Of all links alike up to Ampere, of each by itself since Hopper."""
    wanted = [nvml.NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON, (nvml.NVML_FI_DEV_NVLINK_GET_SPEED, link)]
    told = nvml.nvmlDeviceGetFieldValues(handle, wanted)
    return next((int(one.value.uiVal) for one in told if one.nvmlReturn == nvml.NVML_SUCCESS and one.value.uiVal), 0)
