"""Whether a pod could ever be placed."""

import msgspec
import pytest

from tessera.model.nodes import NodeDocument
from tessera.operators.compute_fitting import can_never_be_placed
from tessera.vendors.loading import load_catalogue
from tests.unit.operators.compute_making import unplaced

CATALOGUE = load_catalogue()
REGISTER = "GPU-0,10,81920,100,NVIDIA-A100,0,true:"


def a_node(name: str = "node-a", *, cards: str = REGISTER, ready: str = "True", cordoned: bool = False) -> NodeDocument:
    host = {"cpu": "8", "memory": "64Gi", "pods": "110"}
    status = {"allocatable": host, "capacity": host, "conditions": [{"type": "Ready", "status": ready}]}
    metadata = {"name": name, "annotations": {"hami.io/node-nvidia-register": cards} if cards else {}}
    return msgspec.convert({"metadata": metadata, "spec": {"unschedulable": cordoned}, "status": status}, NodeDocument)


def asking(**resources: object):
    container = {"name": "server", "resources": {"limits": resources, "requests": resources}}
    return unplaced("no room", spec={"containers": [container]})


ONE = asking(**{"nvidia.com/gpu": 1})
TWO = asking(**{"nvidia.com/gpu": 2})
HUGE = asking(**{"nvidia.com/gpu": 1, "nvidia.com/gpumem": 90000})
MANY_CPUS = asking(cpu="9")


@pytest.mark.parametrize("pod", [TWO, HUGE, MANY_CPUS], ids=["cards", "memory of a card", "CPUs"])
def test_what_no_node_has_even_when_empty_can_never_be_placed(pod):
    assert can_never_be_placed(pod, [a_node()], CATALOGUE)


def test_what_only_waits_for_others_can_be_placed():
    assert not can_never_be_placed(ONE, [a_node()], CATALOGUE)


def test_one_node_that_would_do_is_enough():
    assert not can_never_be_placed(ONE, [a_node("node-b", cards=""), a_node()], CATALOGUE)


@pytest.mark.parametrize("node", [a_node(ready="False"), a_node(cordoned=True)], ids=["not ready", "cordoned"])
def test_a_node_that_is_out_of_use_may_come_back(node):
    assert not can_never_be_placed(ONE, [node], CATALOGUE)


def test_a_cluster_without_nodes_may_get_some():
    assert not can_never_be_placed(ONE, [], CATALOGUE)


def test_a_node_that_cannot_be_read_may_still_do():
    assert not can_never_be_placed(asking(**{"nvidia.com/gpu": "some"}), [a_node()], CATALOGUE)
