import json
from pathlib import Path
from typing import Any

import pytest

from tessera.errors import InvalidTrace
from tessera.simulation.dump import read_dump
from tessera.simulation.replay import run


def a_node(name: str = "gpu-01") -> dict[str, Any]:
    register = "".join(f"GPU-{name}-{card},10,16384,100,NVIDIA-Tesla T4,0,true:" for card in range(4))
    return {
        "kind": "Node",
        "metadata": {"name": name, "annotations": {"hami.io/node-nvidia-register": register}},
        "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}},
    }


def a_pod(name: str, phase: str = "Running", **limits: str) -> dict[str, Any]:
    resources = {f"nvidia.com/{key}": value for key, value in limits.items()}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"containers": [{"name": "main", "resources": {"limits": resources}}]},
        "status": {"phase": phase},
    }


def write(tmp_path: Path, *items: dict[str, Any]) -> Path:
    file = tmp_path / "dump.json"
    file.write_text(json.dumps({"kind": "List", "items": items}))
    return file


def test_a_dump_gives_nodes_cards_and_the_pods_that_have_not_ended(tmp_path: Path) -> None:
    half, whole, ended = a_pod("half", gpumem="8192"), a_pod("whole", gpu="2"), a_pod("ended", "Succeeded", gpu="1")
    scenario = read_dump(write(tmp_path, a_node(), half, whole, ended, {"kind": "Service"}))

    assert scenario.capacity_milli == 4000
    assert [(pod.name, pod.milli) for pod in scenario.pods] == [("default/half", 500), ("default/whole", 2000)]


def test_a_dump_can_be_replayed(tmp_path: Path) -> None:
    scenario = read_dump(write(tmp_path, a_node("a"), a_node("b"), a_pod("half", gpumem="8192"), a_pod("one", gpu="1")))

    assert run(scenario, policy="defrag", seed=42).curve[130] > 90


def test_a_card_without_memory_or_cores_is_left_out(tmp_path: Path) -> None:
    node = a_node()
    node["metadata"]["annotations"] = {
        "hami.io/node-nvidia-register": "A,10,0,100,T4,0,true:B,10,16384,0,T4,0,true:C,10,16384,100,T4,0,true:"
    }
    scenario = read_dump(write(tmp_path, node, a_pod("half", gpumem="8192")))

    assert [card.uuid for card in scenario.nodes[0].devices] == ["C"]
    assert scenario.pods[0].milli == 500


def test_a_node_that_is_listed_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidTrace, match='the node "a" is listed twice, expected each name once'):
        read_dump(write(tmp_path, a_node("a"), a_node("b"), a_node("a"), a_pod("one", gpu="1")))


def test_what_could_not_be_read_of_a_node_is_noted(tmp_path: Path) -> None:
    node = a_node()
    node["metadata"]["annotations"]["hami.io/node-nvidia-register"] += "GPU-x,10,much,100,T4,0,true:"
    scenario = read_dump(write(tmp_path, node, a_pod("one", gpu="1")))

    assert len(scenario.notes) == 1
    assert scenario.notes[0].startswith("node gpu-01: hami.io/node-nvidia-register")


def test_pods_that_no_node_could_ever_hold_are_noted_in_one_line(tmp_path: Path) -> None:
    large, many, fine = a_pod("large", gpumem="16385"), a_pod("many", gpu="5"), a_pod("fine", gpu="4")

    assert read_dump(write(tmp_path, a_node(), fine, many)).notes == (
        "default/many asks for cards that no node of the dump has",
    )
    assert read_dump(write(tmp_path, a_node(), fine, large, many)).notes == (
        "2 pods ask for cards that no node of the dump has, the first is default/large",
    )
    assert read_dump(write(tmp_path, a_node(), fine)).notes == ()


def test_a_pod_counts_with_its_peak_of_init_containers_and_the_others(tmp_path: Path) -> None:
    only_init, sidecar = a_pod("only-init"), a_pod("sidecar", gpu="1")
    cards = {"name": "i", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    only_init["spec"]["initContainers"] = [cards, cards]
    sidecar["spec"]["initContainers"] = [cards | {"restartPolicy": "Always"}, cards]
    scenario = read_dump(write(tmp_path, a_node(), only_init, sidecar))

    assert [pod.milli for pod in scenario.pods] == [2000, 4000]


@pytest.mark.parametrize(
    ("items", "sentence"),
    [
        ([a_pod("p", gpu="1")], "no node has registered a usable card; expected a register annotation"),
        ([a_node()], "no pod asks for a card"),
        ([a_node(), a_pod("p", gpu="1", gpumem="8Gi")], r"default/p: nvidia.com/gpumem is \"8Gi\", expected"),
    ],
)
def test_a_dump_that_cannot_be_replayed_gives_one_sentence(
    tmp_path: Path, items: list[dict[str, Any]], sentence: str
) -> None:
    with pytest.raises(InvalidTrace, match=sentence):
        read_dump(write(tmp_path, *items))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"items": 3}', '{"items": [1]}', "not json"])
def test_what_is_not_a_dump_gives_one_sentence(tmp_path: Path, text: str) -> None:
    file = tmp_path / "dump.json"
    file.write_text(text)

    with pytest.raises(InvalidTrace, match="expected what kubectl get nodes,pods -A -o json prints"):
        read_dump(file)


def test_a_dump_that_is_not_there_gives_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidTrace, match="cannot be read: No such file or directory"):
        read_dump(tmp_path / "missing.json")
