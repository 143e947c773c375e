"""What became of each row of the contract in this run, written into docs/engines.md when every row had its turn."""

import datetime

import pytest

from tests.contract.engines import Engine
from tests.contract.table import Row, Run, row_of, rows_of_the_suite, write_document

WORDS = {"passed": "yes", "failed": "no", "skipped": "skipped"}


class Outcomes:
    """A pytest plugin."""

    def __init__(self) -> None:
        self._engine = ""
        self._version = "unknown"
        self._verdicts: dict[Row, str] = {}
        self._summary = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item):
        report: pytest.TestReport = yield
        row = row_of(item.iter_markers("contract"))
        if row and (report.when == "call" or not report.passed):
            self._note(row, WORDS[report.outcome])
            self._note_engine(item)
        return report

    def _note(self, row: Row, verdict: str) -> None:
        """A row that several tests prove is as good as the worst of them."""
        if self._verdicts.get(row, "yes") == "yes":
            self._verdicts[row] = verdict

    def _note_engine(self, item: pytest.Item) -> None:
        engine: Engine | None = getattr(item, "funcargs", {}).get("engine")
        if engine:
            self._engine = item.callspec.params["engine"]  # type: ignore[attr-defined]
            self._version = engine.version

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        rows = rows_of_the_suite()
        left_out = [row for row in rows if row not in self._verdicts]
        if left_out:
            self._summary = f"docs/engines.md was not written: this run left out {len(left_out)} of {len(rows)} rows"
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
            return
        verdicts = {row: self._verdicts[row] for row in rows}
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        write_document(self._engine, Run(self._version, today, verdicts))
        self._summary = f"docs/engines.md was written with {len(rows)} rows"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.line(self._summary)
