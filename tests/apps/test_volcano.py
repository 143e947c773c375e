"""A scheduler that asks as Volcano does and binds by itself. Not the real one, which was never asked."""

import json

from tests.apps.conftest import Bed, Document, eventually, fetch
from tests.scheduler.conftest import a_pod
from tests.scheduler.extender_process import ExtenderProcess

NODES = [{"Name": "gpu-0000"}, {"Name": "gpu-0001"}]
ALLOCATED = "hami.io/vgpu-devices-allocated"


def test_a_pod_that_volcano_binds_gets_the_cards_that_were_held_for_it(bed: Bed):
    extender = bed.start_extender()
    extender.wait_until_ok("/readyz")
    bed.create(a_pod("task", memory=1000, schedulerName="volcano"))
    pod = bed.pod("task")
    for node in NODES:
        assert extender.post("volcano/predicate", {"task": {"Pod": pod}, "node": node}) == {"status": "", "code": 0}
    scores = extender.post("volcano/prioritize", {"task": {"Pod": pod}, "nodes": NODES})["nodeScore"]
    best = max(scores, key=lambda name: scores[name])
    extender.post("volcano/allocateFunc", {"task": {"Pod": pod, "NodeName": best}})
    (held,) = [holding for holding in holdings(extender) if holding["uid"] == pod["metadata"]["uid"]]
    assert held["state"] == "reserved"
    bind(bed, pod, best)
    eventually(lambda: ALLOCATED in bed.pod("task")["metadata"].get("annotations", {}), "the pod has its cards")
    assert held["cards"][0]["uuid"] in bed.pod("task")["metadata"]["annotations"][ALLOCATED]


def holdings(extender: ExtenderProcess) -> list[Document]:
    return json.loads(fetch(f"{extender.url}/ledger")[1])["holdings"]


def bind(bed: Bed, pod: Document, node: str) -> None:
    """Without a word about cards."""
    metadata = {name: pod["metadata"][name] for name in ("name", "namespace", "uid")}
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}/binding"
    bed.cluster.kubectl("create", "--raw", path, "-f", "-", input=json.dumps(binding))
