"""Tables are whole: every module has its row, every figure its word on a page, and none is made up."""

import re
from pathlib import Path

import pytest

from tests.repository.files import ROOT, own_files
from tests.repository.pages import PAGES, QUOTED, text_outside_fences

PAGE = ROOT / "ARCHITECTURE.md"
BASES = (ROOT / "src/tessera", ROOT / "sdk/kpu/src")
"""Where the directories lie whose parts that page has in tables."""
ROWS = r".*\n\|[-| ]+\n((?:\|.*\n)+)"
TABLES: list[tuple[str, str]] = re.findall(
    rf"^\| (?:file|package) of `([\w/]+)` \|{ROWS}", PAGE.read_text(), re.MULTILINE
)
SOURCES = [path for pattern in ("*.py", "*.c", "*.h", "*.toml", "Makefile") for path in own_files(pattern)]
FIGURE = re.compile(r"\b((?:tessera|hami)_[a-z_]+[a-z])\b")


def first_column(rows: str) -> list[str]:
    return [name for row in rows.splitlines() for name in QUOTED.findall(row.split("|")[1])]


def parts_of(package: Path) -> set[str]:
    """Its modules and packages."""
    inside = [path.relative_to(package) for path in own_files(f"{package.relative_to(ROOT)}/*.py")]
    return {path.parts[0].removesuffix(".py") for path in inside} - {"__init__"}


@pytest.mark.parametrize(("package", "rows"), TABLES, ids=[package for package, _ in TABLES])
def test_every_part_of_a_package_has_its_row(package: str, rows: str):
    (place,) = [base / package for base in BASES if (base / package).is_dir()]
    told = [name.rstrip("/") for name in first_column(rows)]
    assert len(told) == len(set(told))
    assert parts_of(place) ^ set(told) == set()


def test_every_file_of_the_bench_for_a_card_has_its_row():
    page = ROOT / "benchmarks/h200/README.md"
    (rows,) = re.findall(rf"^\| file \|{ROWS}", page.read_text(), re.MULTILINE)
    there = {path.name.removesuffix(".py") for path in own_files("benchmarks/h200/*")}
    assert there ^ set(first_column(rows)) == {"__init__", page.name}


def test_every_figure_is_on_a_page_and_every_one_that_is_there_exists():
    made = {name for path in own_files("src/*.py") for name in re.findall(rf'"{FIGURE.pattern}"', path.read_text())}
    told = {name for page in ROOT.glob("docs/*.md") for name in FIGURE.findall(page.read_text())}
    assert made
    assert made ^ {name.removesuffix("_total") for name in told} == set()


def test_every_variable_of_ours_that_a_page_names_is_read_by_somebody():
    code = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES if "tests" not in path.parts)
    named = {name for page in PAGES for name in re.findall(r"`\$?(TESSERA_[A-Z_]+[A-Z])\b", text_outside_fences(page))}
    assert named
    assert {name for name in named if not re.search(rf"\b{name}\b", code)} == set()
