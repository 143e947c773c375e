"""What docs/benchmarks.md tells people to run can be run."""

import re
from pathlib import Path

from benchmarks.__main__ import ALL, ON_A_CLUSTER

PAGE = Path(__file__).parents[3] / "docs/benchmarks.md"
COMMAND = re.compile(r"`python -m benchmarks ([a-z_ ]+)`")


def test_every_benchmark_of_the_page_is_known():
    named = {name for names in COMMAND.findall(PAGE.read_text()) for name in names.split()}
    assert named
    assert named <= {*ALL, *ON_A_CLUSTER, "cluster"}
