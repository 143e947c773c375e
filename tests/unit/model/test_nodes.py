import json
from typing import Any

import pytest

from tessera.engine.fleet import Fleet
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
        (
            a_node(status={"allocatable": {"cpu": "many"}}),
            'node gpu-01: allocatable cpu is "many", expected a quantity such as "15500m"',
        ),
        (a_node(status={"capacity": {"pods": "1.5"}}), 'node gpu-01: capacity pods is "1.5", expected a whole number'),
        (a_node(spec={"taints": [{"key": "k"}]}), r"node: spec.taints\[0\].effect is missing"),
    ],
)
def test_a_node_that_reports_nonsense_gives_one_sentence(node: object, sentence: str) -> None:
    with pytest.raises(InvalidInventory, match=sentence):
        read_node(node, VENDORS)


def test_null_is_the_same_as_absent() -> None:
    host = read_node(a_node(spec=None, status=None), VENDORS).node.host

    assert (host.cpu_milli, host.pods, host.ready, host.unschedulable) == (0, 110, True, False)


def test_an_amd_card_has_a_hundred_percent_however_many_compute_units_it_has() -> None:
    register = json.dumps(
        [{"id": "GPU-m", "count": 10, "devmem": 196592, "devcore": 304, "type": "MI300X", "health": True}]
    )
    (card,) = read_node(a_node({"hami.io/node-amd-register": register}), VENDORS).node.devices

    assert card.cores_percent == 100


def test_a_card_of_another_vendor_may_still_have_more_than_a_hundred_percent() -> None:
    scaled = "GPU-a,10,16384,200,NVIDIA-Tesla T4,0,true:"
    (card,) = read_node(a_node({"hami.io/node-nvidia-register": scaled}), VENDORS).node.devices

    assert card.cores_percent == 200


@pytest.mark.parametrize(
    ("figures", "sentence"),
    [
        ({"devmem": 0}, "memory is 0, expected 1 to 16777216; set the memory to assume for it, in MiB"),
        ({"devmem": 2**24 + 1}, "memory is 16777217, expected 1 to 16777216; set the memory to assume for it, in MiB"),
        ({"count": 0}, "slots is 0, expected 1 to 10000; set how many containers may share it"),
        ({"count": 10_001}, "slots is 10001, expected 1 to 10000; set how many containers may share it"),
        ({"devcore": 0}, "cores is 0, expected 1 to 10000; set its cores, 100 for a whole card"),
        ({"devcore": 10_001}, "cores is 10001, expected 1 to 10000; set its cores, 100 for a whole card"),
    ],
)
def test_a_card_that_no_work_can_be_placed_on_is_left_out_and_told(figures: dict[str, int], sentence: str) -> None:
    good = {"id": "GPU-a", "count": 10, "devmem": 40960, "devcore": 100, "type": "A100", "health": True}
    shown = {name: value for name, value in {**good, "id": "GPU-b", **figures}.items() if value}
    reading = read_node(a_node({"hami.io/node-nvidia-register": json.dumps([good, shown])}), VENDORS)

    assert [card.uuid for card in reading.node.devices] == ["GPU-a"]
    assert reading.complaints == (f"node gpu-01: card GPU-b is left out: {sentence}",)
    Fleet().put(reading.node)


def test_a_card_of_our_own_inventory_without_memory_is_left_out_too() -> None:
    cards = [
        Device(uuid=f"GPU-{memory}", vendor="NVIDIA", model="GB10", slots=10, memory_mib=memory) for memory in (0, 9)
    ]
    reading = read_node(a_node({"tessera.io/inventory": encode_inventory(cards)}), VENDORS)

    assert [card.uuid for card in reading.node.devices] == ["GPU-9"]
    assert len(reading.complaints) == 1


def test_a_uuid_in_the_registers_of_two_vendors_counts_once_and_is_told() -> None:
    annotations = {
        "hami.io/node-dcu-register": "GPU-a,4,32768,100,DCU-Z100,0,true:",
        "hami.io/node-nvidia-register": "GPU-a,10,16384,100,NVIDIA-Tesla T4,0,true:",
    }
    reading = read_node(a_node(annotations), VENDORS)

    assert [card.vendor for card in reading.node.devices] == ["DCU"]
    assert reading.complaints == (
        "node gpu-01: card GPU-a is left out: NVIDIA has the UUID of a card of DCU, "
        "expected one that no other card of the node has",
    )


def test_volcanos_register_serves_where_there_is_no_other() -> None:
    volcano = {"volcano.sh/node-vgpu-register": "GPU-v,10,24576,NVIDIA A10,true,hami-core:"}
    alone = read_node(a_node(volcano), VENDORS).node.devices
    beside = read_node(a_node({**volcano, "hami.io/node-nvidia-register": SEED_FORM}), VENDORS).node.devices

    assert [(card.uuid, card.vendor, card.memory_mib) for card in alone] == [("GPU-v", "NVIDIA", 24576)]
    assert [card.uuid for card in beside] == ["GPU-a", "GPU-b"]


def test_cards_without_a_register_follow_from_capacity_with_their_part_of_the_memory() -> None:
    amounts = {"cambricon.com/vmlu": "8", "cambricon.com/mlu.smlu.vmemory": "768"}
    reading = read_node(a_node(status={"capacity": amounts, "allocatable": amounts}), VENDORS)
    first, *others = reading.node.devices

    assert reading.complaints == ()
    assert (first.uuid, first.vendor, first.memory_mib, first.index) == ("gpu-01-cambricon-mlu-0", "MLU", 24576, 0)
    assert [card.uuid for card in others] == [f"gpu-01-cambricon-mlu-{index}" for index in range(1, 8)]
    assert all(card.healthy and card.cores_percent == 100 for card in reading.node.devices)


def test_shared_cards_are_counted_by_their_cores_where_the_count_counts_shares() -> None:
    amounts = {
        "cambricon.com/vmlu": "20",
        "cambricon.com/mlu.smlu.vcore": "200",
        "cambricon.com/mlu.smlu.vmemory": "192",
    }
    cards = read_node(a_node(status={"capacity": amounts}), VENDORS).node.devices

    assert [(card.uuid, card.memory_mib) for card in cards] == [
        ("gpu-01-cambricon-mlu-0", 24576),
        ("gpu-01-cambricon-mlu-1", 24576),
    ]


def test_cards_of_which_nobody_knows_the_memory_are_told_and_left_out() -> None:
    reading = read_node(a_node(status={"capacity": {"cambricon.com/vmlu": 8}}), VENDORS)

    assert reading.node.devices == ()
    assert reading.complaints == (
        "node gpu-01: capacity has 8 cards of MLU but no cambricon.com/mlu.smlu.vmemory, expected their memory; "
        "have its plugin report it or set assumed_memory_mib in the vendor file",
    )


@pytest.mark.parametrize(
    ("resource", "uuid", "memory_mib"),
    [
        ("metax-tech.com/gpu", "gpu-01-metax-1", 65536),
        ("kunlunxin.com/xpu", "gpu-01-kunlun-1", 98304),
        ("aws.amazon.com/neuron", "gpu-01-AWSNeuron-1", 32768),
        ("mthreads.com/vgpu", "gpu-01-mthreads-1", 49152),
        ("enflame.com/gcu", "gpu-01-enflame-gcu-1", 49152),
    ],
)
def test_whole_cards_from_capacity_have_the_memory_that_the_vendor_file_assumes(
    resource: str, uuid: str, memory_mib: int
) -> None:
    cards = read_node(a_node(status={"capacity": {resource: "2"}}), VENDORS).node.devices

    assert [(card.uuid, card.memory_mib) for card in cards][1:] == [(uuid, memory_mib)]


def test_cards_that_the_kubelet_no_longer_gives_out_are_unhealthy() -> None:
    status = {"capacity": {"metax-tech.com/gpu": "4"}, "allocatable": {"metax-tech.com/gpu": "3"}}
    cards = read_node(a_node(status=status), VENDORS).node.devices

    assert [card.healthy for card in cards] == [True, True, True, False]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("many", 'node gpu-01: capacity metax-tech.com/gpu is "many", expected a whole number such as 8'),
        ("300", "node gpu-01: capacity metax-tech.com/gpu is 300, expected at most 256 cards on one node"),
    ],
)
def test_a_capacity_that_is_no_number_of_cards_hides_nothing_else(value: str, sentence: str) -> None:
    node = a_node({"hami.io/node-nvidia-register": SEED_FORM}, status={"capacity": {"metax-tech.com/gpu": value}})
    reading = read_node(node, VENDORS)

    assert len(reading.node.devices) == 2
    assert reading.complaints == (sentence,)
