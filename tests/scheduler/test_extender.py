"""kube-scheduler with our extender, on nodes that kwok keeps: 4 nodes of 8 cards with 81920 MiB each."""

import json
import subprocess
from typing import Any

from tests.scheduler.conftest import Scheduling, a_pod
from tests.scheduler.extender_process import TESSERA

CARDS = 32
A100 = 81_920


def test_a_burst_of_equal_pods_fills_every_card_and_no_bind_fails(scheduling: Scheduling):
    scheduling.create(*(a_pod(f"burst-{number}", memory=20_000) for number in range(4 * CARDS)))
    scheduling.wait_until_running(*(f"burst-{number}" for number in range(4 * CARDS)))
    assert list(scheduling.cards_in_use().values()) == [80_000] * CARDS
    failures = scheduling.cluster.kubectl("get", "events", "--field-selector", "reason=FailedScheduling", "-o", "name")
    assert "burst-" not in failures


def test_a_pod_that_waits_is_told_why_and_gets_a_card_that_is_freed(scheduling: Scheduling):
    scheduling.create(*(a_pod(f"whole-{number}", memory=A100) for number in range(CARDS)))
    scheduling.wait_until_running(*(f"whole-{number}" for number in range(CARDS)))
    scheduling.create(a_pod("waiting", memory=1))
    assert "4 no card has 1 MiB free, the roomiest has 0 MiB" in scheduling.wait_until_refused("waiting")
    scheduling.wait_until_parked()
    scheduling.cluster.kubectl("delete", "pod", "whole-7")
    scheduling.wait_until_running("waiting")


def test_a_card_that_is_well_again_wakes_the_pod_that_waited_for_it(scheduling: Scheduling):
    agents = scheduling.cluster.simulated.agents
    only = {"nvidia.com/use-gpuuuid": a_uuid(scheduling, "gpu-0002")}
    agents.set_health("gpu-0002", only["nvidia.com/use-gpuuuid"], healthy=False)
    wanted = a_pod("patient", memory=1000)
    wanted["metadata"]["annotations"] = only
    scheduling.create(wanted)
    scheduling.wait_until_refused("patient")
    scheduling.wait_until_parked()
    agents.set_health("gpu-0002", only["nvidia.com/use-gpuuuid"], healthy=True)
    scheduling.wait_until_running("patient")
    assert list(scheduling.cards_in_use()) == [("gpu-0002", only["nvidia.com/use-gpuuuid"])]


def test_a_preferred_node_is_still_preferred(scheduling: Scheduling):
    scheduling.create(a_pod("first", memory=1000))
    scheduling.wait_until_running("first")
    packed = pod(scheduling, "first")["spec"]["nodeName"]
    preferred = "gpu-0003" if packed != "gpu-0003" else "gpu-0001"
    scheduling.create(a_pod("choosy", memory=1000, affinity=preferring(preferred)), a_pod("plain", memory=1000))
    scheduling.wait_until_running("choosy", "plain")
    assert pod(scheduling, "choosy")["spec"]["nodeName"] == preferred
    assert pod(scheduling, "plain")["spec"]["nodeName"] == packed, "without a preference the policy packs"


def test_a_spread_that_a_pod_asks_for_is_kept(scheduling: Scheduling):
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "spread"}},
    }
    names = [f"spread-{number}" for number in range(4)]
    labels = {"app": "spread"}
    for name in names:
        scheduling.create(a_pod(name, memory=1000, labels=labels, topologySpreadConstraints=[spread]))
        scheduling.wait_until_running(name)
    assert len({pod(scheduling, name)["spec"]["nodeName"] for name in names}) == 4


def test_a_restarted_extender_knows_what_was_promised(scheduling: Scheduling):
    scheduling.create(*(a_pod(f"before-{number}", memory=60_000) for number in range(CARDS)))
    scheduling.wait_until_running(*(f"before-{number}" for number in range(CARDS)))
    scheduling.extender.stop()
    scheduling.create(
        *(a_pod(f"after-{number}", memory=20_000) for number in range(CARDS)), a_pod("late", memory=30_000)
    )
    scheduling.start_extender()
    scheduling.wait_until_running(*(f"after-{number}" for number in range(CARDS)))
    assert list(scheduling.cards_in_use().values()) == [80_000] * CARDS
    assert "nodeName" not in pod(scheduling, "late")["spec"]


def test_pods_of_others_are_scheduled_while_the_extender_is_down(scheduling: Scheduling):
    scheduling.extender.stop()
    plain = a_pod("plain", memory=0)
    plain["spec"]["containers"][0]["resources"] = {}
    scheduling.create(plain, a_pod("ours", memory=1000))
    scheduling.wait_until_running("plain")
    assert "nodeName" not in pod(scheduling, "ours")["spec"]
    scheduling.start_extender()
    scheduling.wait_until_running("ours")


def test_a_pod_that_cannot_be_read_says_so_on_itself(scheduling: Scheduling):
    odd = a_pod("odd", memory=1)
    odd["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"] = "8000Mi"
    scheduling.create(odd)
    assert 'nvidia.com/gpumem is "8000Mi", expected a whole number' in scheduling.wait_until_refused("odd")


def test_what_listens_already_is_told_in_a_sentence(scheduling: Scheduling):
    address = scheduling.address
    command = [*TESSERA, "run", "extender", "--kubeconfig", str(scheduling.cluster.kubeconfig), "--http", address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert f"tessera: {address} cannot be listened on: Address already in use" in done.stderr


def pod(scheduling: Scheduling, name: str) -> dict[str, Any]:
    return json.loads(scheduling.cluster.kubectl("get", "pod", name, "-o", "json"))


def a_uuid(scheduling: Scheduling, node: str) -> str:
    register = "jsonpath={.metadata.annotations.hami\\.io/node-nvidia-register}"
    return scheduling.cluster.kubectl("get", "node", node, "-o", register).partition(",")[0]


def preferring(node: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}}
