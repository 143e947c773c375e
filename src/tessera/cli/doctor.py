"""How the doctor's findings look: one line each."""

from collections.abc import Sequence

from tessera.cli.table import Cell, Table
from tessera.views.findings import Finding, Level

TONES = {Level.OK: "good", Level.WARNING: "doubtful", Level.PROBLEM: "bad"}


def draw_findings(findings: Sequence[Finding]) -> Table:
    rows = [
        (
            Cell(finding.level, TONES[finding.level]),
            finding.check,
            "; ".join(filter(None, (finding.sentence, finding.advice))),
        )
        for finding in findings
    ]
    return Table(("LEVEL", "CHECK", "FINDING"), rows)
