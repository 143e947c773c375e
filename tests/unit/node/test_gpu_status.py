"""What a GpuNodeStatus says."""

from typing import Any

from tessera.model.devices import Device
from tessera.node.gpu_status import gpu_status
from tests.builders import a_share
from tests.unit.node.making import a_tile


def a_card(index: int, **changes: Any) -> Device:
    figures = {"vendor": "NVIDIA", "model": "A100", "slots": 10, "memory_mib": 81_920}
    return Device(uuid=f"GPU-{index}", index=index, **{**figures, **changes})


def described(*cards: Device, **more: Any) -> list[dict[str, Any]]:
    status = gpu_status(cards, more.get("silent", ()), more.get("tiles", ()))
    assert status["total"] == len(cards)
    return status["devices"]


def test_cards_are_told_by_their_ids_with_health_and_bandwidth():
    fast = {"island": "one", "bandwidth_gbps": 600}
    assert described(a_card(1, healthy=False, **fast), a_card(0, **fast)) == [
        {"id": 0, "health": "Healthy", "bandwidthGBps": 600, "island": "nvlink-group-0", "inUseBy": []},
        {"id": 1, "health": "Unhealthy", "bandwidthGBps": 0, "island": "nvlink-group-0", "inUseBy": []},
    ]


def test_islands_are_numbered_by_their_lowest_id_and_a_card_alone_is_on_none():
    cards = [a_card(2, island="a"), a_card(0, island="b"), a_card(1), a_card(3, island="b")]
    assert [card.get("island") for card in described(*cards)] == [
        "nvlink-group-0",
        None,
        "nvlink-group-1",
        "nvlink-group-0",
    ]


def test_of_a_card_that_is_not_told_of_any_more_nothing_is_known():
    cards = (a_card(0, healthy=False), a_card(1, healthy=False))
    assert [card["health"] for card in described(*cards, silent={"GPU-1"})] == ["Unhealthy", "Unknown"]


def test_each_pod_that_uses_a_card_is_named_once_and_in_order():
    tiles = [
        a_tile("aa", a_share("GPU-0", 1, 1), uid="uid-2"),
        a_tile("bb", a_share("GPU-0", 1, 1), a_share("GPU-1", 1, 1), uid="uid-1"),
        a_tile("cc", a_share("GPU-0", 1, 1), uid="uid-1", resource="gpu.scheduling/claim"),
    ]
    assert [card["inUseBy"] for card in described(a_card(0), a_card(1), tiles=tiles)] == [["uid-1", "uid-2"], ["uid-1"]]
