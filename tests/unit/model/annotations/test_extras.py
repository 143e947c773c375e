"""What vendors' plugins want beside the device lists."""

import pytest

from tessera.errors import InvalidAnnotation
from tessera.model.allocations import Allocation, CardShare
from tessera.model.annotations.extras import Grant, NotedCard, Notes, decode_extras, encode_extras

UNIX_NS = 1_755_770_405_123_456_789
POD = "pod default/p"


def grant_of(vendor: str, cards: int = 2, **more: object) -> Grant:
    """Cards on node n for the second of two containers."""
    shares = tuple(CardShare(uuid=f"card-{i}", vendor=vendor, memory_mib=4096, cores_percent=30) for i in range(cards))
    grant = {
        "allocation": Allocation("n", ((), shares)),
        "indexes": {f"card-{i}": i + 3 for i in range(cards)},
        "unix_ns": UNIX_NS,
    }
    return Grant(**{**grant, **more})  # pyright: ignore[reportArgumentType]


CASES = [
    (
        "MLU",
        grant_of("MLU", cards=1),
        {"CAMBRICON_DSMLU_ASSIGNED": "false", "CAMBRICON_DSMLU_PROFILE": "3_30_16"},
        Notes(assigned=False, cards=(NotedCard(index=3, cores_percent=30, memory_mib=4096),)),
    ),
    (
        "Mthreads",
        grant_of("Mthreads"),
        {
            "mthreads.com/gpu-index": "3,4",
            "mthreads.com/predicate-node": "n",
            "mthreads.com/predicate-time": "1755770405123456789",
            "mthreads.com/request-gpu-num": "2",
        },
        Notes(indexes=(3, 4), node="n", unix_ns=UNIX_NS, count=2),
    ),
    (
        "Metax-SGPU",
        grant_of("Metax-SGPU", cards=1),
        {
            "metax-tech.com/gpu-devices-allocated": '[[],[{"uuid":"card-0","compute":30,"vRam":4096}]]',
            "metax-tech.com/predicate-time": "1755770405123456789",
        },
        Notes(cards=(NotedCard(uuid="card-0", container=1, cores_percent=30, memory_mib=4096),), unix_ns=UNIX_NS),
    ),
    ("kunlun", grant_of("kunlun"), {"BAIDU_COM_DEVICE_IDX": "3,4"}, Notes(indexes=(3, 4))),
    (
        "AWSNeuron",
        grant_of("AWSNeuron", core_ids=(6, 7, 8)),
        {
            "AWS_NEURON_IDS": "6,7,8",
            "NEURON_ALLOC_TIME": "1755770405123456789",
            "NEURON_ALLOCATED": "false",
            "NEURON_RESOURCE_TYPE": "aws.amazon.com/neuroncore",
            "aws.amazon.com/predicate-node": "n",
        },
        Notes(indexes=(6, 7, 8), unix_ns=UNIX_NS, assigned=False, resource="aws.amazon.com/neuroncore", node="n"),
    ),
    (
        "Enflame",
        grant_of("Enflame", 1, templates={1: "3g.20gb"}, template_ids={"3g.20gb": "1"}, container_names=("a", "b")),
        {
            "enflame.com/gcu-assigned": "false",
            "enflame.com/gcu-assigned-id": "3",
            "enflame.com/gcu-assigned-index": "3",
            "enflame.com/gcu-assigned-minor": "3",
            "enflame.com/gcu-assigned-time": "1755770405123456789",
            "enflame.com/gcu-request-size": "3",
            "assigned-containers": '{"b":{"allocated":false,"request":3,"profileID":"1","profileName":"3g.20gb"}}',
        },
        Notes(
            assigned=False,
            indexes=(3,),
            unix_ns=UNIX_NS,
            count=3,
            cards=(NotedCard(container_name="b", slices=3, template="3g.20gb"),),
        ),
    ),
    (
        "Ascend910B4",
        grant_of("Ascend910B4", 1, templates={1: "vir05_1c_8g"}),
        {
            "huawei.com/Ascend910B4": '[{"UUID":"card-0","temp":"vir05_1c_8g","memory":4096,"core":30}]',
            "predicate-time": "1755770405",
        },
        Notes(
            cards=(NotedCard(uuid="card-0", template="vir05_1c_8g", memory_mib=4096, cores_percent=30),),
            unix_ns=1_755_770_405_000_000_000,
        ),
    ),
    ("NVIDIA", grant_of("NVIDIA"), {}, Notes()),
]


@pytest.mark.parametrize(("vendor", "grant", "annotations", "notes"), CASES, ids=[case[0] for case in CASES])
def test_a_vendor_gets_its_own_annotations_and_they_are_read(
    vendor: str, grant: Grant, annotations: dict[str, str], notes: Notes
):
    assert encode_extras(vendor, grant) == annotations
    assert decode_extras(vendor, {**annotations, "other": "x"}, POD) == notes


def test_a_pod_without_cards_of_a_vendor_gets_none_of_its_annotations():
    assert encode_extras("kunlun", grant_of("MLU")) == {}


def test_whole_neuron_devices_are_told_by_their_indexes():
    written = encode_extras("AWSNeuron", grant_of("AWSNeuron"))
    assert written["AWS_NEURON_IDS"] == "3,4"
    assert "NEURON_RESOURCE_TYPE" not in written


@pytest.mark.parametrize(
    ("vendor", "key", "text", "sentence"),
    [
        ("kunlun", "BAIDU_COM_DEVICE_IDX", "0,one", 'index is "one", expected a whole number such as 10'),
        (
            "MLU",
            "CAMBRICON_DSMLU_PROFILE",
            "0_30",
            'profile is "0_30", expected index, cores and memory such as "0_30_16"',
        ),
        ("Mthreads", "mthreads.com/predicate-time", "now", 'time is "now", expected nanoseconds since 1970'),
        ("Ascend910A", "predicate-time", "-1", 'time is "-1", expected seconds since 1970'),
        ("AWSNeuron", "NEURON_ALLOCATED", "perhaps", 'value is "perhaps", expected "true" or "false"'),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(vendor: str, key: str, text: str, sentence: str):
    with pytest.raises(InvalidAnnotation) as error:
        decode_extras(vendor, {key: text}, POD)
    assert str(error.value) == f"{POD}: {key}: {sentence}"


def test_a_card_without_an_index_is_not_written():
    with pytest.raises(InvalidAnnotation, match=r"^card card-0 has no index"):
        encode_extras("kunlun", grant_of("kunlun", indexes={}))
