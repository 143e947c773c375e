"""Our own annotations: versioned, and open to fields that are still to come."""

import pytest

from tessera.errors import InvalidAnnotation
from tessera.model.allocations import Allocation, CardShare
from tessera.model.annotations.versioned import decode_allocation, decode_inventory, encode_allocation, encode_inventory
from tessera.model.devices import Device

INVENTORY = "node gpu-07: tessera.io/inventory"
CARD = '"id":"GPU-a","index":0,"vendor":"NVIDIA","model":"A100","slots":10,"memory":40960,"cores":100,"healthy":true'


def test_unknown_fields_are_ignored_and_known_ones_default():
    assert decode_inventory(f'{{"v":1,"devices":[{{{CARD},"colour":"green"}}],"more":[]}}', INVENTORY) == (
        Device(uuid="GPU-a", vendor="NVIDIA", model="A100", slots=10, memory_mib=40960),
    )


def test_a_sick_card_is_told_in_so_many_words():
    sick = Device(uuid="GPU-a", vendor="NVIDIA", model="A100", slots=10, memory_mib=40960, healthy=False, island="nv0")
    assert '"island":"nv0","bandwidth":0,"healthy":false' in encode_inventory([sick])
    assert decode_inventory(encode_inventory([sick]), INVENTORY) == (sick,)


@pytest.mark.parametrize(("version", "said"), [('"v":2,', "2"), ('"v":"1",', "1"), ("", "null")])
def test_another_version_is_refused(version: str, said: str):
    with pytest.raises(InvalidAnnotation) as error:
        decode_inventory(f'{{{version}"devices":[]}}', INVENTORY)
    assert str(error.value) == (
        f'{INVENTORY} has version "{said}", expected 1; it was written by another release, upgrade the older side'
    )


@pytest.mark.parametrize(
    ("devices", "sentence"),
    [
        (CARD.replace("40960", '"x"'), 'card 0: memory is "x", expected a whole number of MiB such as 40960'),
        (CARD.replace(',"healthy":true', ""), 'card 0: healthy is missing, expected "true" or "false"'),
    ],
)
def test_a_broken_card_is_named_by_its_position(devices: str, sentence: str):
    with pytest.raises(InvalidAnnotation) as error:
        decode_inventory(f'{{"v":1,"devices":[{{{devices}}}]}}', INVENTORY)
    assert str(error.value) == f"{INVENTORY} {sentence}"


def test_one_card_twice_is_refused():
    with pytest.raises(InvalidAnnotation) as error:
        decode_inventory(f'{{"v":1,"devices":[{{{CARD}}},{{{CARD}}}]}}', INVENTORY)
    assert str(error.value) == f"{INVENTORY}: card GPU-a stands twice, expected each card once"


def test_an_allocation_names_its_containers():
    card = CardShare(uuid="GPU-a", vendor="NVIDIA", memory_mib=4096, cores_percent=25)
    allocation = Allocation("gpu-07", ((), (card,)))
    text = encode_allocation(allocation, ["setup", "train"])
    assert text == (
        '{"v":1,"node":"gpu-07","containers":[{"name":"setup","cards":[]},'
        '{"name":"train","cards":[{"id":"GPU-a","vendor":"NVIDIA","memory":4096,"cores":25}]}]}'
    )
    assert decode_allocation(text, "pod p: tessera.io/allocation") == (allocation, ("setup", "train"))


def test_an_allocation_with_other_containers_than_names_is_not_written():
    with pytest.raises(InvalidAnnotation, match=r"^1 names are given for 0 containers, expected as many$"):
        encode_allocation(Allocation("n"), ["train"])
