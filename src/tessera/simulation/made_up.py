"""A cluster made up on the spot, and pods to go with it.

The mix is invented but not arbitrary: inference takes fractions, notebooks take halves, training takes whole cards or
whole nodes, and some pods need no card at all.
"""

import re

from tessera.errors import InvalidTrace
from tessera.simulation.scenario import Arrival, Scenario, counted
from tessera.simulation.trace import make_arrival, make_node

MAX_NODES = 50_000
MODEL = "A100-SXM4-80GB"
CPU_MILLI_PER_CARD = 12_000
MEMORY_MIB_PER_CARD = 48 * 1024
# how many of a hundred pods, cards, thousandths of each, CPU, memory
MIX = (
    (22, 1, 250, 2_000, 8_192),
    (14, 1, 500, 4_000, 16_384),
    (9, 1, 330, 3_000, 12_288),
    (8, 1, 750, 6_000, 24_576),
    (6, 1, 100, 1_000, 4_096),
    (24, 1, 1000, 8_000, 32_768),
    (6, 2, 1000, 16_000, 65_536),
    (3, 4, 1000, 32_000, 131_072),
    (2, 8, 1000, 64_000, 262_144),
    (6, 0, 0, 4_000, 8_192),
)


def make_up_cluster(description: str) -> Scenario:
    """`1000x8` is a thousand nodes of eight cards."""
    match = re.fullmatch(r"([0-9]{1,6})[xX]([0-9]{1,3})", description.strip())
    if match is None:
        raise InvalidTrace(f'--cluster is "{description}", expected nodes and cards per node such as "1000x8"')
    nodes, cards = int(match[1]), int(match[2])
    if not 1 <= nodes <= MAX_NODES or not 1 <= cards <= 64:
        raise InvalidTrace(f'--cluster is "{description}", expected 1 to {MAX_NODES} nodes of 1 to 64 cards')
    made = tuple(
        make_node(
            f"node-{number:05d}",
            cpu_milli=cards * CPU_MILLI_PER_CARD,
            memory_mib=cards * MEMORY_MIB_PER_CARD,
            cards=cards,
            model=MODEL,
        )
        for number in range(nodes)
    )
    return Scenario(f"{counted(nodes, 'node')} of {counted(cards, 'card')}", made, tuple(_pods(cards)))


def _pods(most_cards: int) -> list[Arrival]:
    return [
        make_arrival(f"pod-{line}-{copy}", cpu_milli=cpu, memory_mib=memory, cards=cards, milli=milli)
        for line, (copies, cards, milli, cpu, memory) in enumerate(MIX)
        if cards <= most_cards
        for copy in range(copies)
    ]
