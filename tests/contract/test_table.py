"""docs/engines.md says what the suite proves, no more and no less."""

import datetime
import os
import subprocess
import sys

import pytest

from tests.contract import table
from tests.contract.table import Row, render, row_of, rows_of_the_document, rows_of_the_suite, verdicts_of_the_document

HOW_TO_MEND = "run `pytest tests/contract --write-engines-table`"


@pytest.fixture
def document_at_rest(request):
    if request.config.getoption("--write-engines-table", default=False):
        pytest.skip("this run writes the document")


@pytest.mark.usefixtures("document_at_rest")
def test_the_document_has_the_rows_of_the_suite():
    assert rows_of_the_document() == rows_of_the_suite(), HOW_TO_MEND


@pytest.mark.usefixtures("document_at_rest")
def test_every_row_was_seen_to_hold_on_the_real_api_server():
    assert set(verdicts_of_the_document()) == {"yes"}, HOW_TO_MEND


def test_what_a_test_leaves_out_of_its_row_is_said_by_its_module():
    module = pytest.mark.contract(area="Watching", needed_by="kube").mark
    test = pytest.mark.contract(promise="It ends", needed_by="kubectl").mark
    assert row_of([test, module]) == Row("Watching", "It ends", "kubectl")
    assert row_of([module]) is None


def test_a_row_is_needed_by_somebody_known():
    with pytest.raises(AssertionError, match="It ends: needed by"):
        row_of([pytest.mark.contract(area="Watching", promise="It ends", needed_by="nobody").mark])


def test_a_rendered_row_is_read_back_as_it_was(tmp_path, monkeypatch):
    row = Row("Listing", "`a|b` is a | in a cell", "kubectl")
    document = tmp_path / "engines.md"
    generated = render({row: "no"}, "1.36.3", datetime.date(2026, 1, 2))
    document.write_text(f"<!-- generated: begin -->\n{generated}<!-- generated: end -->\n")
    monkeypatch.setattr(table, "DOCUMENT", document)
    assert rows_of_the_document() == [row]
    assert verdicts_of_the_document() == ["no"]


def test_a_run_of_a_part_of_the_suite_does_not_write_the_document():
    before = table.DOCUMENT.read_text()
    command = [sys.executable, "-m", "pytest", "-q", "--write-engines-table", "-p", "no:cacheprovider", __file__]
    part = subprocess.run(
        [*command, "-k", "needed_by_somebody"], capture_output=True, text=True, check=False, env=os.environ
    )
    assert part.returncode != 0
    assert "docs/engines.md was not written: this run left out" in part.stdout + part.stderr
    assert table.DOCUMENT.read_text() == before
