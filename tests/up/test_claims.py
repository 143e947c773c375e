"""Claims on the nodes of `tessera up`: as on a kubelet, every container sees the claimed cards and no others."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from tessera.model.nodes import read_node
from tessera.vendors.loading import load_catalogue
from tessera.vendors.simulated_driver import BUILT, find_libraries
from testbed.fixtures import require
from tests.contract.running import has_ended, is_running
from tests.contract.waiting import eventually
from tests.embedded.whole_engine import WholeEngine
from tests.repository.files import ROOT
from tests.up.making import FOREVER, gpu_pod, wait_for

CARDS = """
[[cards]]
model = "A100-SXM4-80GB"
count = 4
island_size = 4

[[cards]]
model = "A100-SXM4-80GB"
count = 4
island_size = 4
bandwidth_gbps = 64
unhealthy = [3]
"""
CLAIM = "gpu.scheduling/claim"
LOOKING = (ROOT / "tests/native/looking.py").read_text()
SEE = "import json; cuda.init(); print(json.dumps([[cuda.uuid(d) for d in range(cuda.count())], nvml_uuids()]))"
LOOK = shlex.join([sys.executable, "-c", f"{LOOKING}\n{SEE}"])


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """One node with two islands, of which the last card is unhealthy."""
    require(find_libraries() is not None, f"{BUILT}: the simulated driver is not there; `make native` builds it")
    directory: Path = tmp_path_factory.mktemp("claims")
    (directory / "cards.toml").write_text(CARDS)
    engine = WholeEngine(directory, "--nodes", "1", "--cards-file", str(directory / "cards.toml"))
    with engine.running():
        yield engine


@pytest.fixture
def claims(api):
    return api.collection("gpu.scheduling/v1/gpuclaims", "default")


@pytest.fixture
def statuses(api):
    return api.collection("gpu.scheduling/v1/gpunodestatuses")


def claim_pod(name, script, **annotations):
    """A pod that asks for nothing itself, with an init container that does the same as the other."""
    pod = gpu_pod(name, script)
    (container,) = pod["spec"]["containers"]
    del container["resources"]
    pod["spec"]["initContainers"] = [container | {"name": "first"}]
    pod["metadata"]["annotations"] = {f"gpu.scheduling/{key}": value for key, value in annotations.items()}
    return pod


def a_claim(name, *ids, **devices):
    wanted = {"count": len(ids), "policy": "preferIds", "preferIds": list(ids), **devices}
    return {
        "apiVersion": "gpu.scheduling/v1",
        "kind": "GpuClaim",
        "metadata": {"name": name},
        "spec": {"devices": wanted},
    }


def uuids(api, *ids):
    cards = read_node(api.get("/api/v1/nodes/node-a"), load_catalogue()).node.devices
    return [card.uuid for one in ids for card in cards if card.index == one]


def assert_sees(api, pods, name, *ids):
    assert wait_for(pods, name, has_ended)["status"]["phase"] == "Succeeded"
    for container in ("first", "main"):
        seen = json.loads(pods.get(f"{name}/log", container=container))
        assert seen == [uuids(api, *ids)] * 2


def test_a_node_counts_the_containers_that_may_hold_claims(api):
    status = api.get("/api/v1/nodes/node-a")["status"]
    assert int(status["capacity"][CLAIM]) == int(status["allocatable"][CLAIM]) >= 110


def test_every_container_of_a_claim_sees_its_cards_alone(api, pods, claims):
    claims.create(a_claim("late", 2, 3))
    pods.create(claim_pod("late", LOOK, claim="late"))
    assert_sees(api, pods, "late", 2, 3)


def test_a_pod_that_is_pinned_to_cards_sees_those_though_its_ids_mean_others_in_it(api, pods):
    pods.create(claim_pod("pinned", LOOK, allocated="node-a:2,3"))
    assert_sees(api, pods, "pinned", 2, 3)


def test_a_count_beside_a_claim_gives_no_further_card(api, pods, claims):
    claims.create(a_claim("counted", 0, 1))
    pod = gpu_pod("counted", f"cat /etc/tessera/nvidia/limits; {FOREVER}", cards=1, memory_mib=2000)
    pod["metadata"]["annotations"] = {CLAIM: "counted"}
    pods.create(pod)
    wait_for(pods, "counted", is_running)
    limits = eventually(lambda: [line for line in pods.get("counted/log").splitlines() if line.startswith("card ")])
    assert limits == [f"card {uuid} memory_mib 2000 cores_percent 100" for uuid in uuids(api, 0, 1)]


def test_the_status_of_a_node_is_as_the_guide_shows_it(pods, statuses):
    """The guide has two islands of different bandwidth, an unhealthy card, and a pod on some."""
    pods.create(claim_pod("holding", FOREVER, allocated="node-a:4"))
    uid = wait_for(pods, "holding", lambda pod: pod["spec"].get("nodeName"))["metadata"]["uid"]
    devices = eventually(lambda: _with_user(statuses.get("node-a")["status"]["devices"], 4, uid)) or []
    assert [device["id"] for device in devices] == list(range(8))
    assert [device["health"] for device in devices] == ["Healthy"] * 7 + ["Unhealthy"]
    assert [device["bandwidthGBps"] for device in devices] == [600] * 4 + [64] * 3 + [0]
    assert [device["island"] for device in devices] == ["nvlink-group-0"] * 4 + ["nvlink-group-1"] * 4
    pods.delete("holding")
    eventually(lambda: _with_user(statuses.get("node-a")["status"]["devices"], 4))


def _with_user(devices, index, *uids):
    return devices if devices[index]["inUseBy"] == list(uids) else None
