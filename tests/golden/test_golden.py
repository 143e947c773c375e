"""The golden files: our codecs read in them what an independent reader reads, and write them byte for byte."""

from pathlib import Path

import pytest

from tessera.model.allocations import Allocation, CardShare
from tessera.model.annotations import versioned
from tessera.model.annotations.allocations import (
    decode_containers,
    decode_seed_devices,
    encode_containers,
    encode_seed_devices,
    take_container,
)
from tessera.model.annotations.extras import Grant, decode_extras, encode_extras
from tessera.model.annotations.handshakes import HandshakeStyle, decode_handshake, encode_handshake
from tessera.model.annotations.links import decode_links, encode_links
from tessera.model.annotations.locks import decode_lock, encode_lock
from tessera.model.annotations.mig import MigAllocation, decode_mig_allocations, encode_mig_allocations
from tessera.model.annotations.registers import RegisterFormat, decode_register, encode_register
from tessera.model.annotations.results import decode_card_names, decode_result, encode_card_names, encode_result
from tessera.model.annotations.selectors import decode_weights, encode_weights
from tessera.model.devices import Device, MigProfile
from tests.golden import reader

NODE = "gcu-01"
STYLES = [HandshakeStyle.SEED] * 3 + [HandshakeStyle.ASCEND, HandshakeStyle.HAMI]


def golden(name: str) -> str:
    return (Path(__file__).parent / f"{name}.txt").read_text().removesuffix("\n")


def fields_of(device: Device) -> reader.Fields:
    """A card in the words of the peers."""
    return {
        "id": device.uuid,
        "index": device.index,
        "count": device.slots,
        "devmem": device.memory_mib,
        "devcore": device.cores_percent,
        "type": device.model,
        "numa": device.numa,
        "mode": device.mode,
        "health": device.healthy,
        "custominfo": {"NetworkID": device.network_id},
        "migProfiles": [profile_fields(profile) for profile in device.mig_profiles],
        "uuid": device.uuid,
        "model": device.model,
        "totalDevCount": device.slots,
        "totalCompute": device.cores_percent,
        "totalVRam": device.memory_mib,
        "healthy": device.healthy,
        "linkZone": int(device.island) if device.island.isdigit() else 0,
        "profiles": [profile.name for profile in device.mig_profiles],
    }


def profile_fields(profile: MigProfile) -> reader.Fields:
    return {
        "name": profile.name,
        "memoryMB": profile.memory_mib,
        "core": profile.cores_percent,
        "sliceCount": profile.slices,
        "placements": [{"start": placement.start, "size": placement.size} for placement in profile.placements],
    }


def share_fields(share: CardShare) -> reader.Fields:
    return {"uuid": share.uuid, "type": share.vendor, "memory": share.memory_mib, "cores": share.cores_percent}


def slice_fields(one: MigAllocation) -> reader.Fields:
    fields: reader.Fields = {
        "containerIndex": one.container,
        "deviceIndex": one.device,
        "gpuUUID": one.gpu_uuid,
        "profile": one.profile,
        "placement": {"start": one.placement.start, "size": one.placement.size},
    }
    if one.instance is None:
        return fields
    identities = {
        "migUUID": one.instance.uuid,
        "gpuInstanceID": one.instance.gpu_instance_id,
        "computeInstanceID": one.instance.compute_instance_id,
    }
    return fields | identities


@pytest.mark.parametrize(
    ("form", "read"),
    [
        (RegisterFormat.SEED, reader.read_seven_fields),
        (RegisterFormat.HAMI, reader.read_nine_fields),
        (RegisterFormat.JSON, reader.read_json_register),
        (RegisterFormat.VOLCANO, reader.read_six_fields),
        (RegisterFormat.METAX, reader.read_metax_register),
        (RegisterFormat.ENFLAME, lambda text: reader.read_enflame_register(text, NODE)),
    ],
    ids=list(RegisterFormat),
)
def test_registers(form: RegisterFormat, read):
    text = golden(f"register.{form}")
    devices = decode_register(text, vendor="Enflame", where="node n: key", node=NODE)
    expected = read(text)
    assert len(expected) == len(devices) > 1
    for card, device in zip(expected, devices, strict=True):
        ours = fields_of(device)
        assert {name: ours[name] for name in card} == card
    assert encode_register(devices, form, node=NODE) == text


@pytest.mark.parametrize(("text", "style"), list(zip(golden("handshakes").splitlines(), STYLES, strict=True)))
def test_handshakes(text: str, style: HandshakeStyle):
    handshake = decode_handshake(text)
    assert handshake.at is not None
    assert (str(handshake.state), handshake.at.strftime("%Y%m%d%H%M%S")) == reader.read_handshake(text)
    assert encode_handshake(handshake, style) == text


def test_lock():
    text = golden("lock")
    lock = decode_lock(text, "node n: key")
    assert [lock.at.strftime("%Y-%m-%dT%H:%M:%SZ"), lock.namespace, lock.pod] == text.split(",")
    assert encode_lock(lock) == text


def test_device_lists():
    text, flat = golden("devices.containers"), golden("devices.flat")
    containers = decode_containers(text, "pod p: key")
    assert [[share_fields(share) for share in shares] for shares in containers] == reader.read_containers(text)
    assert [share_fields(share) for share in decode_seed_devices(flat, "pod p: key")] == reader.read_flat(flat)
    assert encode_containers(containers) == text
    assert encode_seed_devices(Allocation("n", containers)) == flat


def test_a_device_list_of_volcano():
    text = golden("devices.volcano")
    containers = decode_containers(text, "pod p: volcano.sh/vgpu-ids-new", 3)
    assert [[share_fields(share) for share in shares] for shares in containers] == reader.read_joined(text)


def test_a_consumed_device_list():
    taken = take_container(golden("devices.containers"), "pod p: key")
    assert taken is not None
    assert taken.rest == golden("devices.consumed")
    assert [len(cards) for cards in reader.read_containers(taken.rest)] == [0, 0, 0, 1]


def test_result_and_names():
    result, names = golden("result"), golden("names")
    containers = decode_containers(golden("devices.containers"), "pod p: key")
    indexes = {share.uuid: index for index, share in enumerate(containers[1])}
    assert encode_result(Allocation("gpu-node-67", containers), indexes) == result
    assert encode_card_names(Allocation("gpu-node-67", containers), indexes) == names
    read = decode_result(result, "pod p: key")
    cards = [{"id": card.id, "memory": str(card.memory_mib)} for card in read.cards]
    assert {"node": read.node, "devices": cards} == reader.read_json(result)
    assert [f"{name.vendor}-gpu-{name.index}" for name in decode_card_names(names, "pod p: key")] == names.split(",")


def test_links():
    text = golden("links")
    reading = decode_links(text, "node n: key")
    scores = {card["uuid"]: card["score"] for card in reader.read_json(text)}
    assert {(link.one, link.other): link.score for link in reading.links} == {
        (one, other): score for one, others in scores.items() for other, score in others.items() if one < other
    }
    assert encode_links(reading.links) == text


def test_mig_slices():
    text = golden("mig")
    slices = decode_mig_allocations(text, "pod p: key")
    assert [slice_fields(one) for one in slices] == reader.read_json(text)
    assert encode_mig_allocations(slices) == text


def test_weights():
    text = golden("weights")
    weights = decode_weights(text, "pod p: key")
    assert {"slot": weights.slot, "core": weights.core, "memory": weights.memory} == reader.read_weights(text)
    assert encode_weights(weights) == text


def test_ascend_cards():
    text = golden("ascend")
    (note,) = decode_extras("Ascend910B3", {"huawei.com/Ascend910B3": text}, "pod p").cards
    cards = [{"UUID": note.uuid, "temp": note.template, "memory": note.memory_mib, "core": note.cores_percent}]
    assert cards == reader.read_json(text)
    share = CardShare(uuid="npu-0", vendor="Ascend910B3", memory_mib=16384, cores_percent=25)
    grant = Grant(
        allocation=Allocation("n", ((share,),)), indexes={"npu-0": 0}, unix_ns=0, templates={0: "vir05_1c_16g"}
    )
    assert encode_extras("Ascend910B3", grant)["huawei.com/Ascend910B3"] == text


def test_mlu_profile():
    text = golden("mlu")
    (note,) = decode_extras("MLU", {"CAMBRICON_DSMLU_PROFILE": text}, "pod p").cards
    assert [note.index, note.cores_percent, note.memory_mib // 256] == [int(part) for part in text.split("_")]
    share = CardShare(uuid="mlu-1", vendor="MLU", memory_mib=4096, cores_percent=30)
    grant = Grant(allocation=Allocation("n", ((share,),)), indexes={"mlu-1": 1}, unix_ns=0)
    assert encode_extras("MLU", grant)["CAMBRICON_DSMLU_PROFILE"] == text


def test_inventory():
    text = golden("inventory")
    (device,) = versioned.decode_inventory(text, "node n: key")
    ours = fields_of(device)
    (card,) = reader.read_json(text)["devices"]
    assert [card["id"], card["model"], card["slots"], card["memory"], card["cores"], card["profiles"]] == [
        ours[name] for name in ("id", "type", "count", "devmem", "devcore", "migProfiles")
    ]
    assert [card["island"], card["bandwidth"]] == [device.island, device.bandwidth_gbps]
    assert [card["healthy"], card["mode"]] == [device.healthy, device.mode]
    assert versioned.encode_inventory([device]) == text


def test_allocation():
    text = golden("allocation")
    allocation, names = versioned.decode_allocation(text, "pod p: key")
    expected = reader.read_json(text)
    assert (allocation.node, list(names)) == (expected["node"], [one["name"] for one in expected["containers"]])
    assert [[share.uuid for share in shares] for shares in allocation.containers] == [
        [card["id"] for card in one["cards"]] for one in expected["containers"]
    ]
    assert versioned.encode_allocation(allocation, names) == text
