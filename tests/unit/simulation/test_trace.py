from pathlib import Path

import pytest

from tessera.errors import InvalidTrace
from tessera.simulation.trace import read_trace

Trace = tuple[Path, Path]


def test_a_trace_is_read_as_nodes_with_cards_and_pods_in_order_of_name(trace: Trace) -> None:
    scenario = read_trace(*trace)

    assert [(node.name, len(node.devices)) for node in scenario.nodes] == [("n-1", 2), ("n-0", 2), ("n-2", 4)]
    assert [(pod.name, pod.milli) for pod in scenario.pods] == [("p-0", 0), ("p-1", 500), ("p-2", 1000), ("p-3", 2000)]
    assert scenario.capacity_milli == 8_000


def test_a_share_is_as_much_memory_and_a_whole_card_takes_all_cores(trace: Trace) -> None:
    pods = {pod.name: pod.request for pod in read_trace(*trace).pods}
    half, whole = pods["p-1"].containers[0].devices[0], pods["p-2"].containers[0].devices[0]

    assert (half.memory_mib, half.cores_percent) == (500, 0)
    assert (whole.memory_mib, whole.cores_percent, whole.selector.use_types) == (1000, 100, ("B",))


def test_the_short_lists_without_optional_columns_are_read(trace: Trace) -> None:
    nodes, pods = trace
    pods.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np-0,1000,1024,1,810\n")

    assert read_trace(nodes, pods).pods[0].milli == 810


def test_parts_of_several_cards_are_read_too(trace: Trace) -> None:
    nodes, pods = trace
    pods.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np-0,1000,1024,2,500\n")
    pod = read_trace(nodes, pods).pods[0]

    assert pod.milli == 1000
    assert pod.request.containers[0].devices[0].count == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no column name, cpu_milli"),
        ("name,cpu_milli\np,1\n", "no column memory_mib, num_gpu, gpu_milli, expected name, cpu_milli"),
        ("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,1\n", "line 2: expected 5 values separated by commas"),
        ("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,1,9,9\n", "line 2: expected 5 values"),
        (
            "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,a lot,1,1,10\n",
            'line 2: cpu_milli is "a lot", expected a whole number from 0',
        ),
        ("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,-1,1,1,10\n", 'cpu_milli is "-1", expected a whole number'),
        ("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1.5,1,1,10\n", 'cpu_milli is "1.5", expected a whole'),
        (f"name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,{'9' * 50},1,1,10\n", "cpu_milli is "),
        ("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,1,1001\n", 'gpu_milli is "1001", expected'),
        ("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,1,0\n", "num_gpu is 1 and gpu_milli is 0, expected both"),
        ("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n,1,1,1,500\n", "name is empty, expected a name"),
        ("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n", "no pod asks for a card, expected at least one"),
        ('name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"p,1,1,1,500\n', "not CSV"),
        ('"name,cpu_milli,memory_mib\n', "not CSV"),
    ],
)
def test_a_broken_pod_list_gives_one_sentence(trace: Trace, text: str, sentence: str) -> None:
    nodes, pods = trace
    pods.write_text(text)

    with pytest.raises(InvalidTrace) as caught:
        read_trace(nodes, pods)

    assert str(caught.value).startswith(str(pods))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("n,1000,1024,2,A\nn,1000,1024,2,A\n", 'the node "n" is listed twice, expected each name once'),
        ("n,1000,1024,0,\n", "no node has a card, expected at least one"),
        ("n,1000,1024,500,A\n", 'gpu is "500", expected a whole number from 0 to 128'),
    ],
)
def test_a_broken_node_list_gives_one_sentence(trace: Trace, rows: str, sentence: str) -> None:
    nodes, pods = trace
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\n" + rows)

    with pytest.raises(InvalidTrace, match=sentence):
        read_trace(nodes, pods)


def test_a_file_that_is_not_there_or_not_text_gives_one_sentence(trace: Trace, tmp_path: Path) -> None:
    nodes, pods = trace
    with pytest.raises(InvalidTrace, match="cannot be read: No such file or directory; give the path of a CSV file"):
        read_trace(tmp_path / "missing.csv", pods)
    pods.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidTrace, match="is not UTF-8 text"):
        read_trace(nodes, pods)
