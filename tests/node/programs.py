"""Programs that ask the simulated driver for their cards, as a CUDA program asks the real one."""

import json
from typing import Any

from tessera.vendors.simulated_driver import BUILT, find_libraries
from testbed.fixtures import require
from testbed.images.cache import default_cache
from testbed.images.recipes import python
from tests.node.conftest import GpuNode, a_container
from tests.repository.files import ROOT

LOOKING = (ROOT / "tests/native/looking.py").read_text()
SEE = """
import json, os
cuda.init()
cards = [[cuda.uuid(device), cuda.name(device), cuda.memory_mib(device)] for device in range(cuda.count())]
print(json.dumps({"cuda": cards, "nvml": nvml_uuids(), "libraries": os.environ.get("LD_LIBRARY_PATH")}))
"""


def load_programs(node: GpuNode) -> None:
    """The image that they run in."""
    require(find_libraries() is not None, f"{BUILT}: the simulated driver is not there; `make native` builds it")
    node.cluster.load(python.python_image(default_cache()))


def a_program(script: str, *, count: int = 1, memory: int = 1000, **more: Any) -> dict[str, Any]:
    """A container whose program finds `cuda`, `alloc` and `nvml_uuids` ready."""
    command = ["/usr/bin/python3", "-c", LOOKING + script]
    return a_container(count=count, memory=memory) | {"image": python.REFERENCE, "command": command} | more


def said_by(node: GpuNode, name: str, container: str = "main") -> Any:
    """What the pod's container has printed, once it has."""
    (said,) = node.wait_until(lambda: node.runs_of(node.pods()[name], container), f"told by {name}")
    return json.loads(said)
