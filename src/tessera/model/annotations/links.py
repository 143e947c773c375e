"""How well the cards of a node talk to each other: HAMi's pair scores.

Both cards of a pair report it. Where they disagree nobody knows which is right: the pair scores 0, with a complaint.
"""

from collections.abc import Iterable

import msgspec

from tessera.errors import InvalidAnnotation
from tessera.model.annotations.complaints import invalid, shorten
from tessera.model.annotations.limits import written_name, written_number
from tessera.model.annotations.records import Record, list_of, read_json, records_of, write_json
from tessera.model.devices import Link

_SCORE = "a whole number such as 1200"


class LinkReading(msgspec.Struct, frozen=True):
    links: tuple[Link, ...] = ()
    complaints: tuple[str, ...] = ()


def decode_links(text: str, where: str) -> LinkReading:
    """Each pair once, the smaller UUID first, in the order of the UUIDs."""
    scores = _read_scores(text, where)
    links: list[Link] = []
    complaints: list[str] = []
    for one, other in sorted({(min(pair), max(pair)) for pair in scores}):
        there, back = scores.get((one, other)), scores.get((other, one))
        if there is None or there != back:
            pair = f"the link of {shorten(one)} and {shorten(other)}"
            complaints.append(
                f"{where}: {pair} scores {_said(there)} one way and {_said(back)} the other, expected the same; "
                "it counts as 0"
            )
        links.append(Link(one, other, there if there is not None and there == back else 0))
    return LinkReading(tuple(links), tuple(complaints))


def encode_links(links: Iterable[Link]) -> str:
    scores: dict[str, dict[str, int]] = {}
    for link in links:
        owner = f"link of {link.one} and {link.other}"
        one, other = (written_name(uuid, owner, "card") for uuid in (link.one, link.other))
        if one == other or other in scores.get(one, {}):
            raise InvalidAnnotation(f"the {owner} is not one pair, expected two cards and each pair once")
        score = written_number(link.score, owner, "score")
        scores.setdefault(one, {})[other] = score
        scores.setdefault(other, {})[one] = score
    return write_json([{"uuid": uuid, "score": score} for uuid, score in scores.items()], "link scores")


def _read_scores(text: str, where: str) -> dict[tuple[str, str], int]:
    """What each card says about each other one; what it says about itself is left out."""
    cards = list_of(read_json(text, where), where) if text.strip() not in ("", "null") else []
    scores: dict[tuple[str, str], int] = {}
    for card in records_of(cards, f"{where} card"):
        uuid = _uuid_of(card)
        others = card.record("score")
        for other in others.values:
            if other != uuid:
                scores[uuid, other] = others.whole(other, f"score of {shorten(other)}", _SCORE, default=0)
    return scores


def _uuid_of(card: Record) -> str:
    uuid = card.text("uuid").strip()
    if not uuid:
        raise invalid(card.where, "uuid", uuid, "the card's UUID")
    return uuid


def _said(score: int | None) -> str:
    return "nothing" if score is None else str(score)
