"""Which container runtimes can be told late what a container gets."""

import pytest

from tessera.node.runtimes import binds_late


@pytest.mark.parametrize(
    ("runtime", "late"),
    [
        ("containerd://2.1.4", True),
        ("containerd://2.0.0-rc.1", True),
        ("containerd://10.0.0", True),
        ("containerd://1.7.27", False),
        ("containerd://1.6.20~ds1", False),
        ("cri-o://1.23.0", True),
        ("cri-o://1.9.16", False),
        ("docker://27.0.1", False),
        ("containerd://unknown", False),
        ("", False),
    ],
)
def test_a_runtime_that_has_cdi_on_by_itself_binds_late(runtime: str, late: bool):
    assert binds_late("auto", runtime) is late


def test_an_operator_knows_better():
    assert binds_late("on", "containerd://1.7.27")
    assert not binds_late("off", "containerd://2.1.4")
