"""Where the limit comes from: the tile's file, re-read when it changes, or HAMi's variables; never none by mistake."""

import os
import shutil
import time

import pytest

from tests.native.machines import CONTEXT_MIB, LIBRARIES, PATIENCE_S, end, first_lines

OUT_OF_MEMORY = 2
TOTAL = "cuda.init(); print(cuda.memory_mib(0))"
TOTALS = "cuda.init(); print(*(cuda.memory_mib(device) for device in range(cuda.count())))"
CARD_MIB = 15_360


def test_a_limit_that_is_raised_and_lowered_holds_without_a_restart(container):
    container.limit(1_000)
    follow = """
alloc(500)
while (line := input()) != "end":
    code, pointer = cuda.take(int(line) * MIB)
    if code == 0: cuda.give_back(pointer)
    print(code, cuda.free_mib(), flush=True)
"""

    def ask(mib: int) -> list[int]:
        print(mib, file=program.stdin, flush=True)
        return [int(word) for word in first_lines([program])[0].split()]

    def await_answer(mib: int, answer: list[int]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while (said := ask(mib)) != answer:
            assert time.monotonic() < deadline, said

    with container.start(follow) as program:
        assert ask(400) == [OUT_OF_MEMORY, 1_000 - CONTEXT_MIB - 500]
        container.limit(2_000)
        await_answer(400, [0, 2_000 - CONTEXT_MIB - 500])
        container.limit(600)
        await_answer(2, [OUT_OF_MEMORY, 0])
        end([program])


@pytest.mark.parametrize(
    ("variables", "totals"),
    [
        ({"CUDA_DEVICE_MEMORY_LIMIT_0": "3000m", "CUDA_DEVICE_MEMORY_LIMIT_1": "2g"}, (3_000, 2_048, CARD_MIB)),
        ({"CUDA_DEVICE_MEMORY_LIMIT": "1048576K"}, (1_024, 1_024, 1_024)),
        ({"CUDA_DEVICE_MEMORY_LIMIT": "1g", "CUDA_DEVICE_MEMORY_LIMIT_2": "2147483648"}, (1_024, 1_024, 2_048)),
        ({"CUDA_DEVICE_MEMORY_LIMIT_0": "0"}, (CARD_MIB, CARD_MIB, CARD_MIB)),
        ({}, (CARD_MIB, CARD_MIB, CARD_MIB)),
    ],
)
def test_without_a_tile_the_variables_of_hami_count(container, variables, totals):
    said = container.run(TOTALS, NVIDIA_VISIBLE_DEVICES="0,1,2", **variables)
    assert tuple(map(int, said.split())) == totals


def test_a_variable_means_the_card_at_that_place_of_the_container_whatever_the_process_chooses(container):
    said = container.run(TOTALS, CUDA_VISIBLE_DEVICES="2,0", CUDA_DEVICE_MEMORY_LIMIT_2="1g")
    assert said == f"1024 {CARD_MIB}"


def test_the_file_of_the_tile_counts_before_variables(container):
    container.limit(5_000)
    assert container.run(TOTAL, CUDA_DEVICE_MEMORY_LIMIT_0="1g") == "5000"


@pytest.mark.parametrize("garbage", ["8q", "-1", "", "12 g", "lots", "99999999999999999999g"])
def test_a_variable_that_cannot_be_read_is_the_strictest_known_limit_and_is_said_once(container, garbage):
    said = container.run(
        TOTALS, NVIDIA_VISIBLE_DEVICES="0,1", CUDA_DEVICE_MEMORY_LIMIT_0=garbage, CUDA_DEVICE_MEMORY_LIMIT_1="2g"
    )
    line, totals = said.splitlines()
    assert totals == "2048 2048"
    assert f"CUDA_DEVICE_MEMORY_LIMIT_0: {garbage or 'nothing'}, expected a number of bytes such as 8g" in line


@pytest.mark.parametrize("garbage", ["x", "-5", "9999999999999999999", ""])
def test_a_figure_of_the_file_that_cannot_be_read_is_the_strictest_known_limit(container, garbage):
    container.limit(garbage, 3_000, 4_000)
    line, totals = container.run(TOTALS, NVIDIA_VISIBLE_DEVICES="0,1,2").splitlines()
    assert totals == "3000 3000 4000"
    assert f"{container.limits}: {container.machine.uuids[0]}, expected memory_mib and a whole number" in line


def test_a_file_that_is_no_tile_grants_nothing_when_no_limit_is_known(container):
    container.write("\x00\x01 garbage\n")
    line, said = container.run("print(cuda.init(), cuda.enter())").splitlines()
    assert said == f"0 {OUT_OF_MEMORY}"
    assert "the strictest known limit holds" in line


WHOLE = "version 1\ntile 1234\ncard {uuid} memory_mib 1000 cores_percent 30\n"
CUTS = (
    "version 1",
    "version 1\n",
    "tile 1234\n",
    "card ",
    "card {uuid_of_35}",
    "{uuid}",
    "memory",
    "memory_mib ",
    "cores_p",
)


@pytest.mark.parametrize("last", CUTS)
def test_a_file_that_is_cut_off_gives_no_more_than_was_known_before(container, last):
    uuid = container.machine.uuids[0]
    whole, end_of_cut = WHOLE.format(uuid=uuid), last.format(uuid=uuid, uuid_of_35=uuid[:35])
    container.write(whole)
    follow = "alloc(100)\nwhile input() != 'end': print(cuda.memory_mib(0), cuda.take(2_000 * MIB)[0], flush=True)"
    with container.start(follow) as program:

        def ask() -> str:
            print(file=program.stdin, flush=True)
            return program.stdout.readline()

        assert ask() == f"1000 {OUT_OF_MEMORY}\n"
        container.write(whole[: whole.index(end_of_cut) + len(end_of_cut)])
        said, deadline = {ask()}, time.monotonic() + PATIENCE_S
        while not any(line.startswith("tessera:") for line in said) and time.monotonic() < deadline:
            said.add(ask())
        said |= {ask(), ask()}
        end([program])
    (complaint,) = (line for line in said if line.startswith("tessera:"))
    assert "the strictest known limit holds" in complaint
    assert said - {complaint} == {f"1000 {OUT_OF_MEMORY}\n"}


@pytest.mark.parametrize("last", ["version 1\n", "card {uuid_of_35}"])
def test_a_file_that_is_cut_off_from_the_beginning_grants_nothing(container, last):
    uuid = container.machine.uuids[0]
    whole, end_of_cut = WHOLE.format(uuid=uuid), last.format(uuid_of_35=uuid[:35])
    container.write(whole[: whole.index(end_of_cut) + len(end_of_cut)])
    line, said = container.run("print(cuda.init(), cuda.enter())").splitlines()
    assert said == f"0 {OUT_OF_MEMORY}"
    assert "the strictest known limit holds" in line


def test_a_file_that_cannot_be_read_is_said_and_grants_nothing(container):
    container.limits.mkdir()
    line, said = container.run("print(cuda.init(), cuda.enter())").splitlines()
    assert said == f"0 {OUT_OF_MEMORY}"
    assert line.startswith(f"tessera: {container.limits}: Is a directory, expected a file that can be read")


def test_a_pipe_in_the_place_of_the_file_holds_nobody_up_and_grants_nothing(container):
    os.mkfifo(container.limits)
    assert container.run("print(cuda.init(), cuda.enter())").splitlines()[-1] == f"0 {OUT_OF_MEMORY}"


def test_a_forked_child_reads_the_limits_for_itself(container):
    """Its parent may have been about to."""
    container.limit(2_000)
    script = """
import os
print(cuda.init(), cuda.memory_mib(0), flush=True)
input()
if os.fork() == 0:
    print(cuda.init(), cuda.memory_mib(0), flush=True)
    os._exit(0)
os.wait()
"""
    with container.start(script) as program:
        assert first_lines([program]) == ["0 2000"]
        before = container.limits.stat()
        with container.limits.open("r+") as limits:
            text = limits.read().replace("2000", "1000")
            limits.seek(0)
            limits.write(text)
        os.utime(container.limits, ns=(before.st_atime_ns, before.st_mtime_ns))
        said, _ = program.communicate("\n", timeout=PATIENCE_S)
    assert said.strip() == "0 1000"


def test_a_file_that_can_be_read_again_counts_again(container):
    """As when a program has used up its files for a moment."""
    container.limit(1_000)
    script = """
import os, resource
cuda.init()
most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir('/proc/self/fd')) - 1, most[1]))
print(cuda.memory_mib(0))
resource.setrlimit(resource.RLIMIT_NOFILE, most)
while not cuda.memory_mib(0): pass
print(cuda.memory_mib(0))
"""
    said = container.run(script).splitlines()
    assert [line for line in said if not line.startswith("tessera:")] == ["0", "1000"]
    assert any("Too many open files" in line for line in said)


def without_nvml(container) -> dict[str, str]:
    """As a container has its driver that asked for `compute` alone."""
    alone = container.directory / "driver"
    alone.mkdir()
    shutil.copy(LIBRARIES / "libcuda.so.1", alone)
    return {"LD_LIBRARY_PATH": str(alone)}


@pytest.mark.parametrize(
    ("variables", "totals"),
    [
        ({"CUDA_DEVICE_MEMORY_LIMIT_0": "1g"}, "1024 1024"),
        ({"CUDA_DEVICE_MEMORY_LIMIT_0": "2g", "CUDA_DEVICE_MEMORY_LIMIT_1": "1g"}, "1024 1024"),
        ({"CUDA_DEVICE_MEMORY_LIMIT": "3g", "CUDA_DEVICE_MEMORY_LIMIT_1": "0"}, "3072 3072"),
    ],
)
def test_where_nobody_tells_which_card_is_which_the_strictest_variable_counts_for_all(container, variables, totals):
    driver = without_nvml(container)
    assert container.run(TOTALS, NVIDIA_VISIBLE_DEVICES="0,1", **driver, **variables) == totals


def test_each_variable_that_cannot_be_read_is_said(container):
    said = container.run(TOTAL, CUDA_DEVICE_MEMORY_LIMIT="lots", CUDA_DEVICE_SM_LIMIT="half").splitlines()
    assert [line.split(": ")[1] for line in said[:-1]] == ["CUDA_DEVICE_MEMORY_LIMIT", "CUDA_DEVICE_SM_LIMIT"]


def test_words_of_a_later_release_are_passed_over(container):
    uuid = container.machine.uuids[0]
    container.write(f"version 2\nfuture 1 2 3\ncard {uuid} colour red memory_mib 1234 cores_percent 10 more 5\n")
    assert container.run(TOTAL) == "1234"


@pytest.mark.parametrize(
    ("chosen", "cards"),
    [("2,3", [2, 3]), ("3,2", [3, 2]), ("3", [3]), ("0,1", [2, 3]), ("1", [3]), ("3,2,-1", [3, 2])],
)
def test_numbers_of_the_host_mean_the_cards_that_the_container_has_of_them(container, chosen, cards):
    uuids = container.machine.uuids
    container.limit(1_000, 2_000, 3_000, 4_000)
    said = container.run(
        "print(cuda.init(), *cuda.uuids()); print(*(cuda.memory_mib(device) for device in range(cuda.count())))",
        NVIDIA_VISIBLE_DEVICES=f"{uuids[2]},{uuids[3]}",
        CUDA_VISIBLE_DEVICES=chosen,
    )
    found, totals = said.splitlines()
    assert found.split() == ["0", *(uuids[card] for card in cards)]
    assert totals.split() == [str(1_000 * (card + 1)) for card in cards]


@pytest.mark.parametrize("chosen", ["2,7", "4294967298"])
def test_a_number_that_no_card_has_stays_the_drivers_to_judge(container, chosen):
    assert container.run("print(cuda.init())", NVIDIA_VISIBLE_DEVICES="2,3", CUDA_VISIBLE_DEVICES=chosen) == "100"
