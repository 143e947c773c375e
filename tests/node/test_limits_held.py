"""Containers are kept within their shares: our library is in every process of theirs, on a real container runtime."""

import json
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tessera.vendors.guard import BUILT
from testbed.fixtures import require
from testbed.images.recipes import python
from tests.node.conftest import AGENT, GpuNode, a_container, a_pod
from tests.node.programs import LOOKING, a_program, load_programs, said_by
from tests.node.seeing import promised

pytestmark = pytest.mark.timeout(300)
WORKER = BUILT.parent / "probe" / "worker"
MIB = 1 << 20
GRANTED, OUT_OF_MEMORY = 0, 2
HOLD = """
import signal
print(alloc({mib}), flush=True)
signal.pause()
"""
TAKE_AND_DIE = """
import os, signal
print(alloc({mib}), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
ASK_NUMBER = """
import socket
agent = socket.socket(socket.AF_UNIX)
agent.connect("/run/tessera/agent/socket")
print(agent.makefile().readline(), end="", flush=True)
"""


@pytest.fixture(scope="module", autouse=True)
def _image(gpu_node_of_package: GpuNode) -> None:
    require(BUILT.exists(), f"{BUILT}: the library is not there; `make native` builds it")
    load_programs(gpu_node_of_package)


def execute(node: GpuNode, pod: str, script: str) -> str:
    """What a shell finds that somebody opens in the pod."""
    return node.cluster.kubectl("exec", pod, "--", "/usr/bin/python3", "-c", LOOKING + script)


def _printed(node: GpuNode, pod: str, words: str) -> str:
    """All that the container has said, once these words are in it."""
    said = "".join(node.runs_of(node.pods()[pod], "main"))
    return said if words in said else ""


def taken(node: GpuNode, pod: str, mib: int) -> int:
    """The driver's answer to one more process of the pod, which has a context beside that: 300 to 520 MiB."""
    return int(execute(node, pod, f"print(alloc({mib}))"))


def assert_is_held(node: GpuNode, name: str) -> None:
    """To 3000 MiB, of which it holds 1000 and a context."""
    assert said_by(node, name) == GRANTED
    assert taken(node, name, 1800) == OUT_OF_MEMORY
    assert taken(node, name, 500) == GRANTED


def figure(node: GpuNode, name: str, pod: str) -> float | None:
    families = {family.name: family for family in text_string_to_metric_families(node.metrics())}
    found = [sample.value for sample in families[name].samples if sample.labels.get("pod") == pod]
    return found[0] if found else None


def test_all_processes_of_a_container_together_get_no_more_than_its_share_and_prometheus_sees_it(gpu_node: GpuNode):
    gpu_node.create(a_pod("bounded", a_program(HOLD.format(mib=1000), memory=3000)))
    assert_is_held(gpu_node, "bounded")
    gpu_node.wait_until(lambda: figure(gpu_node, "tessera_container_refusals", "bounded") == 1, "showing the refusal")
    gpu_node.wait_until(
        lambda: 1300 <= (figure(gpu_node, "hami_vgpu_memory_used_bytes", "bounded") or 0) / MIB < 1600, "shown"
    )
    assert figure(gpu_node, "hami_vgpu_memory_limit_bytes", "bounded") == 3000 * MIB


def test_without_cdi_they_get_no_more_either(early_node: GpuNode):
    early_node.create(a_pod("bounded-early", a_program(HOLD.format(mib=1000), memory=3000)))
    assert_is_held(early_node, "bounded-early")


def test_a_container_of_any_user_with_a_root_that_cannot_be_written_is_held_too(gpu_node: GpuNode):
    confined = {"runAsUser": 1234, "runAsGroup": 1234, "readOnlyRootFilesystem": True}
    gpu_node.create(a_pod("confined", a_program(HOLD.format(mib=1000), memory=3000, securityContext=confined)))
    assert_is_held(gpu_node, "confined")


def test_two_containers_on_one_card_are_each_held_to_their_own_share(gpu_node: GpuNode):
    gpu_node.create(a_pod("small", a_program(HOLD.format(mib=1000), memory=3000)))
    (card,) = promised(gpu_node.wait_until(lambda: bound(gpu_node, "small"), "given a card"))["main"]
    large = a_pod("large", a_program(HOLD.format(mib=10_000), memory=14_000))
    large["metadata"]["annotations"] = {"nvidia.com/use-gpuuuid": card.uuid}
    gpu_node.create(large)
    assert said_by(gpu_node, "large") == GRANTED
    assert_is_held(gpu_node, "small")
    assert taken(gpu_node, "large", 4000) == OUT_OF_MEMORY
    assert taken(gpu_node, "large", 2000) == GRANTED
    assert execute(gpu_node, "large", "import os; print(*os.listdir('/run/tessera/cards'))") == f"{card.uuid}\n"


def test_two_containers_on_one_card_get_no_more_than_their_shares_of_its_time(gpu_node: GpuNode):
    require(WORKER.exists(), f"{WORKER}: the probe is not there; `make native` builds it")
    probes = {"name": "probes", "hostPath": {"path": str(WORKER.parent), "type": "Directory"}}
    where = [{"name": "probes", "mountPath": "/probes", "readOnly": True}]
    for name, percent in (("quarter", 25), ("half", 50)):
        worker = a_container(memory=2000, cores=percent) | {"image": python.REFERENCE, "volumeMounts": where}
        worker["command"] = ["/probes/worker", "6", "1000000"]
        pod = a_pod(name, worker, volumes=[probes], restartPolicy="Never")
        pod["metadata"]["annotations"] = {"hami.io/gpu-scheduler-policy": "binpack"}
        gpu_node.create(pod)
    done = {name: said_by(gpu_node, name) for name in ("quarter", "half")}
    assert given_card(gpu_node, "quarter") == given_card(gpu_node, "half")
    shares = {name: 100 * said["gpu_ns"] / said["wall_ns"] for name, said in done.items()}
    assert 10 < shares["quarter"] < 30
    assert 30 < shares["half"] < 55


def given_card(node: GpuNode, name: str) -> str:
    (card,) = promised(node.pods()[name])["main"]
    return card.uuid


def bound(node: GpuNode, name: str) -> dict[str, Any]:
    """The pod, once it is on its node; before that nothing."""
    pod = node.pods()[name]
    return pod if pod["spec"].get("nodeName") else {}


def test_an_init_container_is_held_and_a_container_that_is_restarted_begins_with_its_whole_share(gpu_node: GpuNode):
    first = a_program("print(alloc(2000), alloc(900))", memory=3000, name="first")
    again = a_program(TAKE_AND_DIE.format(mib=2000), memory=3000)
    gpu_node.create(a_pod("again", again, initContainers=[first], restartPolicy="Always"))
    gpu_node.wait_until(lambda: len(gpu_node.runs_of(gpu_node.pods()["again"], "main")) > 1, "restarted")
    assert set(gpu_node.runs_of(gpu_node.pods()["again"], "main")) == {"0\n"}
    assert gpu_node.runs_of(gpu_node.pods()["again"], "first") == ["0 2\n"]


def test_programs_that_load_no_libraries_run_as_ever(gpu_node: GpuNode):
    """busybox is static: the loader's file means nothing to it, and no complaint is printed."""
    gpu_node.create(a_pod("static", a_container(then="echo reached; exit 0"), restartPolicy="Never"))
    printed = gpu_node.wait_until(lambda: _printed(gpu_node, "static", "reached\n"), "said")
    assert "ld.so" not in printed


def test_a_container_that_is_given_more_while_it_runs_can_take_more(gpu_node: GpuNode):
    gpu_node.create(a_pod("growing", a_program(HOLD.format(mib=1000), memory=3000)))
    assert_is_held(gpu_node, "growing")
    said = gpu_node.pods()["growing"]["metadata"]["annotations"]
    larger = {key: value.replace("3000", "6000") for key, value in said.items() if "3000" in value}
    gpu_node.cluster.kubectl(
        "annotate", "--overwrite", "pod", "growing", *(f"{key}={value}" for key, value in larger.items())
    )
    gpu_node.wait_until(lambda: taken(gpu_node, "growing", 3500) == GRANTED, "given more")
    assert taken(gpu_node, "growing", 5000) == OUT_OF_MEMORY


def test_a_word_that_cannot_be_read_keeps_a_container_from_starting_and_others_reach_the_limits(gpu_node: GpuNode):
    def policy(said: str) -> dict[str, Any]:
        return {"env": [{"name": "GPU_CORE_UTILIZATION_POLICY", "value": said}]}

    gpu_node.create(a_pod("odd", a_container() | policy("sometimes")), a_pod("even", a_container() | policy("default")))
    gpu_node.wait_until(lambda: _printed(gpu_node, "even", "cores_policy default\n"), "held by its own policy")

    def says_why() -> bool:
        events = json.loads(gpu_node.cluster.kubectl("get", "events", "-o", "json"))["items"]
        return any('GPU_CORE_UTILIZATION_POLICY "sometimes", expected' in event.get("message", "") for event in events)

    gpu_node.wait_until(says_why, "telling why the container does not start")


def test_a_process_learns_its_number_on_the_node_also_from_an_agent_that_was_started_anew(gpu_node: GpuNode):
    gpu_node.create(a_pod("numbered", a_program(f"{ASK_NUMBER}\nimport signal; signal.pause()")))
    printed = gpu_node.wait_until(lambda: gpu_node.runs_of(gpu_node.pods()["numbered"], "main"), "told")
    word, number = printed[0].split()
    assert word == "pid"
    assert "signal.pause" in gpu_node.cluster.machine.run("cat", f"/proc/{number}/cmdline")
    gpu_node.agent.kill()
    gpu_node.agent.restart()
    gpu_node.wait_until(lambda: is_answered(gpu_node, "numbered"), "answered by the new agent")


def is_answered(node: GpuNode, pod: str) -> bool:
    try:
        return execute(node, pod, ASK_NUMBER).startswith("pid ")
    except Exception:
        return False


def test_a_region_that_somebody_spoiled_is_said_on_the_node_until_its_container_is_gone(gpu_node: GpuNode):
    gpu_node.create(a_pod("spoiled", a_program(HOLD.format(mib=100))))
    assert said_by(gpu_node, "spoiled") == GRANTED
    execute(gpu_node, "spoiled", f"open('/run/tessera/tile/region', 'r+b').write({struct.pack('<II', 7, 7)!r})")
    gpu_node.wait_until(lambda: "spoiled" in trouble(gpu_node), "saying whom it cannot hear")
    gpu_node.delete("spoiled")
    gpu_node.wait_until(lambda: not trouble(gpu_node), "saying that all is well")


def trouble(node: GpuNode) -> str:
    said = {one["type"]: one for one in node.node()["status"]["conditions"]}.get("TesseraLimitsHeld")
    return said["message"] if said and said["status"] == "False" else ""


@pytest.fixture
def without_ours(gpu_node: GpuNode) -> Iterator[GpuNode]:
    """A node whose operator has chosen HAMi's library, which it does not have."""
    gpu_node.start_agent(library="hami")
    gpu_node.wait_until(lambda: "libvgpu.so is not on the node" in trouble(gpu_node), "saying that limits do not hold")
    yield gpu_node
    gpu_node.clear()
    gpu_node.start_agent()
    gpu_node.wait_until(lambda: not trouble(gpu_node), "saying that all is well")


def test_who_chooses_hamis_library_does_not_get_ours(without_ours: GpuNode):
    without_ours.create(a_pod("unbounded", a_program(HOLD.format(mib=1000), memory=3000)))
    assert said_by(without_ours, "unbounded") == GRANTED
    assert taken(without_ours, "unbounded", 1800) == GRANTED
    there = "import os; print(*map(os.path.exists, ('/run/tessera', '/etc/ld.so.preload')))"
    assert execute(without_ours, "unbounded", there) == "False False\n"


def test_the_library_on_the_host_is_the_agents_own(gpu_node: GpuNode):
    installed = gpu_node.cluster.machine.host_path(f"{AGENT}/hook/tessera")
    assert (installed / "libtessera.so").read_bytes() == BUILT.read_bytes()
    assert (installed / "ld.so.preload").read_text() == "/run/tessera/lib/libtessera.so\n"
