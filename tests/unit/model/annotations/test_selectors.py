"""What users write on their pods."""

import pytest

from tessera.errors import InvalidAnnotation, InvalidPolicy
from tessera.model.annotations.selectors import (
    SelectorKeys,
    decode_flag,
    decode_weights,
    encode_list,
    encode_weights,
    read_policy,
    read_selector,
)
from tessera.model.requests import EQUAL_WEIGHTS, CardSelector, PolicyChoice, ScoringWeights

WEIGHTS = "pod default/p: hami.io/device-scoring-weights"
NAMES = SelectorKeys(
    use_type="nvidia.com/use-gputype",
    avoid_type="nvidia.com/nouse-gputype",
    use_uuid="nvidia.com/use-gpuuuid",
    avoid_uuid="nvidia.com/nouse-gpuuuid",
    mode="nvidia.com/vgpu-mode",
    numa_bind="nvidia.com/numa-bind",
)


@pytest.mark.parametrize("text", ["slot=1,core=2,memory=3", " memory = 3 , Slot=1,core=2, "])
def test_weights_are_read_in_any_order(text: str):
    assert decode_weights(text, WEIGHTS) == ScoringWeights(slot=1, core=2, memory=3)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "slot=1,core=1",
        "slot=0,core=0,memory=0",
        "slot=1,core=1,memory=-1",
        "slot=1,core=1,memory=1.5",
        "slot=1,core=1,memory=1,memory=1",
        "slot=1,core=1,memory=²",
        "slot=1,core=1,memory=99999999999",
        "slot,core,memory",
    ],
)
def test_weights_that_are_not_three_numbers_with_one_above_zero_are_refused(text: str):
    with pytest.raises(InvalidPolicy) as error:
        decode_weights(text, WEIGHTS)
    assert str(error.value) == (
        f'{WEIGHTS} is "{text}", expected whole numbers for slot, core and memory, one of them above 0, '
        'such as "slot=1,core=1,memory=3"'
    )


def test_weights_that_weigh_nothing_are_not_written():
    assert encode_weights(ScoringWeights(slot=1, core=1, memory=3)) == "slot=1,core=1,memory=3"
    with pytest.raises(InvalidPolicy):
        encode_weights(ScoringWeights(slot=0, core=0, memory=0))


def test_policies_are_split_and_left_to_the_engine():
    annotations = {
        "hami.io/node-scheduler-policy": " binpack ",
        "hami.io/gpu-scheduler-policy": "numa, topology-aware,,nonsense",
    }
    assert read_policy(annotations) == PolicyChoice(node="binpack", cards=("numa", "topology-aware", "nonsense"))
    assert read_policy({}).weights == EQUAL_WEIGHTS


def test_a_pod_chooses_cards_by_type_uuid_mode_and_numa():
    annotations = {
        "nvidia.com/use-gputype": "A100, H100",
        "nvidia.com/nouse-gputype": "",
        "nvidia.com/nouse-gpuuuid": "GPU-a",
        "nvidia.com/vgpu-mode": "mig",
        "nvidia.com/numa-bind": "True",
    }
    assert read_selector(annotations, NAMES) == CardSelector(
        use_types=("A100", "H100"), avoid_uuids=("GPU-a",), mode="mig", same_numa=True
    )
    assert read_selector({}, NAMES) == CardSelector()


@pytest.mark.parametrize(("text", "value"), [("true", True), ("1", True), ("FALSE", False), ("", False), (" ", False)])
def test_a_switch_is_read(text: str, value: bool):
    assert decode_flag(text, "pod p: nvidia.com/numa-bind") is value


def test_a_switch_that_is_neither_on_nor_off_is_refused():
    with pytest.raises(InvalidAnnotation) as error:
        read_selector({"nvidia.com/numa-bind": "maybe"}, NAMES)
    assert str(error.value) == 'nvidia.com/numa-bind is "maybe", expected "true" or "false"'


def test_an_entry_with_a_comma_is_not_written():
    with pytest.raises(InvalidAnnotation, match=r'^comma list: entry is "a,b", expected a text without ","'):
        encode_list(["a,b"])
