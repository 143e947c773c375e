"""Which policies a replay uses, as people write it: `defrag` for nodes and cards alike, or `binpack/spread`."""

from tessera.engine.policies import check_choice
from tessera.errors import InvalidPolicy
from tessera.model.requests import PolicyChoice


def parse_choice(text: str) -> PolicyChoice:
    node, slash, card = text.partition("/")
    choice = PolicyChoice(node=node, cards=(card if slash else node,))
    if not node or (slash and not card):
        raise InvalidPolicy('a name is missing, expected one such as "defrag" or a pair such as "binpack/spread"')
    check_choice(choice)
    return choice
