import pytest

from tessera.errors import InvalidPolicy
from tessera.model.requests import PolicyChoice
from tessera.simulation.choices import parse_choice


@pytest.mark.parametrize(
    ("text", "node", "card"),
    [
        ("defrag", "defrag", "defrag"),
        ("binpack/spread", "binpack", "spread"),
        ("topology-aware", "topology-aware", "topology-aware"),
        ("spread/numa", "spread", "numa"),
    ],
)
def test_a_name_stands_for_nodes_and_cards_and_a_pair_for_each(text: str, node: str, card: str) -> None:
    assert parse_choice(text) == PolicyChoice(node=node, cards=(card,))


@pytest.mark.parametrize("text", ["", "/", "binpack/", "/spread", "mutex", "a/b", "binpack/spread/numa"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidPolicy):
        parse_choice(text)
