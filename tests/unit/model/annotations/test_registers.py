"""Node registers: every form that has been seen is read, one is written, and what is wrong is said in one sentence."""

from typing import Any

import pytest
from msgspec.structs import replace

from tessera.errors import InvalidAnnotation
from tessera.model.annotations.registers import RegisterFormat, decode_register, encode_register, read_register
from tessera.model.devices import Device, MigPlacement, MigProfile

WHERE = "node gpu-07: hami.io/node-nvidia-register"
SEED = "GPU-a,10,40960,100,NVIDIA A100,1,true"
A100 = Device(
    uuid="GPU-a", index=0, vendor="NVIDIA", model="NVIDIA A100", slots=10, memory_mib=40960, cores_percent=100, numa=1
)


def decode(text: str, **options: Any) -> tuple[Device, ...]:
    return decode_register(text, vendor="NVIDIA", where=WHERE, **options)


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("as the first client guide has it", f"{SEED}:"),
        ("without the last colon", SEED),
        ("with blank entries", f":{SEED}: ::"),
        ("with spaces around fields", " GPU-a , 10,40960 ,100, NVIDIA A100 ,1, true : "),
        ("with health as Python spells it", "GPU-a,10,40960,100,NVIDIA A100,1,True:"),
        ("with health in capitals", "GPU-a,10,40960,100,NVIDIA A100,1,TRUE:"),
        ("with health as a digit", "GPU-a,10,40960,100,NVIDIA A100,1,1:"),
        ("with nine fields", f"{SEED},0,hami-core:"),
        ("with nine fields and no mode", f"{SEED},0,:"),
        (
            "as JSON",
            '[{"id":"GPU-a","count":10,"devmem":40960,"devcore":100,"type":"NVIDIA A100","numa":1,"health":true}]',
        ),
        (
            "as JSON with keys that nobody knows",
            ' [{"id":"GPU-a","count":10,"devmem":40960,"devcore":100,"type":"NVIDIA A100","numa":1,"health":true,'
            '"devicevendor":"NVIDIA","custominfo":null,"migtemplate":[],"new":{"x":1}}] ',
        ),
        (
            "as JSON with numbers in quotes",
            '[{"id":"GPU-a","count":"10","devmem":40960.0,"devcore":"100","type":"NVIDIA A100","numa":1,"health":"1"}]',
        ),
    ],
)
def test_one_card_is_read(how: str, text: str):
    assert decode(text) == (A100,), how


@pytest.mark.parametrize("text", ["", " ", ":", "::", "[]", "null"])
def test_a_register_may_be_empty(text: str):
    assert decode(text) == ()


def test_cards_may_have_different_numbers_of_fields():
    cards = decode(f"{SEED}:GPU-b,10,40960,100,NVIDIA A100,0,false,7,mig:GPU-c,4,8192,Tesla T4,true,hami-core:")
    assert [(card.uuid, card.index, card.mode, card.healthy, card.cores_percent) for card in cards] == [
        ("GPU-a", 0, "hami-core", True, 100),
        ("GPU-b", 7, "mig", False, 100),
        ("GPU-c", 2, "hami-core", True, 100),
    ]


def test_a_card_whose_form_tells_no_index_has_that_of_its_position():
    assert [card.index for card in decode(f"{SEED}:GPU-b,1,1,1,T,0,true:")] == [0, 1]


def test_a_json_card_without_health_is_unhealthy_because_go_omits_false():
    (card,) = decode('[{"id":"GPU-a","index":3,"count":1,"devmem":1,"type":"T"}]')
    assert not card.healthy
    assert (card.index, card.numa, card.cores_percent) == (3, 0, 0)


def test_a_card_on_no_numa_node_is_on_node_0():
    assert decode("GPU-a,1,1,1,T,-1,true:")[0].numa == 0
    assert decode('[{"id":"GPU-a","numa":-1}]')[0].numa == 0


def test_json_omits_zero_values_as_hami_does():
    sick = replace(A100, healthy=False, numa=0)
    assert encode_register([sick], RegisterFormat.JSON) == (
        '[{"id":"GPU-a","count":10,"devmem":40960,"devcore":100,"type":"NVIDIA A100","mode":"hami-core"}]'
    )


def test_json_carries_profiles_and_network():
    profile = MigProfile(
        name="1g.5gb", memory_mib=4864, cores_percent=14, slices=1, placements=(MigPlacement(0, 1), MigPlacement(1, 1))
    )
    card = replace(A100, mode="mig", mig_profiles=(profile,), network_id=5)
    text = encode_register([card], RegisterFormat.JSON)
    assert '"migProfiles":[{"name":"1g.5gb","memoryMB":4864,"core":14,"sliceCount":1,"placements":[{"start":0,' in text
    assert '"custominfo":{"NetworkID":5}' in text
    assert decode(text) == (card,)


def test_seven_fields_are_what_we_write():
    assert encode_register([A100, replace(A100, uuid="GPU-b", healthy=False)]) == (
        f"{SEED}:GPU-b,10,40960,100,NVIDIA A100,1,false:"
    )


def test_metax_names_the_same_things_otherwise():
    (card,) = decode(
        '[{"uuid":"GPU-m","bdf":"0000:0f:00.0","model":"C500","totalDevCount":16,"totalCompute":100,"totalVRam":65536,'
        '"availableDevCount":3,"numa":1,"healthy":true,"qosPolicy":"fixed-share","linkZone":2}]'
    )
    assert card == Device(
        uuid="GPU-m", vendor="NVIDIA", model="C500", slots=16, memory_mib=65536, cores_percent=100, numa=1, island="2"
    )


def test_enflame_cards_are_named_after_their_node_and_as_large_as_their_largest_profile():
    text = '{"devices":[{"index":"1","minor":"1","capacity":6}],"profiles":{"1g.7gb":"0","3g.21gb":"1","6g.42gb":"2"}}'
    (card,) = decode_register(text, vendor="Enflame", where=WHERE, node="gcu-01")
    assert (card.uuid, card.index, card.slots, card.memory_mib, card.healthy) == (
        "gcu-01-enflame-drs-1",
        1,
        6,
        43008,
        True,
    )
    assert [(profile.name, profile.slices, profile.cores_percent) for profile in card.mig_profiles] == [
        ("1g.7gb", 1, 16),
        ("3g.21gb", 3, 50),
        ("6g.42gb", 6, 100),
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            f"{SEED}:GPU-b,10,lots,100,T,0,true:",
            f'{WHERE} card 1: memory is "lots", expected a whole number of MiB such as 40960',
        ),
        ("GPU-a,10,-5,100,T,0,true:", f'{WHERE} card 0: memory is "-5", expected a whole number of MiB such as 40960'),
        ("GPU-a,10,1,100,T,-2,true:", f'{WHERE} card 0: numa is "-2", expected a whole number such as 10'),
        ("GPU-a,10,2147483648,100,T,0,true:", f'{WHERE} card 0: memory is "2147483648", expected at most 2147483647'),
        (
            "GPU-a,\u0661\u0660,1,100,T,0,true:",
            f'{WHERE} card 0: slots is "\u0661\u0660", expected a whole number such as 10',
        ),
        ("GPU-a,1_0,1,100,T,0,true:", f'{WHERE} card 0: slots is "1_0", expected a whole number such as 10'),
        ("GPU-a,10,1,x,T,0,true:", f'{WHERE} card 0: cores is "x", expected a whole number of percent such as 100'),
        ("GPU-a,10,1,100,T,0,yes:", f'{WHERE} card 0: health is "yes", expected "true" or "false"'),
        (",10,1,100,T,0,true:", f'{WHERE} card 0: id is "", expected the card\'s UUID'),
        ("GPU-a,10,1:", f'{WHERE} card 0 is "GPU-a,10,1" with 3 fields, expected 7, 9 or 6'),
        (f"{SEED}:{SEED}:", f'{WHERE} card 1: id is "GPU-a", expected a UUID that no other card of the node has'),
        ('[{"id":"GPU-a"', f'{WHERE} is "[{{"id":"GPU-a"", expected JSON'),
        ('[{"count":1}]', f"{WHERE} card 0: id is missing, expected a text"),
        (
            '[{"id":"GPU-a","devmem":true}]',
            f'{WHERE} card 0: memory is "true", expected {"a whole number of MiB such as 40960"}',
        ),
        ('[{"id":"GPU-a"},7]', f'{WHERE} card 1 is "7", expected an object'),
        ('{"x":1}', f"{WHERE}: devices is missing, expected a list of cards"),
        (
            '[{"id":"GPU-a","migProfiles":[{"name":"1g.5gb","memoryMB":"big"}]}]',
            f'{WHERE} card 0 migProfiles 0: memory is "big", expected a whole number of MiB such as 40960',
        ),
        (
            f"GPU-a,{'9' * 50},1,100,T,0,true:",
            f'{WHERE} card 0: slots is "{"9" * 37}...", expected a whole number such as 10',
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(text: str, sentence: str):
    with pytest.raises(InvalidAnnotation) as error:
        decode(text)
    assert str(error.value) == sentence


def test_one_broken_card_does_not_hide_the_others():
    reading = read_register(
        f"{SEED}:GPU-b,10,lots,100,T,0,true:GPU-c,1,1,1,T,0,true:{SEED}:", vendor="NVIDIA", where=WHERE
    )
    assert [card.uuid for card in reading.devices] == ["GPU-a", "GPU-c"]
    assert reading.devices[1].index == 2
    assert reading.complaints == (
        f'{WHERE} card 1: memory is "lots", expected a whole number of MiB such as 40960',
        f'{WHERE} card 3: id is "GPU-a", expected a UUID that no other card of the node has',
    )


def test_a_register_that_is_no_register_is_one_complaint():
    reading = read_register("[", vendor="NVIDIA", where=WHERE)
    assert reading.devices == ()
    assert reading.complaints == (f'{WHERE} is "[", expected JSON',)


TEXTUAL = 'a text without "," or ":", with no space at its ends'


@pytest.mark.parametrize(
    ("card", "form", "sentence"),
    [
        (replace(A100, model="A,B"), RegisterFormat.SEED, f'card GPU-a: type is "A,B", expected {TEXTUAL}'),
        (replace(A100, model="A:B"), RegisterFormat.HAMI, f'card GPU-a: type is "A:B", expected {TEXTUAL}'),
        (replace(A100, model="A "), RegisterFormat.VOLCANO, f'card GPU-a: type is "A ", expected {TEXTUAL}'),
        (replace(A100, uuid=""), RegisterFormat.SEED, 'card : id is "", expected a name'),
        (
            replace(A100, uuid="[x"),
            RegisterFormat.SEED,
            'card [x: id is "[x", expected a text that does not look like JSON',
        ),
        (replace(A100, mode=""), RegisterFormat.JSON, 'card GPU-a: mode is "", expected a name'),
        (
            replace(A100, memory_mib=2**31),
            RegisterFormat.JSON,
            'card GPU-a: memory is "2147483648", expected a whole number from 0 to 2147483647',
        ),
        (
            replace(A100, island="rack-1"),
            RegisterFormat.METAX,
            'card GPU-a: island is "rack-1", expected the number of a link zone such as "1"',
        ),
        (
            replace(A100, healthy=False),
            RegisterFormat.ENFLAME,
            "card GPU-a has something that an enflame register cannot say, expected a healthy card named "
            "n-enflame-drs-0 with the memory of its largest profile",
        ),
    ],
)
def test_what_would_read_back_differently_is_not_written(card: Device, form: RegisterFormat, sentence: str):
    with pytest.raises(InvalidAnnotation) as error:
        encode_register([card], form, node="n")
    assert str(error.value) == sentence


@pytest.mark.parametrize("form", RegisterFormat)
def test_no_form_is_written_with_one_card_twice(form: RegisterFormat):
    with pytest.raises(InvalidAnnotation, match=r"^card GPU-a stands twice, expected each card once$"):
        encode_register([A100, A100], form)


def test_compute_units_are_written_as_units_and_read_as_a_whole_card():
    card = Device(uuid="GPU-m", vendor="AMD", model="MI300X", slots=10, memory_mib=196592)
    text = encode_register([card], RegisterFormat.JSON, units={"GPU-m": 304})
    assert '"devcore":304' in text
    assert decode_register(text, vendor="AMD", where=WHERE, cores="units") == (card,)
    assert read_register(text, vendor="AMD", where=WHERE, cores="units").devices == (card,)
