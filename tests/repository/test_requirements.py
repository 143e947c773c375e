"""What is installed is what was declared: pinned, hashed, and without an address."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.repository.files import ROOT

REQUIREMENTS = sorted((ROOT / "requirements").glob("*.txt"))
NAME = re.compile(r"[A-Za-z0-9._-]+")


def pinned_names(requirements: Path) -> set[str]:
    return {line.partition("==")[0] for line in requirements.read_text().splitlines() if re.match(r"[a-z0-9]", line)}


def names_of(requirements: list[str]) -> set[str]:
    return {name.group().lower() for line in requirements if (name := NAME.match(line))}


@pytest.mark.parametrize("requirements", REQUIREMENTS, ids=lambda path: path.name)
def test_every_requirement_is_pinned_and_hashed_and_no_address_is_named(requirements: Path):
    text = requirements.read_text()
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert entries
    assert [entry for entry in entries if "==" not in entry or "--hash=sha256:" not in entry] == []
    assert "://" not in text
    assert "--index-url" not in text
    assert "--find-links" not in text


def test_every_declared_dependency_is_pinned():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime = names_of(declared["project"]["dependencies"])
    dev = names_of(declared["dependency-groups"]["dev"])
    assert runtime - pinned_names(ROOT / "requirements/runtime.txt") == set()
    assert (runtime | dev) - pinned_names(ROOT / "requirements/dev.txt") == set()
