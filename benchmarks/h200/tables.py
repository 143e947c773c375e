"""What comes out: a table for each section, our figure between that of no library, HAMi-core's, and the wanted one."""

from collections.abc import Iterable
from dataclasses import dataclass

MARKS = {True: "yes", False: "**no**", None: ""}


@dataclass(frozen=True)
class Row:
    what: str
    native: str = "–"
    hami_core: str = "–"
    """As recorded on the same kind of card, never measured here."""
    ours: str = "–"
    wanted: str = ""
    holds: bool | None = None


def render(section: str, rows: Iterable[Row]) -> str:
    lines = [
        f"### {section}",
        "",
        "| | native | HAMi-core, recorded | ours | wanted | holds |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.what} | {row.native} | {row.hami_core} | {row.ours} | {row.wanted} | {MARKS[row.holds]} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def percent(share: float | None) -> str:
    return "–" if share is None else f"{share * 100:.1f} %"


def figure(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def is_near(value: float | None, wanted: float, points: float) -> bool | None:
    """In points: shares and what is wanted of them as fractions of one."""
    return None if value is None else abs(value - wanted) <= points / 100


def all_hold(*verdicts: bool | None) -> bool | None:
    known = [verdict for verdict in verdicts if verdict is not None]
    return all(known) if known else None
