import pytest

from tessera.errors import InvalidTrace
from tessera.simulation.made_up import make_up_cluster


def test_a_cluster_is_made_up_from_a_short_description() -> None:
    scenario = make_up_cluster(" 3x4 ")

    assert [len(node.devices) for node in scenario.nodes] == [4, 4, 4]
    assert max(pod.milli for pod in scenario.pods) == 4000


@pytest.mark.parametrize("text", ["", "8", "x8", "1000x", "0x8", "8x0", "-1x8", "1e3x8", "99999999x8", "5x65", "٣x8"])
def test_a_bad_description_gives_one_sentence(text: str) -> None:
    with pytest.raises(InvalidTrace, match="--cluster is "):
        make_up_cluster(text)
