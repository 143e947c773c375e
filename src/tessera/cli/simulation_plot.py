"""Allocated against arrived demand, one curve per policy, in braille dots.

Each curve ends in the letter of its policy, so that curves can be told apart where there are no colours.
"""

from collections.abc import Sequence
from string import ascii_letters

from rich.console import Console
from rich.text import Text

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red", "white", "bright_black")
ROWS, FROM = 12, 60
NARROWEST, FEWEST_COLUMNS, MOST_COLUMNS = 50, 20, 65
MARGIN = 6
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
BLANK = 0x2800

Cells = dict[tuple[int, int], tuple[int, str]]


def letter_of(position: int) -> str:
    return ascii_letters[position % len(ascii_letters)]


def colour_of(position: int) -> str:
    return COLOURS[position % len(COLOURS)]


def carries(console: Console, text: str) -> bool:
    try:
        text.encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def plot(console: Console, curves: Sequence[Sequence[float]]) -> list[Text]:
    """The lines of the plot; none where the console cannot show it or no curve gets beyond 60 %."""
    until = max(len(curve) for curve in curves) - 1
    if console.width < NARROWEST or not carries(console, chr(BLANK)) or until <= FROM:
        return []
    columns = max(FEWEST_COLUMNS, min(MOST_COLUMNS, console.width - MARGIN - len(curves)))
    cells, ends = _draw(curves, columns, until)
    if not cells:
        return []
    lines = [Text("\nallocated, % of all cards", "dim")]
    for row in range(ROWS):
        lines.append(_line(row, cells, columns).append_text(ends.get(row, Text())))
    lines.append(Text(f"     {FROM}{'arrived demand, % of all cards':^{columns - 5}}{until}", "dim"))
    return lines


def _draw(curves: Sequence[Sequence[float]], columns: int, until: int) -> tuple[Cells, dict[int, Text]]:
    """Dots by row and column, the best curve on top, and the letters at the right end of each row."""
    cells: Cells = {}
    ends: dict[int, Text] = {}
    for position, curve in reversed(list(enumerate(curves))):
        rows = {
            x: round((100 - percent) / (100 - FROM) * (ROWS * 4 - 1)) for x, percent in _points(curve, columns, until)
        }
        seen = {x: y for x, y in rows.items() if 0 <= y < ROWS * 4}
        for x, y in seen.items():
            dots, _ = cells.get((y // 4, x // 2), (0, ""))
            cells[y // 4, x // 2] = dots | DOTS[y % 4][x % 2], colour_of(position)
        if seen and len(curves) > 1:
            row = seen[max(seen)] // 4
            ends[row] = Text(letter_of(position), colour_of(position)).append_text(ends.get(row, Text()))
    return cells, ends


def _line(row: int, cells: Cells, columns: int) -> Text:
    label = 100 - round(row * (100 - FROM) / ROWS)
    line = Text(f"{label:>4} " if row % 3 == 0 else "     ", "dim", no_wrap=True, overflow="crop")
    for column in range(columns):
        dots, colour = cells.get((row, column), (0, ""))
        line.append(chr(BLANK + dots) if dots else " ", colour)
    return line.append(" ")


def _points(curve: Sequence[float], columns: int, until: int) -> list[tuple[int, float]]:
    """Two dots per column, from 60 percent of arrived demand to where the curve ends."""
    width = columns * 2
    points: list[tuple[int, float]] = []
    for x in range(width):
        arrived = FROM + x * (until - FROM) / (width - 1)
        low = int(arrived)
        if low + 1 < len(curve):
            points.append((x, curve[low] + (curve[low + 1] - curve[low]) * (arrived - low)))
        elif low < len(curve):
            points.append((x, curve[low]))
    return points
