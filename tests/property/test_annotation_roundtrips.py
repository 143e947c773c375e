"""What a codec writes, it reads back."""

from dataclasses import dataclass
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tessera.model.allocations import Allocation
from tessera.model.annotations import versioned
from tessera.model.annotations.allocations import (
    decode_containers,
    decode_seed_devices,
    encode_containers,
    encode_seed_devices,
    take_container,
)
from tessera.model.annotations.binding import AllocationKeys, bind_marks, node_label, read_allocation
from tessera.model.annotations.extras import Grant, decode_extras, encode_extras
from tessera.model.annotations.handshakes import (
    Handshake,
    HandshakeState,
    HandshakeStyle,
    decode_handshake,
    encode_handshake,
)
from tessera.model.annotations.links import decode_links, encode_links
from tessera.model.annotations.locks import NodeLock, decode_lock, encode_lock
from tessera.model.annotations.mig import MigAllocation, MigInstance, decode_mig_allocations, encode_mig_allocations
from tessera.model.annotations.registers import RegisterFormat, decode_register, encode_register
from tessera.model.annotations.results import decode_card_names, decode_result, encode_card_names, encode_result
from tessera.model.annotations.selectors import (
    decode_cordon,
    decode_list,
    decode_weights,
    encode_cordon,
    encode_list,
    encode_weights,
)
from tessera.model.devices import DEFAULT_MODE, Device, Link, MigProfile
from tessera.model.requests import ScoringWeights
from tests.property import annotation_strategies as some

KEYS = {
    vendor: AllocationKeys(f"hami.io/{vendor}-devices-to-allocate", f"hami.io/{vendor}-devices-allocated")
    for vendor in ("NVIDIA", "DCU", "Metax-SGPU", "Ascend910B4-1")
}


@dataclass(frozen=True)
class Form:
    """What a register form keeps of a card; the rest comes back as its default."""

    format: RegisterFormat
    keeps_index: bool = False
    keeps_cores: bool = True
    keeps_numa: bool = True
    keeps_mode: bool = True
    keeps_hardware: bool = False

    def kept(self, device: Device, position: int) -> Device:
        return replace(
            device,
            island="",
            index=device.index if self.keeps_index else position,
            cores_percent=device.cores_percent if self.keeps_cores else 100,
            numa=device.numa if self.keeps_numa else 0,
            mode=device.mode if self.keeps_mode else DEFAULT_MODE,
            mig_profiles=device.mig_profiles if self.keeps_hardware else (),
            network_id=device.network_id if self.keeps_hardware else 0,
        )


TEXT_FORMS = [
    Form(RegisterFormat.SEED, keeps_mode=False),
    Form(RegisterFormat.HAMI, keeps_index=True),
    Form(RegisterFormat.VOLCANO, keeps_cores=False, keeps_numa=False),
]


@pytest.mark.parametrize("form", TEXT_FORMS, ids=lambda form: form.format)
@given(devices=some.devices(some.plain_text))
def test_a_register_of_text_keeps_all_that_it_has_fields_for(form: Form, devices: list[Device]):
    text = encode_register(devices, form.format)
    read = decode_register(text, vendor="NVIDIA", where="node n: key")
    assert read == tuple(form.kept(device, position) for position, device in enumerate(devices))


@given(devices=some.devices(some.any_text))
def test_a_json_register_keeps_everything_but_islands(devices: list[Device]):
    form = Form(RegisterFormat.JSON, keeps_index=True, keeps_hardware=True)
    read = decode_register(encode_register(devices, form.format), vendor="NVIDIA", where="node n: key")
    assert read == tuple(form.kept(device, position) for position, device in enumerate(devices))


@given(devices=some.devices(some.any_text), zones=st.lists(some.small, min_size=4, max_size=4))
def test_a_metax_register_keeps_islands_as_link_zones(devices: list[Device], zones: list[int]):
    zoned = [replace(device, island=str(zone) if zone else "") for device, zone in zip(devices, zones, strict=False)]
    form = Form(RegisterFormat.METAX, keeps_mode=False)
    read = decode_register(encode_register(zoned, form.format), vendor="NVIDIA", where="node n: key")
    assert read == tuple(
        replace(form.kept(device, position), island=device.island) for position, device in enumerate(zoned)
    )


@given(
    slots=st.lists(some.numbers, max_size=4),
    sizes=st.lists(st.integers(1, 9999), min_size=1, max_size=4, unique=True),
    node=some.node_names,
)
def test_an_enflame_register_keeps_cards_and_profiles(slots: list[int], sizes: list[int], node: str):
    profiles = tuple(
        MigProfile(name=f"{n}g.{n * 7}gb", memory_mib=n * 7 * 1024, cores_percent=n * 100 // max(sizes), slices=n)
        for n in sizes
    )
    memory = max(profile.memory_mib for profile in profiles)
    devices = tuple(
        Device(
            uuid=f"{node}-enflame-drs-{index}",
            index=index,
            vendor="Enflame",
            model="Enflame",
            slots=count,
            memory_mib=memory,
            mig_profiles=profiles,
        )
        for index, count in enumerate(slots)
    )
    text = encode_register(devices, RegisterFormat.ENFLAME, node=node)
    assert decode_register(text, vendor="Enflame", where="node n: key", node=node) == devices


@given(devices=some.devices(some.any_text))
def test_our_inventory_keeps_everything(devices: list[Device]):
    assert versioned.decode_inventory(versioned.encode_inventory(devices), "node n: key") == tuple(devices)


@pytest.mark.parametrize("style", HandshakeStyle)
@given(state=st.sampled_from(HandshakeState), at=some.moments)
def test_a_handshake_keeps_state_and_second(style: HandshakeStyle, state: HandshakeState, at):
    handshake = Handshake(state, at)
    assert decode_handshake(encode_handshake(handshake, style)) == handshake


@given(at=some.moments, microsecond=st.integers(0, 999_999))
def test_a_handshake_in_go_spelling_keeps_fractions(at, microsecond: int):
    handshake = Handshake(HandshakeState.REPORTED, at.replace(microsecond=microsecond))
    assert decode_handshake(encode_handshake(handshake, HandshakeStyle.HAMI)) == handshake


@given(at=some.moments, owner=st.none() | st.tuples(some.node_names, some.node_names))
def test_a_lock_keeps_its_owner(at, owner: tuple[str, str] | None):
    lock = NodeLock(at, *(owner or ()))
    assert decode_lock(encode_lock(lock), "node n: key") == lock


@given(some.containers)
def test_device_lists_keep_every_position(containers):
    assert decode_containers(encode_containers(containers), "pod p: key") == containers
    assert decode_containers(encode_containers(containers), "pod p: key", len(containers)) == containers


@given(some.containers, st.integers(0, 5))
def test_slots_that_a_list_lacks_are_empty_and_slots_too_many_are_dropped(containers, more: int):
    count = len(containers) + more
    assert decode_containers(encode_containers(containers), "pod p: key", count) == (*containers, *((),) * more)
    padded = (*containers, *((),) * more)
    assert decode_containers(encode_containers(padded), "pod p: key", len(containers)) == containers


@given(some.allocations)
def test_the_flat_list_keeps_all_cards_in_order(allocation: Allocation):
    assert decode_seed_devices(encode_seed_devices(allocation), "pod p: key") == allocation.shares


@given(some.containers)
def test_taking_containers_one_by_one_gives_each_its_cards_and_ends(containers):
    text = encode_containers(containers)
    taken = []
    while (one := take_container(text, "pod p: key")) is not None:
        assert decode_containers(one.rest, "pod p: key", len(containers)) == (
            *((),) * (one.position + 1),
            *containers[one.position + 1 :],
        )
        taken.append((one.position, one.shares))
        text = one.rest
    assert taken == [(position, shares) for position, shares in enumerate(containers) if shares]
    assert text == ";" * len(containers)


@given(some.allocations)
def test_a_result_names_every_share_by_its_index(allocation: Allocation):
    indexes = {share.uuid: index for index, share in enumerate(allocation.shares)}
    result = decode_result(encode_result(allocation, indexes), "pod p: key")
    assert result.node == allocation.node
    assert [(card.id, card.memory_mib) for card in result.cards] == [
        (str(indexes[share.uuid]), share.memory_mib) for share in allocation.shares
    ]
    names = decode_card_names(encode_card_names(allocation, indexes), "pod p: key")
    assert [(name.vendor, name.index) for name in names] == list(
        dict.fromkeys((share.vendor.lower(), indexes[share.uuid]) for share in allocation.shares)
    )


@given(some.allocations)
def test_what_a_bind_writes_is_the_allocation_that_is_read(allocation: Allocation):
    indexes = {share.uuid: index for index, share in enumerate(allocation.shares)}
    annotations, labels = bind_marks(allocation, indexes, KEYS, 1_755_770_405)
    read = read_allocation(annotations, KEYS, len(allocation.containers), "pod p")
    if not allocation.shares:
        assert read is None
        return
    assert read is not None
    assert read.node == allocation.node == labels["hami.io/vgpu-node"]
    for vendor in KEYS:
        assert read.of_vendor(vendor) == allocation.of_vendor(vendor)


@given(st.lists(some.shares, min_size=1, max_size=3).map(tuple), st.integers(0, 3), st.integers(1, 4))
def test_the_flat_list_alone_serves_when_one_container_asked(cards, before: int, after: int):
    position, count = before, before + after
    annotations = {
        "hami.io/devices-to-allocate": encode_seed_devices(Allocation("n", (cards,))),
        "hami.io/vgpu-node": "n",
    }
    read = read_allocation(annotations, KEYS, count, "pod p", asking={"NVIDIA": [position], "DCU": [position]})
    assert read is not None
    assert read.containers == (*((),) * before, cards, *((),) * (after - 1))


@given(some.allocations, st.data())
def test_our_allocation_keeps_everything(allocation: Allocation, data: st.DataObject):
    names = tuple(data.draw(some.node_names) for _ in allocation.containers)
    text = versioned.encode_allocation(allocation, names)
    assert versioned.decode_allocation(text, "pod p: key") == (allocation, names)


@given(st.sets(some.uuids, min_size=2, max_size=5), st.data())
def test_links_keep_their_scores(cards: set[str], data: st.DataObject):
    links = tuple(Link(one, other, data.draw(some.numbers)) for one, other in combinations(sorted(cards), 2))
    reading = decode_links(encode_links(links), "node n: key")
    assert reading.links == links
    assert reading.complaints == ()


slices = st.builds(
    MigAllocation,
    container=some.small,
    device=some.small,
    gpu_uuid=some.uuids,
    profile=some.any_text.filter(bool),
    placement=some.placements,
    instance=st.none() | st.builds(MigInstance, some.uuids, some.numbers, some.numbers),
)


@given(st.lists(slices, max_size=4).map(tuple))
def test_mig_slices_keep_everything(allocations):
    assert decode_mig_allocations(encode_mig_allocations(allocations), "pod p: key") == allocations


@given(st.lists(some.plain_text.filter(bool), max_size=5, unique=True))
def test_lists_keep_their_order_and_cordons_their_members(entries: list[str]):
    assert decode_list(encode_list(entries)) == tuple(entries)
    assert decode_cordon(encode_cordon(entries)) == frozenset(entries)


@given(st.builds(ScoringWeights, slot=some.numbers, core=some.numbers, memory=some.numbers))
def test_weights_keep_their_numbers(weights: ScoringWeights):
    if weights != ScoringWeights(slot=0, core=0, memory=0):
        assert decode_weights(encode_weights(weights), "pod p: key") == weights


@given(st.lists(some.shares, min_size=1, max_size=3).map(tuple), some.node_names, st.integers(0, 2**62))
def test_what_ascend_and_metax_plugins_are_told_keeps_cards_and_amounts(cards, node: str, unix_ns: int):
    for vendor, seconds in (("Metax-SGPU", 1), ("Ascend910B4-1", 1_000_000_000)):
        own = tuple(replace(card, vendor=vendor) for card in cards)
        grant = Grant(allocation=Allocation(node, ((), own)), indexes={c.uuid: 0 for c in own}, unix_ns=unix_ns)
        notes = decode_extras(vendor, encode_extras(vendor, grant), "pod p")
        told = [(note.uuid, note.memory_mib, note.cores_percent) for note in notes.cards]
        assert told == [(card.uuid, card.memory_mib, card.cores_percent) for card in own]
        assert notes.unix_ns == unix_ns // seconds * seconds


@given(st.from_regex(r"[a-z0-9]([-a-z0-9.]{60,250}[a-z0-9])", fullmatch=True))
def test_a_label_of_a_node_is_legal_and_its_own(node: str):
    label = node_label(node)
    assert len(label) <= 63
    assert label[0].isalnum()
    assert label[-1].isalnum()
    assert node_label(node[:-1] + ("a" if node[-1] != "a" else "b")) != label
