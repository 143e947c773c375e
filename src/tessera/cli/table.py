"""Tables as people know them from kubectl: aligned columns, the longest text last.

In a pipe or a file a line is as long as it is. On a terminal the last column is wrapped under itself, or on lines of
its own where the others leave it no room; if the terminal is too narrow for that too, it wraps as it likes.
"""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import click

GAP = "  "
INDENT = 4
LEAST_ROOM = 24


class Cell(NamedTuple):
    """`tone` is a word of `TONES`; text alone has none."""

    text: str
    tone: str = ""


TONES: Mapping[str, str] = {"good": "green", "doubtful": "yellow", "bad": "red", "quiet": "bright_black"}
Row = Sequence[Cell | str]


class Table(NamedTuple):
    titles: tuple[str, ...]
    rows: Sequence[Row]


class Paper(NamedTuple):
    """What is printed on: `width` is None where lines may be of any length."""

    width: int | None = None
    colours: bool = False


def stdout_paper() -> Paper:
    is_terminal = bool(sys.stdout) and sys.stdout.isatty()
    if not is_terminal:
        return Paper()
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Paper(shutil.get_terminal_size().columns, colours=not plain)


class TablePrinter:
    """Prints tables one under the other: the titles once, and columns as wide as they were before."""

    def __init__(self, paper: Paper, *, titles: bool = True) -> None:
        self._paper = paper
        self._with_titles = titles
        self._widths: list[int] = []

    def lines(self, table: Table) -> Iterator[str]:
        rows = [[_cell(cell) for cell in row] for row in table.rows]
        if self._with_titles:
            rows.insert(0, [Cell(title) for title in table.titles])
            self._with_titles = False
        self._widen(rows)
        for row in rows:
            yield from self._lines_of(row)

    def _widen(self, rows: list[list[Cell]]) -> None:
        for row in rows:
            widths = [len(cell.text) for cell in row]
            known = self._widths or [0] * len(widths)
            self._widths = [max(one, other) for one, other in zip(known, widths, strict=True)]

    def _lines_of(self, row: list[Cell]) -> Iterator[str]:
        *first, last = row
        widths = self._widths[:-1]
        head = "".join(
            self._painted(cell, cell.text.ljust(width)) + GAP for cell, width in zip(first, widths, strict=True)
        )
        taken = sum(widths) + len(GAP) * len(widths)
        beside, below = self._laid_out(last.text, taken)
        yield (head + self._painted(last, beside)).rstrip()
        for indent, part in below:
            yield " " * indent + self._painted(last, part)

    def _laid_out(self, text: str, taken: int) -> tuple[str, list[tuple[int, str]]]:
        """What of the last column stands beside the others, and each line below with its indent."""
        width = self._paper.width
        if width is None or len(text) <= max(width - taken, LEAST_ROOM) or width < INDENT + LEAST_ROOM:
            return text, []
        if width - taken >= LEAST_ROOM:
            beside, *below = textwrap.wrap(text, width - taken)
            return beside, [(taken, part) for part in below]
        return "", [(INDENT, part) for part in textwrap.wrap(text, width - INDENT)]

    def _painted(self, cell: Cell, text: str) -> str:
        if not self._paper.colours or not cell.tone or not text.strip():
            return text
        return click.style(text, fg=TONES[cell.tone])


def _cell(cell: Cell | str) -> Cell:
    """Printable, whatever it holds: a text of others must not steer the terminal."""
    text, tone = cell if isinstance(cell, Cell) else (cell, "")
    if not text.isprintable():
        text = text.encode("unicode_escape").decode("ascii")
    return Cell(text, tone)
