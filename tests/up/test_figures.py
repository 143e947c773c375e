"""What a node shows of its cards and containers, and whom it tells of: as an agent does in a cluster."""

import os
import subprocess
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tessera.node.regions import FIRST_SLOT
from tessera.vendors.guard import BUILT as GUARD
from tessera.vendors.simulated_driver import BUILT as DRIVER
from testbed.fixtures import require
from tests.contract.api import Api
from tests.contract.running import is_running
from tests.contract.waiting import eventually
from tests.native.machines import PROBES
from tests.up.making import gpu_pod, wait_for

pytestmark = pytest.mark.timeout(180)
MIB = 1 << 20
HOLD = """
import ctypes, os, struct, sys, time
cuda, context, pointer = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
for mib in map(int, sys.argv[1:]):
    print("asked", cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(mib << 20)), flush=True)
"""
NAME_A_STRANGER = f"""
with open(os.environ["TESSERA_REGION"], "r+b") as region:
    region.seek({FIRST_SLOT} + 8)
    region.write(struct.pack("=Q", int(os.environ["STRANGER"])))
"""
WAIT = 'print("there", flush=True); time.sleep(1000)'


@pytest.fixture(autouse=True)
def _built():
    require(GUARD.exists() and DRIVER.exists(), "the library and the driver are not built; run `make native`")


def program(script, *arguments):
    """Words for a shell."""
    return f"exec {sys.executable} -c '{script}' {' '.join(map(str, arguments))}"


def page_of(api, node):
    return api.get(f"/api/v1/namespaces/kube-system/pods/hami-device-plugin-{node}:metrics/proxy/metrics")


def figure(api, node, name, **labels):
    """None where there is none."""
    for family in text_string_to_metric_families(page_of(api, node)):
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                return sample.value
    return None


def run(pods, name, script, *, ready="there", **options):
    """The node that it is on, once it has said that it is ready."""
    pods.create(gpu_pod(name, script, **options))
    node = wait_for(pods, name, is_running)["spec"]["nodeName"]
    eventually(lambda: ready in pods.get(f"{name}/log"))
    return node


def test_each_node_shows_what_its_containers_use_and_were_refused(api, pods):
    node = run(pods, "using", program(HOLD + WAIT, 500, 5000), memory_mib=2000)
    eventually(lambda: figure(api, node, "tessera_container_refusals_total", pod="using") == 1)
    used = eventually(lambda: figure(api, node, "hami_vgpu_memory_used_bytes", pod="using") or 0.0)
    assert 500 < used / MIB < 1100, "what it has, and its context"
    assert figure(api, node, "hami_vgpu_memory_limit_bytes", pod="using") == 2000 * MIB
    other = {"node-a": "node-b", "node-b": "node-a"}[node]
    assert figure(api, other, "hami_vgpu_memory_used_bytes", pod="using") is None
    pods.delete("using")


def test_the_time_that_a_container_has_of_its_card_is_shown_and_how_long_it_waits(api, pods):
    body = gpu_pod("capped", f"exec {PROBES}/worker 60 1000000", memory_mib=2000)
    body["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpucores"] = "40"
    pods.create(body)
    node = wait_for(pods, "capped", is_running)["spec"]["nodeName"]
    name = "hami_container_device_utilization_ratio"
    eventually(lambda: 20 < (figure(api, node, name, pod="capped") or 0) < 60)
    assert figure(api, node, "tessera_container_gpu_limit_percent", pod="capped") == 40
    assert figure(api, node, "tessera_container_gpu_share_percent", pod="capped") == 40
    assert figure(api, node, "tessera_container_throttled_seconds_total", pod="capped")
    card = pods.get("capped")["metadata"]["annotations"]["hami.io/vgpu-devices-allocated"].split(",")[0]
    eventually(lambda: (figure(api, node, "hami_host_gpu_utilization_ratio", device_uuid=card) or 0) > 10)
    pods.delete("capped")


def test_a_process_that_keeps_the_library_out_is_a_stray_and_told_of_even_if_a_container_names_it(api, pods):
    node = run(pods, "bypassing", "unset LD_PRELOAD; " + program(HOLD + WAIT, 3000), memory_mib=2000)
    assert "asked 0" in pods.get("bypassing/log"), "past its limit"
    uid = pods.get("bypassing")["metadata"]["uid"]
    told = eventually(lambda: [one for one in events_of(api, node) if uid in one["message"]], timeout_s=60)
    assert (told[0]["reason"], told[0]["type"]) == ("StrayProcess", "Warning")
    pid = told[0]["message"].split()[1]
    assert strays(api, node) == 1
    hide = f"export STRANGER={pid}; " + program(HOLD + NAME_A_STRANGER + WAIT, 10)
    run(pods, "hiding", hide, memory_mib=1000, nodeSelector={"kubernetes.io/hostname": node})
    eventually(lambda: strays(api, node) == 2, timeout_s=60)
    pods.delete("bypassing")
    pods.delete("hiding")
    eventually(lambda: strays(api, node) == 0, timeout_s=60)


def test_memory_beyond_a_limit_lies_in_the_host_s_where_the_engine_permits_it_and_is_shown(lone_engine):
    assert lone_engine.up("--spill-percent", "50").returncode == 0
    with Api(lone_engine.kubeconfig) as api:
        pods = api.collection("pods", "default")
        node = run(pods, "spilling", program(HOLD + WAIT, 1500, 800, 800), memory_mib=2000)
        assert pods.get("spilling/log").splitlines()[:3] == ["asked 0", "asked 0", "asked 2"], "half of it again"
        spilled = eventually(lambda: figure(api, node, "tessera_container_spilled_bytes", pod="spilling") or 0.0)
        assert spilled == 800 * MIB
        assert (figure(api, node, "hami_vgpu_memory_used_bytes", pod="spilling") or 0) <= 2000 * MIB


def test_a_program_of_the_machine_itself_on_a_card_is_a_stray_of_no_pod(api, engine):
    sim = engine.state / "nodes" / "node-b" / "sim"
    environment = {**os.environ, "TESSERA_SIM": str(sim), "LD_LIBRARY_PATH": str(DRIVER)}
    with subprocess.Popen([sys.executable, "-c", HOLD + WAIT, "700"], env=environment) as program:
        try:
            words = f"process {program.pid} of no pod has"
            eventually(lambda: any(words in one["message"] for one in events_of(api, "node-b")), timeout_s=60)
        finally:
            program.kill()


def strays(api, node):
    return sum(
        sample.value
        for family in text_string_to_metric_families(page_of(api, node))
        for sample in family.samples
        if sample.name == "tessera_stray_processes"
    )


def events_of(api, node):
    events = api.collection("events", "default").listing()["items"]
    return [one for one in events if one["involvedObject"] == one["involvedObject"] | {"kind": "Node", "name": node}]


def test_a_fault_that_the_driver_tells_of_takes_its_card_out_of_use(api, engine):
    status = api.collection("gpu.scheduling/v1/gpunodestatuses").get("node-b")["status"]
    sim = engine.state / "nodes" / "node-b" / "sim"
    card = (sim / "cards").read_text().split("\t")[0]
    assert [one["health"] for one in status["devices"]] == ["Healthy", "Healthy"]
    with (sim / "faults").open("a") as faults:
        faults.write(f"{card} 79\n")
    eventually(lambda: health_of(api) == ["Unhealthy", "Healthy"])
    eventually(lambda: figure(api, "node-b", "tessera_card_healthy", device_uuid=card) == 0)


def health_of(api):
    status = api.collection("gpu.scheduling/v1/gpunodestatuses").get("node-b")["status"]
    return [one["health"] for one in status["devices"]]
