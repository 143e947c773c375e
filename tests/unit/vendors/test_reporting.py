"""What an agent reports is what a scheduler reads."""

from collections.abc import Iterable
from datetime import UTC, datetime

import pytest

from tessera.model.annotations.keys import INVENTORY
from tessera.model.devices import Link
from tessera.model.nodes import read_node
from tessera.vendors.loading import load_catalogue
from tessera.vendors.managers import Inventory
from tessera.vendors.reporting import report_alive, report_capacity, report_cards
from tessera.vendors.simulated import parse_plan, simulate

CATALOGUE = load_catalogue()
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def simulated(plan: str) -> Inventory:
    return simulate("gpu-07", parse_plan(plan), CATALOGUE)


def node_saying(annotations: dict[str, str], capacity: dict[str, str]) -> dict[str, object]:
    room = {"cpu": "64", "memory": "512Gi", "pods": "110", **capacity}
    metadata = {"name": "gpu-07", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"capacity": room, "allocatable": room}}


def _scores(links: Iterable[Link]) -> dict[frozenset[str], int]:
    return {frozenset((link.one, link.other)): link.score for link in links}


@pytest.mark.parametrize("plan", ["8xA100-SXM4-80GB", "4xMI300X", "8xAscend910B4", "2xA100-SXM4-80GB,1xMI300X"])
def test_a_report_is_read_back_as_the_same_cards(plan):
    inventory = simulated(plan)
    report = report_cards("gpu-07", inventory, CATALOGUE) | report_alive(inventory, CATALOGUE, NOON)
    reading = read_node(node_saying(report, report_capacity(inventory, CATALOGUE)), CATALOGUE)
    assert not reading.complaints
    assert reading.node.devices == inventory.devices


def test_links_are_reported_where_their_vendor_has_a_place_for_them():
    inventory = simulated("8xA100-SXM4-80GB")
    reading = read_node(node_saying(report_cards("gpu-07", inventory, CATALOGUE), {}), CATALOGUE)
    assert _scores(reading.node.links) == _scores(inventory.links)


def test_the_cards_are_reported_in_the_form_that_readers_of_their_vendor_expect():
    report = report_cards("gpu-07", simulated("1xA100-SXM4-80GB"), CATALOGUE)
    assert report["hami.io/node-nvidia-register"].endswith(",10,81920,100,NVIDIA A100-SXM4-80GB,0,true:")
    assert set(report) == {"hami.io/node-nvidia-register", INVENTORY}, "one card has no links"
    amd = report_cards("gpu-07", simulated("1xMI300X"), CATALOGUE)
    assert '"devcore":304' in amd["hami.io/node-amd-register"], "AMD's readers count compute units"


def test_a_handshake_is_one_for_each_vendor_that_has_cards_here():
    inventory = simulated("1xA100-SXM4-80GB,1xAscend910B4")
    assert report_alive(inventory, CATALOGUE, NOON) == {
        "hami.io/node-handshake-nvidia": "Reported 2026-11-15 12:00:00",
        "hami.io/node-handshake-Ascend910B4": "Reported 2026-11-15 12:00:00",
    }
    assert report_alive(Inventory(), CATALOGUE, NOON) == {}


def test_capacity_counts_the_shares_that_cards_can_be_cut_into():
    assert report_capacity(simulated("2xA100-SXM4-80GB"), CATALOGUE) == {"nvidia.com/gpu": "20"}
