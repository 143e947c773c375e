"""Device lists of pods: positions are what matters, and releases disagree about empty slots."""

import pytest

from tessera.errors import InvalidAnnotation
from tessera.model.allocations import Allocation, CardShare
from tessera.model.annotations.allocations import (
    decode_containers,
    decode_seed_devices,
    encode_containers,
    encode_seed_devices,
    split_mig_token,
    take_container,
)

WHERE = "pod default/train-0: hami.io/vgpu-devices-allocated"


def share(uuid: str, memory: int = 3000, cores: int = 30) -> CardShare:
    return CardShare(uuid=uuid, vendor="NVIDIA", memory_mib=memory, cores_percent=cores)


A, B = share("GPU-a"), share("GPU-b")
TWO = "GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,3000,30:"


@pytest.mark.parametrize(
    ("how", "text", "containers"),
    [
        ("as HAMi writes it", f";{TWO};;", ((), (A, B), ())),
        ("with the old spelling of empty slots", f",,0,0:;{TWO};,,0,0:;", ((), (A, B), ())),
        ("without trailing separators", ";GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,3000,30", ((), (A, B), ())),
        ("joined as Volcano does", f";{TWO};", ((), (A, B), ())),
        ("with spaces", " ; GPU-a , NVIDIA,3000 ,30 : GPU-b,NVIDIA,3000,30: ; ; ", ((), (A, B), ())),
        ("with slots too many", f";{TWO};;;;;", ((), (A, B), ())),
        ("with too few slots", f";{TWO};", ((), (A, B), ())),
        ("with fields of a later release", ";GPU-a,NVIDIA,3000,30,x:GPU-b,NVIDIA,3000,30,x:;;", ((), (A, B), ())),
        ("with MIG slices of 2.9", ";GPU-a[1-0],NVIDIA,3000,30:GPU-b[2g.10gb-3],NVIDIA,3000,30:;;", ((), (A, B), ())),
        ("without any card", ";;;", ((), (), ())),
        ("empty", "", ((), (), ())),
    ],
)
def test_a_pod_of_three_containers_is_read(how: str, text: str, containers: tuple[tuple[CardShare, ...], ...]):
    assert decode_containers(text, WHERE, 3) == containers, how


def test_a_short_list_gives_its_cards_to_the_containers_that_asked():
    """HAMi 2.10.0 leaves out leading empty slots."""
    assert decode_containers("GPU-a,NVIDIA,3000,30:;GPU-b,NVIDIA,3000,30:;", WHERE, 4, [3, 1]) == ((), (A,), (), (B,))


def test_a_list_of_full_length_is_believed_whoever_asked():
    assert decode_containers("GPU-a,NVIDIA,3000,30:;;", WHERE, 2, [1]) == ((A,), ())


def test_a_short_list_with_other_numbers_than_asked_is_padded_at_its_end():
    assert decode_containers("GPU-a,NVIDIA,3000,30:;", WHERE, 3, [1, 2]) == ((A,), (), ())


def test_without_a_number_of_containers_all_slots_stay():
    assert decode_containers(f";{TWO};;", WHERE) == ((), (A, B), ())
    assert decode_containers(f"{TWO};{TWO}", WHERE) == ((A, B), (A, B))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "GPU-a,NVIDIA,3000,30:;GPU-b,NVIDIA,much,30:;",
            f'{WHERE} container 1 card 0: memory is "much", expected a whole number of MiB such as 40960',
        ),
        (
            "GPU-a,NVIDIA,3000,-1:;",
            f'{WHERE} container 0 card 0: cores is "-1", expected a whole number of percent such as 100',
        ),
        (
            "GPU-a,NVIDIA:;",
            f'{WHERE} container 0 card 0 is "GPU-a,NVIDIA" with 2 fields, expected UUID, type, memory and cores',
        ),
        (",NVIDIA,3000,30:;", f'{WHERE} container 0 card 0: id is "", expected the card\'s UUID'),
        (f"{TWO};;{TWO};", f"{WHERE} gives cards to 3 containers, expected at most 2"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(text: str, sentence: str):
    with pytest.raises(InvalidAnnotation) as error:
        decode_containers(text, WHERE, 2)
    assert str(error.value) == sentence


def test_slots_are_always_closed():
    assert encode_containers(((), (A, B), ())) == f";{TWO};;"
    assert encode_containers(()) == ""


def test_the_flat_list_has_no_slots():
    assert encode_seed_devices(Allocation("n", ((), (A,), (B,)))) == TWO
    assert decode_seed_devices(TWO, WHERE) == (A, B)
    assert decode_seed_devices(TWO[:-1], WHERE) == (A, B)


@pytest.mark.parametrize("uuid", ["a,b", "a:b", "a;b", "a[1-0]", " a", ""])
def test_a_card_that_would_read_back_differently_is_not_written(uuid: str):
    with pytest.raises(InvalidAnnotation, match=f"^card {uuid.replace('[', '.')}: id is"):
        encode_containers(((share(uuid),),))


def test_the_first_waiting_container_is_taken_and_its_slot_emptied():
    taken = take_container(";GPU-a,NVIDIA,3000,30:;GPU-b,NVIDIA,3000,30:;", WHERE)
    assert taken is not None
    assert (taken.position, taken.shares, taken.rest) == (1, (A,), ";;GPU-b,NVIDIA,3000,30:;")
    last = take_container(taken.rest, WHERE)
    assert last is not None
    assert (last.position, last.rest) == (2, ";;;")
    assert take_container(last.rest, WHERE) is None


def test_an_old_mig_token_tells_template_and_slot():
    assert split_mig_token("GPU-a[1g.5gb-2]") == ("GPU-a", "1g.5gb", "2")
    assert split_mig_token("GPU-a") == ("GPU-a", "", "")


def test_a_token_without_a_comma_is_no_card():
    (shares,) = decode_containers("nonsense:GPU-a,NVIDIA,3000,30:;", "pod p: key")
    assert [share.uuid for share in shares] == ["GPU-a"]


def test_a_token_with_too_few_fields_is_an_error():
    with pytest.raises(InvalidAnnotation, match=r"with 3 fields, expected UUID, type, memory and cores"):
        decode_containers("GPU-a,NVIDIA,3000:;", "pod p: key")
