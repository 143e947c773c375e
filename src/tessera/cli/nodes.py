"""How nodes and their cards look."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from tessera.cli.figures import NOTHING, age, memory, of
from tessera.cli.listing import Look
from tessera.cli.table import Cell, Row, Table
from tessera.views.nodes import AgentStanding, CardView, HandshakeView, NodeView

TITLES = ("NAME", "STATUS", "CARDS", "MEMORY", "CORES", "SHARES", "SEEN", "AGENT")
"""SEEN is the age of the handshake; its whole name would not leave the table in 80 columns."""
CARD_TITLES = ("NODE", "INDEX", "UUID", "MODEL", "MEMORY", "CORES", "SHARES", "NUMA", "ISLAND", "STATUS", "PODS")
AGENT_TONES = {AgentStanding.ALIVE: "good", AgentStanding.SILENT: "bad"}


def draw_nodes(views: Sequence[NodeView], now: datetime) -> Table:
    """A row for each node and each model of card on it."""
    return Table(TITLES, [row for view in views for row in _rows_of_node(view, now)])


def draw_cards(views: Sequence[NodeView], now: datetime) -> Table:  # noqa: ARG001
    return Table(CARD_TITLES, [_row_of_card(view, card) for view in views for card in view.cards])


def _rows_of_node(view: NodeView, now: datetime) -> Iterator[Row]:
    models = dict.fromkeys(card.model for card in view.cards)
    groups = [[card for card in view.cards if card.model == model] for model in models]
    for cards in groups or [[]]:
        yield (
            view.name,
            _status_of_node(view, cards),
            f"{len(cards)}x{_short_model(cards[0])}" if cards else NOTHING,
            *(_sums(cards) if cards else (NOTHING, NOTHING, NOTHING)),
            _handshake(view.handshakes, now),
            Cell(view.agent.standing, AGENT_TONES.get(view.agent.standing, "quiet")),
        )


def _sums(cards: Sequence[CardView]) -> tuple[str, str, str]:
    used = _total([card.memory_used_mib for card in cards])
    cores = _total([card.cores_used_percent for card in cards])
    shares = _total([card.shares_used for card in cards])
    return (
        f"{memory(used)}/{memory(sum(card.memory_mib for card in cards))}",
        of(cores, sum(card.cores_percent for card in cards), "%"),
        of(shares, sum(card.shares for card in cards)),
    )


def _short_model(card: CardView) -> str:
    """Without the maker's name, which most models begin with."""
    return card.model.removeprefix(card.vendor).strip(" -") or card.model


def _total(amounts: Sequence[int | None]) -> int | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


def _status_of_node(view: NodeView, cards: Sequence[CardView]) -> Cell:
    if view.deleted:
        return Cell("Deleted", "quiet")
    said = ["Ready" if view.ready else "NotReady", *(["SchedulingDisabled"] if not view.schedulable else [])]
    states = Counter(state for card in cards for state in _faults(card))
    said += [f"{state}:{count}" for state, count in states.items()]
    if view.complaints:
        said.append(f"complaints:{len(view.complaints)}")
    return Cell(",".join(said), "bad" if not view.ready else "doubtful" if len(said) > 1 else "good")


def _faults(card: CardView) -> list[str]:
    return [*(["unhealthy"] if not card.healthy else []), *(["cordoned"] if card.cordoned else [])]


def _handshake(handshakes: Sequence[HandshakeView], now: datetime) -> Cell:
    """The oldest, where several vendors have one."""
    if not handshakes:
        return Cell(NOTHING, "quiet")
    oldest = min(handshakes, key=lambda said: (said.is_fresh, said.at.timestamp() if said.at else 0.0))
    return Cell(age(oldest.at, now), "good" if oldest.is_fresh else "bad")


def _row_of_card(view: NodeView, card: CardView) -> Row:
    faults = ",".join(_faults(card))
    return (
        view.name,
        str(card.index),
        card.uuid,
        card.model,
        f"{memory(card.memory_used_mib)}/{memory(card.memory_mib)}",
        of(card.cores_used_percent, card.cores_percent, "%"),
        of(card.shares_used, card.shares),
        str(card.numa),
        card.island or NOTHING,
        Cell("gone" if view.deleted else faults or "ok", "bad" if faults else "good"),
        ",".join(f"{holder.namespace}/{holder.pod}" for holder in card.holders) or NOTHING,
    )


NODE_LOOK = Look("Node", draw_nodes, draw_cards)
