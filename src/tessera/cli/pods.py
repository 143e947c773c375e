"""How pods that ask for cards look."""

from collections.abc import Callable, Sequence
from datetime import datetime

from tessera.cli.figures import NOTHING, age
from tessera.cli.listing import Look
from tessera.cli.table import Cell, Row, Table
from tessera.views.pods import AskView, GivenCardView, PodView

TITLES = ("NAME", "PHASE", "AGE", "NODE", "ASKS", "CARDS", "WAITS", "BECAUSE")
SHORT_UUID = 12
PHASE_TONES = {"Running": "good", "Succeeded": "quiet", "Pending": "doubtful", "Failed": "bad"}


def pod_look(*, namespaces: bool) -> Look[PodView]:
    """With a column of namespaces where there are pods of several."""
    return Look("Pod", _drawing(_short_card, namespaces), _drawing(_whole_card, namespaces))


def _drawing(
    show_card: Callable[[GivenCardView], str], namespaces: bool
) -> Callable[[Sequence[PodView], datetime], Table]:
    def draw(views: Sequence[PodView], now: datetime) -> Table:
        rows = [_row(view, now, show_card) for view in views]
        if not namespaces:
            return Table(TITLES, rows)
        return Table(("NAMESPACE", *TITLES), [(view.namespace, *row) for view, row in zip(views, rows, strict=True)])

    return draw


def _row(view: PodView, now: datetime, show_card: Callable[[GivenCardView], str]) -> Row:
    phase = "Deleted" if view.deleted else view.phase
    waits = view.waits if not view.deleted else None
    return (
        view.name,
        Cell(phase, PHASE_TONES.get(phase, "quiet")),
        age(view.created_at, now),
        view.node or NOTHING,
        ",".join((*_claimed(view.claim), *map(_ask, view.asks))) or NOTHING,
        ",".join(map(show_card, view.cards)) or NOTHING,
        age(waits.since, now) if waits else NOTHING,
        Cell(waits.sentence, "doubtful") if waits else NOTHING,
    )


def _claimed(claim: str) -> tuple[str, ...]:
    """By name, or by node and ids where the pod is pinned: no claim's name has a colon."""
    return (f"{'pin' if ':' in claim else 'claim'}:{claim}",) if claim else ()


def _ask(ask: AskView) -> str:
    """Such as 2xNVIDIA:8000Mi:30%, figures as they were written; a whole card has none."""
    if ask.memory_percent == ask.cores_percent == 100:
        return f"{ask.count}x{ask.vendor}"
    size = f"{ask.memory_percent}%mem" if ask.memory_percent else f"{ask.memory_mib}Mi"
    cores = f":{ask.cores_percent}%" if ask.cores_percent else ""
    return f"{ask.count}x{ask.vendor}:{size}{cores}"


def _short_card(card: GivenCardView) -> str:
    return f"#{card.index}" if card.index is not None else card.uuid[:SHORT_UUID]


def _whole_card(card: GivenCardView) -> str:
    cores = f":{card.cores_percent}%" if card.cores_percent else ""
    return f"{card.uuid}:{card.memory_mib}Mi{cores}"
