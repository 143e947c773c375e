"""The policies, one per file, and the book that finds them by name.

To add one: write its class in a file of its own here, add its line to a table below, test it. The names in the tables
are the values of the annotations `hami.io/node-scheduler-policy` and `hami.io/gpu-scheduler-policy`; the last takes
several, in order.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar, cast

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


class Surroundings(NamedTuple):
    """What a policy that lives as long as its ledger may look at."""

    fleet: Fleet
    live: Mapping[PodRequest, int]
    seed: int


OF_NODES: dict[str, Callable[[ScoringWeights], NodePolicy]] = {
    "binpack": BinpackNodes,
    "spread": SpreadNodes,
    "topology-aware": lambda _: TopologyNodes(),
}
OF_CARDS: dict[str, Callable[[ScoringWeights], CardPolicy]] = {
    "binpack": BinpackCards,
    "spread": SpreadCards,
    "topology-aware": lambda _: TopologyCards(),
    "mutex": lambda _: MutexCards(),
    "numa": lambda _: NumaCards(),
}
OF_BOTH: dict[str, Callable[[Surroundings], Defrag | Fgd | BestFit | DotProduct | Chance]] = {
    "defrag": lambda around: Defrag(around.fleet, around.live),
    "fgd": lambda around: Fgd(around.fleet),
    "best-fit": lambda around: BestFit(around.fleet),
    "dot-product": lambda around: DotProduct(around.fleet),
    "random": lambda around: Chance(around.seed),
}
NODE_POLICIES = (*OF_NODES, *OF_BOTH)
CARD_POLICIES = (*OF_CARDS, *OF_BOTH)
DEFAULT = PolicyChoice(node="defrag", cards=("defrag",))


class PolicyBook:
    """The policies of one ledger. Those that learn are made once and shared by every request that names them."""

    def __init__(
        self, fleet: Fleet, live: Mapping[PodRequest, int], *, default: PolicyChoice = DEFAULT, seed: int = 0
    ) -> None:
        check_choice(default)
        self._default = PolicyChoice(node=default.node or DEFAULT.node, cards=default.cards or DEFAULT.cards)
        shared = {name: make(Surroundings(fleet, live, seed)) for name, make in OF_BOTH.items()}
        self.fgd = cast(Fgd, shared["fgd"])
        self._learning = [policy for policy in shared.values() if type(policy).observe is not NodePolicy.observe]
        self._make_nodes = {**OF_NODES, **{name: _always(policy) for name, policy in shared.items()}}
        self._make_cards = {**OF_CARDS, **{name: _always(policy) for name, policy in shared.items()}}
        self.nodes = lru_cache(maxsize=256)(self._find_nodes)
        self.cards = lru_cache(maxsize=256)(self._find_cards)

    def observe(self, request: PodRequest) -> None:
        """A pod has arrived: every policy that learns takes note, whichever the pod itself has chosen."""
        for policy in self._learning:
            policy.observe(request)

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
    of_nodes, of_cards = (*OF_NODES, *OF_BOTH), (*OF_CARDS, *OF_BOTH)
    if choice.node and choice.node not in of_nodes:
        raise InvalidPolicy(f'the node policy is "{choice.node}", expected {_one_of(of_nodes)}')
    for name in choice.cards:
        if name not in of_cards:
            raise InvalidPolicy(f'the card policy is "{name}", expected {_one_of(of_cards)}')


def _one_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _always(policy: Policy) -> Callable[[ScoringWeights], Policy]:
    return lambda _: policy
