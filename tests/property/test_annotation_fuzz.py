"""Any text whatsoever gives a value or a sentence, never another exception."""

import contextlib
import json
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.errors import InvalidAnnotation, InvalidPolicy
from tessera.model.allocations import Allocation, CardShare
from tessera.model.annotations import (
    allocations,
    binding,
    extras,
    handshakes,
    keys,
    links,
    locks,
    metax,
    mig,
    registers,
    results,
    selectors,
    versioned,
)

WHERE = "node n: key"
BIND_KEYS = (keys.BIND_PHASE, keys.BIND_TIME, keys.VOLCANO_TIME)
VENDORS = ["MLU", "Mthreads", "Metax-SGPU", "kunlun", "AWSNeuron", "Enflame", "Ascend910B4", "NVIDIA"]


def decode_all_extras(text: str) -> None:
    for vendor in VENDORS:
        for key in extras.encode_extras(vendor, grant_of_two_cards(vendor)):
            extras.decode_extras(vendor, {key: text}, "pod p")


def grant_of_two_cards(vendor: str) -> extras.Grant:
    """With all that makes a vendor write each of its keys."""
    cards = tuple(CardShare(uuid=f"card-{i}", vendor=vendor, memory_mib=256, cores_percent=10) for i in range(2))
    return extras.Grant(
        allocation=Allocation("n", (cards,)), indexes={"card-0": 0, "card-1": 1}, unix_ns=1, core_ids=(0, 1)
    )


DECODERS: dict[str, Callable[[str], object]] = {
    "register": lambda text: registers.decode_register(text, vendor="NVIDIA", where=WHERE),
    "register, leniently": lambda text: registers.read_register(text, vendor="NVIDIA", where=WHERE, node="n"),
    "handshake": handshakes.decode_handshake,
    "lock": lambda text: locks.decode_lock(text, WHERE),
    "containers": lambda text: allocations.decode_containers(text, WHERE, 3, [1]),
    "flat list": lambda text: allocations.decode_seed_devices(text, WHERE),
    "taken container": lambda text: allocations.take_container(text, WHERE),
    "result": lambda text: results.decode_result(text, WHERE),
    "card names": lambda text: results.decode_card_names(text, WHERE),
    "links": lambda text: links.decode_links(text, WHERE),
    "mig": lambda text: mig.decode_mig_allocations(text, WHERE),
    "weights": lambda text: selectors.decode_weights(text, WHERE),
    "list": selectors.decode_list,
    "flag": lambda text: selectors.decode_flag(text, WHERE),
    "topology": lambda text: metax.decode_topology(text, WHERE),
    "locks": lambda text: locks.read_locks(dict.fromkeys(keys.NODE_LOCKS, text), WHERE),
    "bind state": lambda text: binding.read_bind_state(dict.fromkeys(BIND_KEYS, text), WHERE),
    "inventory": lambda text: versioned.decode_inventory(text, WHERE),
    "allocation": lambda text: versioned.decode_allocation(text, WHERE),
    "extras": decode_all_extras,
}

# Words of all forms, so that a guess comes near one often enough to get past its first check.
NAMES = re.findall(
    r"\S+",
    """
    id index count devmem devcore type numa mode health migProfiles custominfo NetworkID uuid model totalDevCount
    totalVRam healthy linkZone devices profiles capacity minor 3g.20gb name memoryMB placements start size score node
    memory containers cards cores v vendor slots island network_id containerIndex gpuUUID profile placement migUUID
    gpuInstanceID computeInstanceID UUID temp core vRam compute request profileName slot
    """,
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.integers(-2, 3)
    | st.floats(allow_nan=False)
    | st.text(max_size=6)
    | st.sampled_from(["1", "-1", " 7 ", "true", "GPU-a", "", "²", "\u0661"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner, max_size=8)
    ),
    max_leaves=25,
)
versions = st.dictionaries(st.sampled_from(NAMES), values, max_size=5).map(lambda fields: {**fields, "v": 1})
json_texts = (values | versions).map(lambda value: json.dumps(value, ensure_ascii=False))
pieces = st.lists(
    st.sampled_from([*",:;[]{}=_- \n", "GPU-a", "0", "1", "-1", "100", "99999999999", "true", "slot", "memory", "core"])
    | st.text(max_size=3),
    max_size=30,
).map("".join)
any_text_at_all = st.text(st.characters(), max_size=50) | st.text(st.characters(categories=["Cs", "Lu"]), max_size=5)
times = st.from_regex(
    r"(Reported|Requesting|Deleted)[_ ]\d{4}[-.]\d\d[-.]\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,12})?"
    r"( ?[-+]\d\d:?\d\d|Z)?( UTC m=\+1)?",
    fullmatch=True,
)


@pytest.mark.parametrize("decoder", DECODERS)
@given(text=json_texts | pieces | any_text_at_all | times)
def test_any_text_gives_a_value_or_a_sentence(decoder: str, text: str):
    try:
        DECODERS[decoder](text)
    except (InvalidAnnotation, InvalidPolicy) as error:
        sentence = str(error)
        assert sentence.isprintable()
        assert len(sentence) < 500


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "9" * 10_000, "[" + "9" * 5_000 + "]", "\ud800", "[\ud800]"]
)
def test_a_hostile_text_gives_a_value_or_a_sentence(decoder: str, text: str):
    with contextlib.suppress(InvalidAnnotation, InvalidPolicy):
        DECODERS[decoder](text)


@given(text=json_texts | pieces | any_text_at_all)
def test_the_lenient_reader_finds_what_the_strict_one_finds(text: str):
    reading = registers.read_register(text, vendor="NVIDIA", where=WHERE)
    if not reading.complaints:
        assert registers.decode_register(text, vendor="NVIDIA", where=WHERE) == reading.devices
        return
    with pytest.raises(InvalidAnnotation) as error:
        registers.decode_register(text, vendor="NVIDIA", where=WHERE)
    assert str(error.value) == reading.complaints[0]
