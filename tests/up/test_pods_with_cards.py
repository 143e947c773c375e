"""Pods on the nodes of `tessera up`: they get their cards as on a kubelet, share them, and wait with a reason."""

import json
import sys

from tessera.vendors.simulated_driver import BUILT
from testbed.fixtures import require
from tests.contract.api import MERGE_PATCH
from tests.contract.running import has_ended, is_running
from tests.contract.waiting import eventually
from tests.up.making import FOREVER, gpu_pod, wait_for

SHOW = f"env; cat /etc/tessera/nvidia/limits; echo shown; {FOREVER}"
AT_ONCE = {"gracePeriodSeconds": 0}
GUARD = BUILT.parent / "libtessera.so"
WORKER = BUILT.parent / "probe" / "worker"
ONE_CARD = {"annotations": {"hami.io/gpu-scheduler-policy": "binpack"}}


def test_two_pods_share_a_card_and_each_is_told_its_own_limit(pods):
    shown = {}
    for name, memory_mib in (("small", 20_000), ("large", 60_000)):
        body = gpu_pod(name, SHOW, memory_mib=memory_mib)
        body["metadata"] |= ONE_CARD
        pods.create(body)
        wait_for(pods, name, is_running)
        shown[name] = eventually(lambda name=name: "shown" in pods.get(f"{name}/log") and pods.get(f"{name}/log"))
    small, large = _variables(shown["small"]), _variables(shown["large"])
    assert small["NVIDIA_VISIBLE_DEVICES"] == large["NVIDIA_VISIBLE_DEVICES"]
    assert (small["CUDA_DEVICE_MEMORY_LIMIT_0"], large["CUDA_DEVICE_MEMORY_LIMIT_0"]) == ("20000m", "60000m")
    assert f"card {small['NVIDIA_VISIBLE_DEVICES']} memory_mib 20000" in shown["small"]


def test_a_pod_that_asks_for_too_much_waits_and_says_why(pods):
    pods.create(gpu_pod("greedy", memory_mib=100_000))
    waiting = wait_for(pods, "greedy", _is_refused)
    (told,) = (one for one in waiting["status"]["conditions"] if one["type"] == "PodScheduled")
    assert told["reason"] == "Unschedulable"
    assert "0/2 nodes are available" in told["message"]
    assert "100000 MiB" in told["message"]


def test_a_card_that_becomes_free_goes_to_the_pod_that_waits_for_it(pods):
    for number in range(4):
        pods.create(gpu_pod(f"whole-{number}", nodeSelector={"gpu": "on"}, cards=1, memory_mib=81_920))
    pods.create(gpu_pod("last", cards=2, memory_mib=81_920))
    wait_for(pods, "last", _is_refused)
    for name in set(pods.names()) - {"last"}:
        pods.delete(name)
    wait_for(pods, "last", is_running)


def test_a_pod_that_is_deleted_by_force_gives_its_cards_to_the_next(pods):
    for name in pods.names():
        pods.delete(name, AT_ONCE)
    pods.create(gpu_pod("former", "trap : TERM; while :; do sleep 0.1; done", cards=2, memory_mib=81_920))
    node = wait_for(pods, "former", is_running)["spec"]["nodeName"]
    pods.delete("former", AT_ONCE)
    pods.create(gpu_pod("next", cards=2, memory_mib=81_920, nodeSelector={"kubernetes.io/hostname": node}))
    wait_for(pods, "next", is_running)
    pods.delete("next")


def test_a_container_that_is_started_again_has_its_card_again(pods):
    script = "echo card=$NVIDIA_VISIBLE_DEVICES; exit 1"
    pods.create(gpu_pod("again", script, memory_mib=1000, restartPolicy="OnFailure"))
    wait_for(pods, "again", lambda pod: any(one["restartCount"] for one in pod["status"].get("containerStatuses", ())))
    before = eventually(lambda: pods.get("again/log", previous="true"))
    assert before.startswith("card=GPU-")
    assert eventually(lambda: pods.get("again/log")) == before


def test_a_container_finds_the_simulated_driver_and_its_own_card_in_it(pods):
    require(BUILT.exists(), "the simulated driver is not built; run `make native`")
    look = "echo libraries=$LD_LIBRARY_PATH; grep $NVIDIA_VISIBLE_DEVICES $TESSERA_SIM/cards"
    pods.create(gpu_pod("driven", look, memory_mib=1000))
    assert wait_for(pods, "driven", has_ended)["status"]["phase"] == "Succeeded"
    libraries, card = pods.get("driven/log").splitlines()
    assert libraries == f"libraries={BUILT}"
    assert "A100-SXM4-80GB" in card


def test_a_container_gets_no_more_memory_than_its_share_in_all_its_processes(pods):
    require(GUARD.exists(), "the library that limits memory is not built; run `make native`")
    taker = f"""{sys.executable} -c '
import ctypes, os
cuda, context, pointer = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
print([cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(600 << 20)) for _ in range(2)], flush=True)
if os.fork() == 0:
    os.execv("/bin/sleep", ["sleep", "2"])
os.wait()
'"""
    pods.create(gpu_pod("bounded", f"{taker} & sleep 1; {taker}; wait", memory_mib=2000))
    assert wait_for(pods, "bounded", has_ended)["status"]["phase"] == "Succeeded"
    assert pods.get("bounded/log").splitlines() == ["[0, 0]", "[2, 2]"], "the first has all that is left of 2000 MiB"


AS_THE_SCHEDULER = {
    "Impersonate-User": "system:serviceaccount:kube-system:hami-scheduler",
    "Impersonate-Group": "system:masters",
    "Content-Type": MERGE_PATCH,
}


def test_a_container_that_runs_is_given_more_without_a_restart(pods):
    script = f"echo first; while ! grep memory_mib.6000 /etc/tessera/nvidia/limits; do sleep 0.1; done; {FOREVER}"
    pods.create(gpu_pod("grown", script, memory_mib=3000))
    given = wait_for(pods, "grown", is_running)["metadata"]["annotations"]
    more = {name: value.replace("3000", "6000") for name, value in given.items() if "3000" in value}
    path = f"{pods.path}/grown"
    assert pods.api.send("PATCH", path, {"metadata": {"annotations": more}}, headers=AS_THE_SCHEDULER).status == 200
    eventually(lambda: "memory_mib 6000" in pods.get("grown/log"))
    assert not pods.get("grown")["status"]["containerStatuses"][0]["restartCount"]


def test_a_container_ends_by_a_refusal_with_a_sentence_where_it_wants_one(pods):
    require(GUARD.exists(), "the library that limits memory is not built; run `make native`")
    taker = f"""exec {sys.executable} -c '
import ctypes
cuda, context, pointer = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(5000 << 20))
'"""
    body = gpu_pod("ended", taker, memory_mib=2000)
    choices = {"ACTIVE_OOM_KILLER": "true", "CUDA_TASK_PRIORITY": "1"}
    env = [{"name": name, "value": value} for name, value in choices.items()]
    body["spec"]["containers"][0] |= {"terminationMessagePath": "/tmp/last-words", "env": env}
    pods.create(body)
    (status,) = wait_for(pods, "ended", has_ended)["status"]["containerStatuses"]
    assert "asked for 5000 MiB more, so it ends" in status["state"]["terminated"]["message"]


def test_a_pod_that_chooses_its_priority_is_told_it_and_a_refused_start_leaves_nothing(pods, engine):
    body = gpu_pod("chosen", SHOW, memory_mib=1000)
    body["spec"]["containers"][0]["env"] = [{"name": "CUDA_TASK_PRIORITY", "value": "1"}]
    pods.create(body)
    shown = eventually(
        lambda: wait_for(pods, "chosen", is_running) and "shown" in (log := pods.get("chosen/log")) and log
    )
    assert _variables(shown)["CUDA_TASK_PRIORITY"] == "1"
    before = _tiles_of(engine)
    refused = gpu_pod("unreadable", memory_mib=1000)
    refused["spec"]["containers"][0]["env"] = [{"name": "GPU_CORE_UTILIZATION_POLICY", "value": "sometimes"}]
    pods.create(refused)
    wait_for(pods, "unreadable", _is_not_made)
    assert _tiles_of(engine) <= before


def test_two_pods_on_one_card_each_get_no_more_than_their_share_of_its_time_and_memory(pods):
    require(WORKER.exists() and GUARD.exists(), "the library and its probes are not built; run `make native`")
    for name in pods.names():
        pods.delete(name, AT_ONCE)
    for name, percent in (("quarter", 25), ("half", 50)):
        body = gpu_pod(name, f"{WORKER} 4 1000000; test -s $TESSERA_REGION && ls $TESSERA_CARDS", memory_mib=2000)
        body["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpucores"] = str(percent)
        body["metadata"] |= ONE_CARD
        pods.create(body)
    shares = {}
    for name in ("quarter", "half"):
        assert wait_for(pods, name, has_ended)["status"]["phase"] == "Succeeded"
        said, *files = pods.get(f"{name}/log").splitlines()
        done = json.loads(said)
        shares[name] = 100 * done["gpu_ns"] / done["wall_ns"]
        assert len(files) == 2, "a file for each card of the node"
    assert 10 < shares["quarter"] < 30
    assert 30 < shares["half"] < 55


def _tiles_of(engine):
    return {path for tiles in engine.state.glob("**/tiles") for path in tiles.iterdir()}


def _is_not_made(pod):
    states = [one["state"] for one in pod["status"].get("containerStatuses", ())]
    return any("sometimes" in one.get("waiting", {}).get("message", "") for one in states)


def _is_refused(pod):
    conditions = pod["status"].get("conditions", ())
    return any((one["type"], one["status"]) == ("PodScheduled", "False") for one in conditions)


def _variables(log):
    return dict(line.split("=", 1) for line in log.splitlines() if "=" in line)
