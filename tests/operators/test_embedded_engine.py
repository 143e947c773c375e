"""Operators in `tessera up`: our kinds are there from the start, and claims are told of."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.building import Programs
from testbed.fixtures import require_testbed
from tests.contract.command_line import CommandLine
from tests.embedded.whole_engine import WholeEngine
from tests.operators.test_definitions import a_claim, apply


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[CommandLine]:
    require_testbed()
    engine = WholeEngine(tmp_path, "--nodes", "1", "--cards", "1xA100-SXM4-80GB")
    with engine.running():
        yield CommandLine(Programs()["kubectl"], engine.kubeconfig, tmp_path / "cache")


def test_a_cluster_on_this_machine_has_our_kinds_and_tells_on_claims(kubectl: CommandLine):
    apply(kubectl, a_claim("sliced", devices={"count": 1, "exclusivity": "MIG"}))
    kubectl("wait", "--for=condition=Accepted=False", "gclaim/sliced", "--timeout=20s")
    apply(kubectl, a_claim("whole"))
    kubectl("wait", "--for=jsonpath={.status.phase}=Pending", "gclaim/whole", "--timeout=20s")
    (told,) = json.loads(kubectl("get", "events", "--field-selector=reason=Failed", "-o", "json"))["items"]
    assert (told["involvedObject"]["kind"], told["type"]) == ("GpuClaim", "Warning")
    assert "sliced" in kubectl("describe", "gpuclaim", "sliced")
