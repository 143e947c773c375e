"""What MetaX adds on nodes and pods."""

import pytest

from tessera.errors import InvalidAnnotation
from tessera.model.annotations.metax import AppClass, QosPolicy, SharingWishes, decode_topology, read_wishes


def test_losses_and_scores_are_by_the_size_of_a_group():
    assert decode_topology('{"1": 0, "2": 30, "8": 1200}', "node n: key") == {1: 0, 2: 30, 8: 1200}
    assert decode_topology("null", "node n: key") == decode_topology("", "node n: key") == {}


@pytest.mark.parametrize("text", ['{"many": 1}', '{"0": 1}', '{"2": "x"}', '{"2": -1}', "[]", "nonsense"])
def test_a_topology_that_is_no_table_of_figures_is_refused(text: str):
    with pytest.raises(InvalidAnnotation, match=r"^node n: key"):
        decode_topology(text, "node n: key")


def test_wishes_are_words_that_exist():
    wishes = read_wishes(
        {
            "metax-tech.com/sgpu-qos-policy": "burst-share",
            "metax-tech.com/sgpu-app-class": "online",
            "metax-tech.com/sgpu-topology-aware": "true",
        },
        "pod p",
    )
    assert wishes == SharingWishes(qos=QosPolicy.BURST_SHARE, app_class=AppClass.ONLINE, topology_aware=True)
    assert read_wishes({}, "pod p") == SharingWishes()


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("sgpu-qos-policy", "best-effort, fixed-share, burst-share"),
        ("sgpu-app-class", "online, offline"),
        ("sgpu-topology-aware", '"true" or "false"'),
    ],
)
def test_a_wish_that_does_not_exist_is_refused(key: str, expected: str):
    with pytest.raises(InvalidAnnotation) as error:
        read_wishes({f"metax-tech.com/{key}": "some"}, "pod p")
    assert str(error.value) == f'pod p: metax-tech.com/{key} is "some", expected {expected}'
