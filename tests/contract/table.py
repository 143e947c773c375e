"""The contract as a table: its rows from the markers of the tests, its verdicts from a run, its place in the docs."""

import importlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

MARKER = "contract(area, promise, needed_by): a row of the table in docs/engines.md that this test proves"
DOCUMENT = Path(__file__).parents[2] / "docs/engines.md"
GENERATED = re.compile(r"(?<=<!-- generated: begin -->\n).*(?=<!-- generated: end -->)", re.DOTALL)
NOT_YET = "not yet"

AREAS = (
    "Objects",
    "Refusals",
    "Deleting",
    "Garbage collection",
    "Listing",
    "Watching",
    "History",
    "Patching",
    "Server-side apply",
    "Subresources",
    "Binding and eviction",
    "Custom resources",
    "CEL rules and policies",
    "Admission webhooks",
    "Quota",
    "Access",
    "Discovery",
    "Nodes, leases and events",
    "Workloads",
    "Running pods",
    "Logs, exec and proxies",
    "kubectl: looking",
    "kubectl: changing",
    "helm",
    "Python client",
    "Java client",
)
COMPONENTS = ("everything", "kube", "scheduler", "admission", "operators", "node", "views")
CLIENTS = ("kubectl", "helm", "Python client", "Java client", "HAMi clients", "GpuClaim", "Compute", "MPIJob")
NEEDS = frozenset(COMPONENTS + CLIENTS)


class Row(NamedTuple):
    """What an API server promises, and who relies on it."""

    area: str
    promise: str
    needed_by: str


def row_of(marks: Iterable[pytest.Mark]) -> Row | None:
    """The row that a test proves; what its own marker leaves out is taken from the module's, which comes later."""
    told: dict[str, str] = {}
    for mark in marks:
        if mark.name == "contract":
            told = {**mark.kwargs, **told}
    if "promise" not in told:
        return None
    row = Row(**told)
    unknown = set(row.needed_by.split(", ")) - NEEDS
    assert not unknown, f"{row.promise}: needed by {unknown}, expected some of {sorted(NEEDS)}"
    return row


def rows_of_the_suite() -> list[Row]:
    """Every row once, in the order of the areas and of the tests in them."""
    rows: dict[Row, None] = {}
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        module = vars(importlib.import_module(f"tests.contract.{path.stem}"))
        shared = [module["pytestmark"].mark] if "pytestmark" in module else []
        for name, function in module.items():
            own = getattr(function, "pytestmark", []) if name.startswith("test_") else []
            if row := row_of([*own, *shared]):
                rows[row] = None
    return sorted(rows, key=lambda row: AREAS.index(row.area))


class Run(NamedTuple):
    """One engine's column: which version was tried when, and what became of each row."""

    version: str
    day: str
    verdicts: Mapping[Row, str]


ENGINE_COLUMNS = ("kubernetes", "embedded")
LAST_RUN = "Last run: "
NEVER = Run("", "never", {})
HEAD = re.compile(r"(?P<engine>\w+)(?: (?P<version>\S+))?: (?P<day>[\w-]+)")


def rows_of_the_document() -> list[Row]:
    return [Row(*cells[:3]) for cells in _cells_of_the_document()]


def runs_of_the_document() -> dict[str, Run]:
    """By engine, as they were last written."""
    cells = _cells_of_the_document()
    tried = _generated().partition("\n")[0].removeprefix(LAST_RUN)
    heads = {found["engine"]: found for found in HEAD.finditer(tried)}
    return {
        engine: Run(
            (heads[engine]["version"] or "") if engine in heads else "",
            heads[engine]["day"] if engine in heads else NEVER.day,
            {Row(*row[:3]): row[3 + column] for row in cells},
        )
        for column, engine in enumerate(ENGINE_COLUMNS)
    }


def _generated() -> str:
    generated = GENERATED.search(DOCUMENT.read_text())
    assert generated, f"{DOCUMENT} has no generated part"
    return generated[0]


def _cells_of_the_document() -> list[list[str]]:
    lines = [line for line in _generated().splitlines() if line.startswith("| ")]
    return [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[1:]]


def write_document(engine: str, run: Run) -> None:
    """The column of this engine; the others stay as they are."""
    table = render(list(run.verdicts), {**runs_of_the_document(), engine: run})
    DOCUMENT.write_text(GENERATED.sub(lambda _: table, DOCUMENT.read_text()))


def render(rows: Iterable[Row], runs: Mapping[str, Run]) -> str:
    tried = [(engine, runs.get(engine, NEVER)) for engine in ENGINE_COLUMNS]
    named = [f"{engine} {run.version}".strip() for engine, run in tried]
    lines = [
        f"{LAST_RUN}{', '.join(f'{name}: {run.day}' for name, (_, run) in zip(named, tried, strict=True))}.",
        "",
        f"| area | promise | needed by | {' | '.join(named)} |",
        f"|{'---|' * (3 + len(named))}",
    ]
    for row in rows:
        cells = [cell.replace("|", "\\|") for cell in (*row, *(run.verdicts.get(row, NOT_YET) for _, run in tried))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
