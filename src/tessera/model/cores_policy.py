"""How strictly a container is held to its share of a card's time, in HAMi's words."""

from typing import Literal, get_args

CoresPolicy = Literal["force", "default", "disable"]
"""`force` is a strict share of the card's time, `default` gives what others leave unused, `disable` is no share."""
POLICIES: tuple[str, ...] = get_args(CoresPolicy)
