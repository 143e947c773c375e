"""The policies, one per file, and the book that finds them by name.

To add one: write its class in a file of its own here, add its line to a table below, test it. The names are the values
of the annotations `hami.io/node-scheduler-policy` and `hami.io/gpu-scheduler-policy`; the last takes several, in order.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from tessera.engine.fleet import Fleet
from tessera.engine.policies.best_fit import BestFit
from tessera.engine.policies.binpack import BinpackCards, BinpackNodes
from tessera.engine.policies.chance import Chance
from tessera.engine.policies.defrag import Defrag
from tessera.engine.policies.dot_product import DotProduct
from tessera.engine.policies.fgd import Fgd
from tessera.engine.policies.mutex import MutexCards
from tessera.engine.policies.numa import NumaCards
from tessera.engine.policies.ordered import OrderedCards
from tessera.engine.policies.spread import SpreadCards, SpreadNodes
from tessera.engine.policies.topology import TopologyCards, TopologyNodes
from tessera.engine.policy import CardPolicy, NodePolicy
from tessera.errors import InvalidPolicy
from tessera.model.requests import PodRequest, PolicyChoice, ScoringWeights

Policy = TypeVar("Policy")
NODE_POLICIES = ("binpack", "spread", "topology-aware", "defrag", "fgd", "best-fit", "dot-product", "random")
CARD_POLICIES = ("binpack", "spread", "topology-aware", "mutex", "numa", *NODE_POLICIES[3:])
DEFAULT = PolicyChoice(node="defrag", cards=("defrag",))


class PolicyBook:
    """The policies of one ledger. Those that learn are made once and shared by every request that names them."""

    def __init__(
        self, fleet: Fleet, live: Mapping[PodRequest, int], *, default: PolicyChoice = DEFAULT, seed: int = 0
    ) -> None:
        check_choice(default)
        self._default = default
        self.fgd = Fgd(fleet)
        shared = {
            "defrag": Defrag(fleet, live),
            "fgd": self.fgd,
            "best-fit": BestFit(),
            "dot-product": DotProduct(),
            "random": Chance(seed),
        }
        self._make_nodes: dict[str, Callable[[ScoringWeights], NodePolicy]] = {
            "binpack": BinpackNodes,
            "spread": SpreadNodes,
            "topology-aware": lambda _: TopologyNodes(),
            **{name: _always(policy) for name, policy in shared.items()},
        }
        self._make_cards: dict[str, Callable[[ScoringWeights], CardPolicy]] = {
            "binpack": BinpackCards,
            "spread": SpreadCards,
            "topology-aware": lambda _: TopologyCards(),
            "mutex": lambda _: MutexCards(),
            "numa": lambda _: NumaCards(),
            **{name: _always(policy) for name, policy in shared.items()},
        }
        self.nodes = lru_cache(maxsize=256)(self._find_nodes)
        self.cards = lru_cache(maxsize=256)(self._find_cards)

    def _find_nodes(self, choice: PolicyChoice) -> NodePolicy:
        """The node policy that a pod with this choice gets."""
        check_choice(choice)
        return self._make_nodes[choice.node or self._default.node](choice.weights)

    def _find_cards(self, choice: PolicyChoice) -> CardPolicy:
        """The card policy that a pod with this choice gets."""
        check_choice(choice)
        policies = [self._make_cards[name](choice.weights) for name in choice.cards or self._default.cards]
        return policies[0] if len(policies) == 1 else OrderedCards(policies)


def check_choice(choice: PolicyChoice) -> None:
    """Refuse names that no policy has."""
    if choice.node and choice.node not in NODE_POLICIES:
        raise InvalidPolicy(f'the node policy is "{choice.node}", expected {_one_of(NODE_POLICIES)}')
    for name in choice.cards:
        if name not in CARD_POLICIES:
            raise InvalidPolicy(f'the card policy is "{name}", expected {_one_of(CARD_POLICIES)}')


def _one_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _always(policy: Policy) -> Callable[[ScoringWeights], Policy]:
    return lambda _: policy
