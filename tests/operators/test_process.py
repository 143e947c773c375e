"""`tessera run operator` as a process: it elects itself, tells, is asked, and hands over in order."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.contract.command_line import CommandLine
from tests.contract.waiting import eventually
from tests.operators.compute_life import a_compute
from tests.operators.conftest import Engine
from tests.operators.processes import an_operator, asked
from tests.operators.test_definitions import a_claim, apply

LEADS = "tessera_operator_leads 1.0"


def phase_of(kubectl: CommandLine, claim: str) -> str:
    return kubectl("get", "gclaim", claim, "-o", "jsonpath={.status.phase}")


def sets_in(kubectl: CommandLine) -> list[str]:
    return sorted(kubectl("get", "statefulsets", "-o", "jsonpath={.items[*].metadata.name}").split())


@pytest.mark.timeout(180)
def test_one_of_two_operators_tells_and_the_other_takes_over(
    engine: Engine, kubectl: CommandLine, namespace: str, tmp_path: Path
):
    flags = ("--leader-elect", "--install-definitions")
    with ExitStack() as until_end:
        with an_operator(engine.kubeconfig, namespace, tmp_path / "first.log", *flags) as first:
            eventually(lambda: LEADS in asked(f"{first}/metrics"))
            apply(kubectl, a_claim("early"))
            apply(kubectl, a_compute("early", {}))
            eventually(lambda: phase_of(kubectl, "early") == "Pending")
            eventually(lambda: "early" in sets_in(kubectl))
            assert 'tessera_claims{phase="Pending"}' in asked(f"{first}/metrics")
            second = until_end.enter_context(an_operator(engine.kubeconfig, namespace, tmp_path / "second.log", *flags))
            assert LEADS not in asked(f"{second}/metrics")
        apply(kubectl, a_compute("between", {}))
        eventually(lambda: LEADS in asked(f"{second}/metrics"))
        apply(kubectl, a_claim("late"))
        eventually(lambda: phase_of(kubectl, "late") == "Pending")
        eventually(lambda: sets_in(kubectl) == ["between", "early"])
        assert 'tessera_computes{state="Starting"}' in asked(f"{second}/metrics")
