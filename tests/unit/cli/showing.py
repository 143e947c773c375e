"""A small cluster as views, and how tables of it are compared with golden text."""

from pathlib import Path

from tessera.cli.table import Paper, Table, TablePrinter
from tessera.views.nodes import NodeView, view_nodes
from tessera.views.pods import PodView, view_pods
from tests.unit.views.making import (
    CATALOGUE,
    HANDSHAKE,
    NOW,
    a_node,
    a_pod,
    ago,
    an_agent_lease,
    held,
    unscheduled,
    uuids_of,
)

GOLDEN = Path(__file__).parent / "golden"
REFUSED = "0/3 nodes are available: 2 no card has 90000 MiB free, the roomiest has 81920 MiB, 1 the node is cordoned."


def golden(name: str) -> str:
    return (GOLDEN / f"{name}.txt").read_text()


def drawn(table: Table, *, width: int | None = None) -> str:
    return "".join(f"{line}\n" for line in TablePrinter(Paper(width)).lines(table))


def _cluster() -> tuple[tuple[NodeView, ...], tuple[PodView, ...]]:
    a = a_node("gpu-a", "2xA100-SXM4-80GB,1xT4")
    cordoned = uuids_of(a_node("gpu-b"))[0]
    b = a_node(
        "gpu-b",
        annotations={HANDSHAKE: f"Reported {ago(minutes=7)}", "hami.io/device-cordon": cordoned},
        spec={"unschedulable": True},
    )
    cpu = a_node("cpu", annotations={"tessera.io/inventory": "", "hami.io/node-nvidia-register": "", HANDSHAKE: ""})
    first, second, small = uuids_of(a)
    shared = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "40000", "nvidia.com/gpucores": "30"}
    pods = held(
        a_pod("half-1", limits=shared, node="gpu-a", cards={first: 40000}),
        a_pod("half-2", limits=shared, node="gpu-a", cards={first: 40000}),
        a_pod("small", namespace="infer", limits={"nvidia.com/gpu": "1"}, node="gpu-a", cards={small: 15360}),
        a_pod("lost", namespace="infer", node="gone", cards={second: 500}),
        a_pod(
            "too-much", limits={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "90000"}, conditions=unscheduled(REFUSED)
        ),
    )
    nodes = view_nodes((b, a, cpu), pods, [an_agent_lease("gpu-a"), an_agent_lease("gpu-b", minutes=7)], CATALOGUE, NOW)
    return nodes, view_pods(pods, (a, b, cpu), (), CATALOGUE)


NODES, PODS = _cluster()
