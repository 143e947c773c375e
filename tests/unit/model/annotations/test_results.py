"""The scheduling result and the names of cards."""

import pytest

from tessera.errors import InvalidAnnotation
from tessera.model.allocations import Allocation, CardShare
from tessera.model.annotations.results import (
    CardName,
    ResultCard,
    SchedulingResult,
    decode_card_names,
    decode_result,
    encode_card_names,
    encode_result,
)

WHERE = "pod default/p: hami.io/scheduling-result"
SHARED = CardShare(uuid="GPU-a", vendor="NVIDIA", memory_mib=4096, cores_percent=25)


def test_a_card_that_two_containers_use_stands_twice_in_the_result_and_once_by_name():
    allocation = Allocation("gpu-01", ((SHARED,), (SHARED,)))
    assert encode_result(allocation, {"GPU-a": 0}) == (
        '{"node":"gpu-01","devices":[{"id":"0","memory":"4096"},{"id":"0","memory":"4096"}]}'
    )
    assert encode_card_names(allocation, {"GPU-a": 0}) == "nvidia-gpu-0"


@pytest.mark.parametrize(
    "text",
    [
        '{"node":"gpu-01","devices":[{"id":"0","memory":"4096"}]}',
        '{"node":"gpu-01","devices":[{"id":0,"memory":4096,"cores":25}],"at":1}',
        ' { "node" : "gpu-01", "devices" : [ { "id" : "0", "memory" : " 4096 " } ] } ',
    ],
)
def test_a_result_is_read(text: str):
    assert decode_result(text, WHERE) == SchedulingResult("gpu-01", (ResultCard("0", 4096),))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"devices":[]}', f"{WHERE}: node is missing, expected a text"),
        ('{"node":"n","devices":7}', f'{WHERE} devices is "7", expected a list'),
        (
            '{"node":"n","devices":[{"id":"0","memory":"4Gi"}]}',
            f'{WHERE} card 0: memory is "4Gi", expected a whole number of MiB such as 40960',
        ),
        ("[]", f'{WHERE} is "[...]", expected an object'),
        ("gpu-01", f'{WHERE} is "gpu-01", expected JSON'),
    ],
)
def test_what_is_wrong_with_a_result_is_said_in_one_sentence(text: str, sentence: str):
    with pytest.raises(InvalidAnnotation) as error:
        decode_result(text, WHERE)
    assert str(error.value) == sentence


def test_names_are_read_with_spaces_and_with_vendors_that_hold_the_word_gpu():
    assert decode_card_names("nvidia-gpu-0, metax-gpu-gpu-12,", WHERE) == (
        CardName("nvidia", 0),
        CardName("metax-gpu", 12),
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nvidia-gpu-0,card7", f'{WHERE} card 1: name is "card7", expected vendor and index such as "nvidia-gpu-0"'),
        ("nvidia-gpu-x", f'{WHERE} card 0: index is "x", expected a whole number such as 10'),
    ],
)
def test_what_is_wrong_with_a_name_is_said_in_one_sentence(text: str, sentence: str):
    with pytest.raises(InvalidAnnotation) as error:
        decode_card_names(text, WHERE)
    assert str(error.value) == sentence
