"""docs/engines.md says what the suite proves, no more and no less."""

import os
import subprocess
import sys

import pytest

from tests.contract import table
from tests.contract.table import (
    ENGINE_COLUMNS,
    Row,
    Run,
    render,
    row_of,
    rows_of_the_document,
    rows_of_the_suite,
    runs_of_the_document,
    write_document,
)

HOW_TO_MEND = "run `make engines-table`"


@pytest.fixture
def document_at_rest(request):
    if request.config.getoption("--write-engines-table", default=False):
        pytest.skip("this run writes the document")


@pytest.mark.usefixtures("document_at_rest")
def test_the_document_has_the_rows_of_the_suite():
    assert rows_of_the_document() == rows_of_the_suite(), HOW_TO_MEND


@pytest.mark.usefixtures("document_at_rest")
@pytest.mark.parametrize("name", ENGINE_COLUMNS)
def test_every_row_was_seen_to_hold_on_both_engines(name):
    verdicts = runs_of_the_document()[name].verdicts
    assert [row for row, verdict in verdicts.items() if verdict != "yes"] == [], HOW_TO_MEND


def test_what_a_test_leaves_out_of_its_row_is_said_by_its_module():
    module = pytest.mark.contract(area="Watching", needed_by="kube").mark
    test = pytest.mark.contract(promise="It ends", needed_by="kubectl").mark
    assert row_of([test, module]) == Row("Watching", "It ends", "kubectl")
    assert row_of([module]) is None


def test_a_row_is_needed_by_somebody_known():
    with pytest.raises(AssertionError, match="It ends: needed by"):
        row_of([pytest.mark.contract(area="Watching", promise="It ends", needed_by="nobody").mark])


def test_a_run_writes_its_own_column_and_keeps_the_other(tmp_path, monkeypatch):
    row = Row("Listing", "`a|b` is a | in a cell", "kubectl")
    real, own = Run("1.36.3", "2026-01-02", {row: "no"}), Run("1.36.0+tessera", "2026-02-03", {row: "yes"})
    document = tmp_path / "engines.md"
    document.write_text(f"<!-- generated: begin -->\n{render([row], {'kubernetes': real})}<!-- generated: end -->\n")
    monkeypatch.setattr(table, "DOCUMENT", document)
    assert rows_of_the_document() == [row]
    assert runs_of_the_document() == {"kubernetes": real, "embedded": Run("", "never", {row: "not yet"})}
    write_document("embedded", own)
    assert runs_of_the_document() == {"kubernetes": real, "embedded": own}


def test_a_run_of_a_part_of_the_suite_does_not_write_the_document():
    before = table.DOCUMENT.read_text()
    command = [sys.executable, "-m", "pytest", "-q", "--write-engines-table", "-p", "no:cacheprovider", __file__]
    part = subprocess.run(
        [*command, "-k", "needed_by_somebody"], capture_output=True, text=True, check=False, env=os.environ
    )
    assert part.returncode != 0
    assert "docs/engines.md was not written: this run left out" in part.stdout + part.stderr
    assert table.DOCUMENT.read_text() == before
