"""What tests of images share: a place for caches, and containerd in a machine of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.building import Programs
from testbed.container_runtime import ContainerRuntime
from testbed.fixtures import require_testbed
from testbed.images import debian
from testbed.images.recipes import pause
from testbed.machine import Machine
from tests.testbed.images.containers import Containers


@pytest.fixture(scope="session")
def programs() -> Programs:
    """The testbed's own builds of containerd, ctr and coredns."""
    require_testbed()
    return Programs()


@pytest.fixture(scope="package")
def containers(programs: Programs) -> Iterator[Containers]:
    tree = debian.unpack(["containernetworking-plugins", "runc"])
    machine = Machine("images")
    try:
        runtime = ContainerRuntime(machine, programs, tree, pause=pause.REFERENCE)
        runtime.start()
        yield Containers(machine, runtime, ctr=programs["ctr"], runc=tree.launcher("runc"))
    finally:
        machine.stop()


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"
