"""Random: any node that fits, any card that fits, and nothing else."""

from tessera.model.requests import PolicyChoice
from tests.builders import a_card, a_node, a_pod, a_want
from tests.unit.engine.world import World

RANDOM = PolicyChoice(node="random", cards=("random",))


def test_every_node_and_card_that_fits_has_its_turn_and_no_other():
    world = World(*(a_node(f"n{number}", *(a_card(f"{number}{letter}") for letter in "AB")) for number in range(3)))
    world.hold("n1", "1A", memory_mib=16_384)
    pod = a_pod(a_want(memory_mib=1), policy=RANDOM)
    chosen = {world.cards(pod)[0][0] for _ in range(100)}
    assert chosen == {"0A", "0B", "1B", "2A", "2B"}
