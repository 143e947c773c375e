"""How far a simulation has come: a bar on a terminal, a line now and then where there is none."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import monotonic

import click
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from tessera.simulation.campaign import Progress

FIRST_LINE_S, NEXT_LINE_S = 10, 20


@contextmanager
def shown_progress(title: str, console: Console) -> Generator[Callable[[Progress], None], None, None]:
    if not console.is_terminal or console.is_dumb_terminal:
        yield Lines(title)
        return
    percent = TextColumn("{task.percentage:>3.0f}%")
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), percent, TimeElapsedColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=1.0)
        yield lambda progress: bar.update(task, completed=progress.part)


class Lines:
    """For logs: silent in a short run."""

    def __init__(self, title: str, clock: Callable[[], float] = monotonic) -> None:
        self._title = title
        self._clock = clock
        self._began = clock()
        self._due = self._began + FIRST_LINE_S

    def __call__(self, progress: Progress) -> None:
        now = self._clock()
        if now < self._due:
            return
        self._due = now + NEXT_LINE_S
        click.echo(f"{self._title}: {progress.part:.0%} after {now - self._began:.0f} s", err=True)
