import json
from typing import Any

import pytest

from tessera.errors import InvalidInventory
from tessera.model.annotations.versioned import encode_inventory
from tessera.model.devices import Device, Taint
from tessera.model.nodes import read_node
from tessera.vendors.loading import load_catalogue

VENDORS = load_catalogue()
SEED_FORM = "GPU-a,10,16384,100,NVIDIA-Tesla T4,0,true:GPU-b,10,16384,100,NVIDIA-Tesla T4,1,false:"
JSON_FORM = json.dumps([{"id": "GPU-a", "count": 10, "devmem": 40960, "devcore": 100, "type": "A100", "health": True}])


def a_node(annotations: dict[str, str] | None = None, **parts: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "gpu-01", "labels": {"gpu": "on"}, "annotations": annotations},
        "status": {"allocatable": {"cpu": "15500m", "memory": "64Gi", "pods": "110"}},
        **parts,
    }


def test_cards_are_read_from_the_register_in_any_form() -> None:
    seed = read_node(a_node({"hami.io/node-nvidia-register": SEED_FORM}), VENDORS).node
    other = read_node(a_node({"hami.io/node-nvidia-register": JSON_FORM}), VENDORS).node

    assert [(card.uuid, card.numa, card.healthy) for card in seed.devices] == [("GPU-a", 0, True), ("GPU-b", 1, False)]
    assert [(card.uuid, card.memory_mib) for card in other.devices] == [("GPU-a", 40960)]


def test_our_own_inventory_wins_over_the_register() -> None:
    card = Device(uuid="GPU-x", vendor="NVIDIA", model="H200", slots=10, memory_mib=143771, island="nvlink-0")
    annotations = {"tessera.io/inventory": encode_inventory([card]), "hami.io/node-nvidia-register": SEED_FORM}

    assert read_node(a_node(annotations), VENDORS).node.devices == (card,)


def test_an_inventory_that_cannot_be_read_is_told_and_the_register_serves() -> None:
    annotations = {"tessera.io/inventory": '{"v": 99}', "hami.io/node-nvidia-register": SEED_FORM}
    reading = read_node(a_node(annotations), VENDORS)

    assert len(reading.node.devices) == 2
    assert 'tessera.io/inventory has version "99"' in reading.complaints[0]


def test_one_broken_card_does_not_hide_the_others() -> None:
    reading = read_node(a_node({"hami.io/node-nvidia-register": f"GPU-x,ten,1,1,T4,0,true:{SEED_FORM}"}), VENDORS)

    assert [card.uuid for card in reading.node.devices] == ["GPU-a", "GPU-b"]
    assert len(reading.complaints) == 1
    assert "ten" in reading.complaints[0]


def test_cards_of_several_vendors_stand_side_by_side() -> None:
    annotations = {
        "hami.io/node-nvidia-register": SEED_FORM,
        "hami.io/node-dcu-register": "DCU-0,4,32768,100,DCU-Z100,0,true:",
    }

    devices = read_node(a_node(annotations), VENDORS).node.devices

    assert sorted(card.vendor for card in devices) == ["DCU", "NVIDIA", "NVIDIA"]


def test_the_host_is_read_with_its_taints_and_its_state() -> None:
    spec = {"unschedulable": True, "taints": [{"key": "dedicated", "effect": "NoSchedule"}]}
    host = read_node(a_node(spec=spec), VENDORS).node.host

    assert (host.cpu_milli, host.memory_bytes, host.pods) == (15_500, 64 * 2**30, 110)
    assert host.taints == (Taint("dedicated", "", "NoSchedule"),)
    assert host.unschedulable
    assert dict(host.labels) == {"gpu": "on"}


@pytest.mark.parametrize(("status", "ready"), [("True", True), ("False", False), ("Unknown", False)])
def test_a_node_is_ready_when_it_says_so(status: str, ready: bool) -> None:
    node = a_node(status={"conditions": [{"type": "Ready", "status": status}, {"type": "Other", "status": "False"}]})

    assert read_node(node, VENDORS).node.host.ready is ready


def test_links_and_cordons_are_read_and_bad_links_are_told() -> None:
    scores = json.dumps([{"uuid": "GPU-a", "score": {"GPU-b": 100}}, {"uuid": "GPU-b", "score": {"GPU-a": 100}}])
    annotations = {
        "hami.io/node-nvidia-register": SEED_FORM,
        "hami.io/node-nvidia-score": scores,
        "hami.io/device-cordon": "GPU-b",
    }
    node = read_node(a_node(annotations), VENDORS).node
    broken = read_node(a_node({**annotations, "hami.io/node-nvidia-score": "nonsense"}), VENDORS)

    assert [(link.one, link.other, link.score) for link in node.links] == [("GPU-a", "GPU-b", 100)]
    assert node.cordoned_uuids == {"GPU-b"}
    assert broken.node.links == ()
    assert "hami.io/node-nvidia-score" in broken.complaints[0]


@pytest.mark.parametrize(
    ("node", "sentence"),
    [
        (None, "node: the document is missing, expected an object"),
        ({"metadata": {}}, "node: metadata.name is missing"),
        (a_node(status={"allocatable": {"cpu": "many"}}), 'node gpu-01: allocatable "many" is not a quantity'),
        (a_node(spec={"taints": [{"key": "k"}]}), r"node: spec.taints\[0\].effect is missing"),
    ],
)
def test_a_node_that_reports_nonsense_gives_one_sentence(node: object, sentence: str) -> None:
    with pytest.raises(InvalidInventory, match=sentence):
        read_node(node, VENDORS)
