"""Whether a pod could ever be placed."""

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType

import msgspec
import pytest

from tessera.operators.compute_fitting import DatedNode, EmptyNodes, find_surveyed
from tessera.vendors.loading import load_catalogue
from tests.unit.operators.compute_making import NOW, unplaced

CATALOGUE = load_catalogue()
REGISTER = "GPU-0,10,81920,100,NVIDIA-A100,0,true:"


def a_node(
    name: str = "node-a",
    *,
    cards: str = REGISTER,
    ready: str = "True",
    cordoned: bool = False,
    minutes: int = 60,
    said: tuple[str, ...] = (),
    others: Mapping[str, str] = MappingProxyType({}),
) -> DatedNode:
    """That has been there for so long, of which an agent has `said` these conditions, and that lists `others` too."""
    host = {"cpu": "8", "memory": "64Gi", "pods": "110", **others}
    conditions = [{"type": "Ready", "status": ready}, *({"type": one, "status": "False"} for one in said)]
    status = {"allocatable": host, "capacity": host, "conditions": conditions}
    metadata = {"name": name, "annotations": {"hami.io/node-nvidia-register": cards} if cards else {}}
    metadata |= {"creationTimestamp": (NOW - timedelta(minutes=minutes)).isoformat()}
    return msgspec.convert({"metadata": metadata, "spec": {"unschedulable": cordoned}, "status": status}, DatedNode)


def can_never_be_placed(pod, nodes):
    return EmptyNodes(nodes, find_surveyed(nodes, CATALOGUE, NOW), CATALOGUE).can_never_hold(pod)


def asking(**resources: object):
    container = {"name": "server", "resources": {"limits": resources, "requests": resources}}
    words = ", ".join(f"1 Insufficient {key}" for key in resources)
    return unplaced(f"0/1 nodes are available: {words}.", spec={"containers": [container]})


ONE = asking(**{"nvidia.com/gpu": 1})
TWO = asking(**{"nvidia.com/gpu": 2})
HUGE = asking(**{"nvidia.com/gpu": 1, "nvidia.com/gpumem": 90000})
MANY_CPUS = asking(cpu="9")


@pytest.mark.parametrize("pod", [TWO, HUGE, MANY_CPUS], ids=["cards", "memory of a card", "CPUs"])
def test_what_no_node_has_even_when_empty_can_never_be_placed(pod):
    assert can_never_be_placed(pod, [a_node()])


def test_what_only_waits_for_others_can_be_placed():
    assert not can_never_be_placed(ONE, [a_node()])


def test_one_node_that_would_do_is_enough():
    assert not can_never_be_placed(ONE, [a_node("node-b", cards=""), a_node()])


@pytest.mark.parametrize("node", [a_node(ready="False"), a_node(cordoned=True)], ids=["not ready", "cordoned"])
def test_a_node_that_is_out_of_use_may_come_back(node):
    assert not can_never_be_placed(ONE, [node])


def test_a_cluster_without_nodes_may_get_some():
    assert not can_never_be_placed(ONE, [])


def test_a_node_that_cannot_be_read_may_still_do():
    assert not can_never_be_placed(asking(**{"nvidia.com/gpu": "some"}), [a_node()])


BARE = a_node("node-b", cards="")


@pytest.mark.parametrize(
    "nodes",
    [[BARE], [a_node(), a_node("node-b", cards="", minutes=5)]],
    ids=["nobody has told of any node", "the node has just come"],
)
def test_a_node_of_whose_cards_nobody_has_told_may_have_some(nodes):
    assert not can_never_be_placed(TWO, nodes)


@pytest.mark.parametrize(
    "nodes",
    [[a_node(), BARE], [a_node("node-b", cards="", said=("TesseraLimitsHeld",))]],
    ids=["agents tell of others", "its own agent has spoken"],
)
def test_a_node_has_no_cards_when_somebody_has_looked(nodes):
    assert can_never_be_placed(TWO, nodes)


def test_what_needs_no_cards_is_not_waited_for_by_any_agent():
    assert can_never_be_placed(MANY_CPUS, [BARE])


TYPO = asking(**{"nvidia.com/gpus": 1})
NETWORK_CARD = asking(**{"nvidia.com/gpu": 1, "rdma/hca": "1"})


@pytest.mark.parametrize("pod", [TYPO, NETWORK_CARD], ids=["a typing error", "somebody else's resource"])
@pytest.mark.parametrize("node", [a_node(), a_node(cordoned=True)], ids=["in use", "cordoned"])
def test_a_resource_that_no_node_lists_can_never_be_placed(pod, node):
    assert can_never_be_placed(pod, [node])
    assert can_never_be_placed(pod, [node, BARE])


@pytest.mark.parametrize("amount", ["1", "0"], ids=["there", "whose plugin is away"])
def test_a_resource_that_one_node_lists_may_be_placed(amount):
    listing = a_node("node-b", others={"rdma/hca": amount})
    assert not can_never_be_placed(NETWORK_CARD, [a_node(), listing])


@pytest.mark.parametrize(
    "nodes",
    [[BARE], [a_node(), a_node("node-b", cards="", minutes=5)]],
    ids=["nobody has told of any node", "the node has just come"],
)
def test_a_resource_of_others_may_still_come_to_a_node_that_is_not_known(nodes):
    assert not can_never_be_placed(TYPO, nodes)


def test_a_resource_that_no_node_lists_and_nobody_wants_any_of_hinders_nothing():
    assert not can_never_be_placed(asking(**{"rdma/hca": "0"}), [a_node()])


def test_a_resource_of_a_device_class_is_listed_by_no_node_and_may_be_placed():
    waiting = unplaced("0/1 nodes are available: 1 cannot allocate all claims.", spec=NETWORK_CARD.spec)
    assert not can_never_be_placed(waiting, [a_node()])


def test_each_node_may_have_a_reason_of_its_own():
    too_small = asking(**{"cpu": "9", "rdma/hca": "1"})
    assert can_never_be_placed(too_small, [a_node(), a_node("node-b", others={"rdma/hca": "1"})])
