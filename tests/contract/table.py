"""The contract as a table: its rows from the markers of the tests, its verdicts from a run, its place in the docs."""

import datetime
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


def rows_of_the_document() -> list[Row]:
    return [Row(*cells[:3]) for cells in _cells_of_the_document()]


def verdicts_of_the_document() -> list[str]:
    return [cells[3] for cells in _cells_of_the_document()]


def _cells_of_the_document() -> list[list[str]]:
    generated = GENERATED.search(DOCUMENT.read_text())
    assert generated, f"{DOCUMENT} has no generated part"
    lines = [line for line in generated[0].splitlines() if line.startswith("| ")]
    return [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[1:]]


def write_document(verdicts: Mapping[Row, str], version: str, day: datetime.date) -> None:
    table = render(verdicts, version, day)
    DOCUMENT.write_text(GENERATED.sub(lambda _: table, DOCUMENT.read_text()))


def render(verdicts: Mapping[Row, str], version: str, day: datetime.date) -> str:
    lines = [
        f"Last run: {day}, kube-apiserver {version}.",
        "",
        f"| area | promise | needed by | kubernetes {version} | embedded |",
        "|---|---|---|---|---|",
    ]
    for row, verdict in verdicts.items():
        cells = [cell.replace("|", "\\|") for cell in (*row, verdict, NOT_YET)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
