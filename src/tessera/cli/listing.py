"""Views printed as tables, or as documents for programs; once, or again whenever one of them changes."""

import json
import select
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Generic, NamedTuple, TypeVar

import click
import msgspec
import yaml

from tessera.cli.table import Table, TablePrinter, stdout_paper
from tessera.views.looking import follow_all, read_all
from tessera.views.records import API_VERSION, Listed
from tessera.views.scenes import Scene

V = TypeVar("V", bound=Listed)
Draw = Callable[[Sequence[V], datetime], Table]


class Look(NamedTuple, Generic[V]):
    """What views of one sort are called, and how they are drawn."""

    kind: str
    table: Draw[V]
    wide: Draw[V]


class Listing(Generic[V]):
    """`output` is empty for a table."""

    def __init__(self, look: Look[V], output: str, *, titles: bool = True) -> None:
        self._look = look
        self._output = output
        self._tables = TablePrinter(stdout_paper(), titles=titles)
        self._shown: dict[str, V] = {}

    def show(self, views: Sequence[V], now: datetime) -> None:
        """All of them at once, as one document where documents are asked for."""
        for line in self._lines(views, now):
            click.echo(line)

    def show_changed(self, views: Sequence[V], now: datetime) -> None:
        """Those that are new, other than they were, or gone."""
        there = {view.key: view for view in views}
        gone = [msgspec.structs.replace(view, deleted=True) for key, view in self._shown.items() if key not in there]
        changed = [*gone, *(view for view in views if self._is_news(view))]
        self._shown = there
        if not changed:
            return
        for line in self._lines_one_by_one(changed, now):
            click.echo(line)

    def _is_news(self, view: V) -> bool:
        before = self._shown.get(view.key)
        return before is None or before.at_rest() != view.at_rest()

    def _lines(self, views: Sequence[V], now: datetime) -> Iterator[str]:
        document = {"apiVersion": API_VERSION, "kind": f"{self._look.kind}List", "items": views}
        match self._output:
            case "json":
                yield as_json(document)
            case "yaml":
                yield as_yaml(document).rstrip("\n")
            case _:
                yield from self._lines_one_by_one(views, now)

    def _lines_one_by_one(self, views: Sequence[V], now: datetime) -> Iterator[str]:
        """Each view for itself: a document, a name, or its rows."""
        if not views:
            return
        match self._output:
            case "json":
                yield from (json.dumps(self._document(view)) for view in views)
            case "yaml":
                yield from (f"---\n{as_yaml(self._document(view))}".rstrip("\n") for view in views)
            case "name":
                yield from (f"{self._look.kind.lower()}/{view.name}" for view in views)
            case "wide":
                yield from self._tables.lines(self._look.wide(views, now))
            case _:
                yield from self._tables.lines(self._look.table(views, now))

    def _document(self, view: V) -> dict[str, Any]:
        return {"apiVersion": API_VERSION, "kind": self._look.kind, **msgspec.to_builtins(view)}


async def run_listing(scene: Scene[V], listing: Listing[V], *, watch: bool, nothing: str) -> None:
    """`nothing` is what people are told where there is nothing to show."""
    await read_all(scene.sources)
    for sentence in scene.unread:
        click.echo(f"tessera: {sentence}", err=True)
    now = datetime.now(UTC)
    views = scene.view(now)
    if not views:
        click.echo(f"tessera: {nothing}", err=True)
    if not watch:
        listing.show(views, now)
        return

    def show_again() -> None:
        if not _is_stdout_read():
            raise BrokenPipeError
        now = datetime.now(UTC)
        listing.show_changed(scene.view(now), now)

    listing.show_changed(views, now)
    await follow_all(scene.sources, show_again)


def _is_stdout_read() -> bool:
    """Whether anybody is left at the other end of a pipe; who has nothing to write would not notice otherwise."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return not poll.poll(0)


def as_json(document: object) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def as_yaml(document: object) -> str:
    return yaml.safe_dump(msgspec.to_builtins(document), sort_keys=False, allow_unicode=True, width=120)
