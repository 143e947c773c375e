"""The file that the library in a container reads its limits from."""

from tessera.node.limits import limits_text
from tests.builders import a_share
from tests.unit.node.making import a_tile


def test_limits_are_lines_of_a_word_and_its_values_with_cards_in_the_containers_order():
    tile = a_tile("12ab", a_share("GPU-7", 3000, 30), a_share("GPU-3", 4000, 0))
    assert limits_text(tile) == (
        "version 1\n"
        "tile 12ab\n"
        "pod default train-0 uid-1\n"
        "container main\n"
        "card GPU-7 memory_mib 3000 cores_percent 30\n"
        "card GPU-3 memory_mib 4000 cores_percent 0\n"
    )
