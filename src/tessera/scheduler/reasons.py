"""Why no node takes a pod, in one sentence: the reason of the node that came nearest.

The engine gives a sentence for each node and keeps it, because to make one costs more than to decide. So its reason is
read back from the words: whatever `render` says, `reason_of` knows again.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple

from tessera.model.refusals import Reason, Refusal, render

_DETAIL = "ABCXYZ"
_WITHOUT_DIGITS = str.maketrans("", "", "0123456789")
_NEARNESS = {reason: position for position, reason in enumerate(Reason)}


class Summary(NamedTuple):
    """What most nodes of the nearest sort say. The same while the state is."""

    reason: Reason | None
    sentence: str
    nodes: int
    asked: int

    def __str__(self) -> str:
        return f"no node can take the pod; {self.nodes} of {self.asked}: {self.sentence}"


def summarize(sentences: Iterable[str]) -> Summary:
    """Of all nodes that refuse: reasons are declared from the farthest to the nearest, and the nearest counts."""
    counts = Counter(sentences)

    def rank(sentence: str) -> tuple[int, int, str]:
        reason = reason_of(sentence)
        return (-1 if reason is None else _NEARNESS[reason], counts[sentence], sentence)

    best = max(counts, key=rank, default="no node was asked about")
    return Summary(reason_of(best), best, counts[best], counts.total())


@lru_cache(maxsize=16_384)
def reason_of(sentence: str) -> Reason | None:
    """None for words that are no refusal's."""
    return _reason_of_words(sentence.translate(_WITHOUT_DIGITS))


@lru_cache(maxsize=1024)
def _reason_of_words(words: str) -> Reason | None:
    """Thousands of nodes differ in the numbers; what is left of them are a few sentences."""
    found = (reason for reason, patterns in _patterns().items() if any(p.fullmatch(words) for p in patterns))
    return next(found, None)


@cache
def _patterns() -> dict[Reason, list[re.Pattern[str]]]:
    return {reason: [_pattern(reason, cards) for cards in (1, 2)] for reason in Reason}


def _pattern(reason: Reason, cards: int) -> re.Pattern[str]:
    """What `render` says without its numbers, with a namespace in front or without."""
    words = re.escape(render(Refusal(reason, need=2, have=2, detail=_DETAIL, cards=cards)))
    words = words.replace(re.escape("2 cards"), "2 cards?").replace("2", "-?").replace(_DETAIL, ".*")
    return re.compile(f"(?:[^ ]+: )?{words}", re.DOTALL)
