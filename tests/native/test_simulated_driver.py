"""The simulated driver behaves like one: cards are seen as the environment says, and their memory runs out."""

import signal
from contextlib import ExitStack

import pytest

from tests.native.machines import CONTEXT_MIB, PATIENCE_S, require_namespaces

CARD_MIB = 15_360
OUT_OF_MEMORY, NOT_INITIALIZED, NO_DEVICE, INVALID_DEVICE, INVALID_CONTEXT = 2, 3, 100, 101, 201
SEE = "print(cuda.init(), *cuda.uuids())"


def seen(machine, **environment):
    code, *uuids = machine.run(SEE, **environment).split()
    return int(code), uuids


def test_cards_have_names_uuids_and_the_size_of_their_model(machine):
    assert seen(machine) == (0, machine.uuids)
    said = machine.run("cuda.init(); print(cuda.name(3), cuda.attribute(75), cuda.attribute(76), cuda.attribute(16))")
    assert said == "Tesla T4 7 5 40"
    assert machine.run("cuda.init(); cuda.enter(); print(cuda.free_mib())") == str(CARD_MIB - CONTEXT_MIB)


@pytest.mark.parametrize(
    ("given", "cards"),
    [
        ("all", [0, 1, 2, 3]),
        ("2", [2]),
        ("{3},{1}", [1, 3]),
        ("3,{0},nothing", [0, 3]),
    ],
)
def test_a_container_has_the_cards_that_it_was_given(machine, given, cards):
    wanted = given.format(*machine.uuids)
    assert seen(machine, NVIDIA_VISIBLE_DEVICES=wanted) == (0, [machine.uuids[card] for card in cards])


@pytest.mark.parametrize("given", ["", "none", "void"])
def test_a_container_without_cards_has_no_device(machine, given):
    assert machine.run("print(cuda.init(), cuda.count())", NVIDIA_VISIBLE_DEVICES=given) == (
        f"{NO_DEVICE} -{NOT_INITIALIZED}"
    )


@pytest.mark.parametrize(
    ("chosen", "cards"),
    [
        ("3,1", [3, 1]),
        ("1,x,2", [1]),
        ("0,9,1", [0]),
        ("{2}", [2]),
        ("{2:.12},{0:.12}", [2, 0]),
    ],
)
def test_a_process_chooses_among_its_cards_in_its_own_order(machine, chosen, cards):
    wanted = chosen.format(*machine.uuids)
    assert seen(machine, CUDA_VISIBLE_DEVICES=wanted) == (0, [machine.uuids[card] for card in cards])


@pytest.mark.parametrize("chosen", ["", "-1", "NoDevFiles", "1,1", "GPU-"])
def test_a_choice_that_names_nothing_or_one_card_twice_leaves_none(machine, chosen):
    assert machine.run("print(cuda.init())", CUDA_VISIBLE_DEVICES=chosen) == str(NO_DEVICE)


def test_a_process_chooses_among_what_its_container_has(machine):
    given = ",".join(machine.uuids[2:])
    assert seen(machine, NVIDIA_VISIBLE_DEVICES=given, CUDA_VISIBLE_DEVICES="1") == (0, [machine.uuids[3]])
    assert machine.run("print(cuda.init())", NVIDIA_VISIBLE_DEVICES=given, CUDA_VISIBLE_DEVICES="2") == str(NO_DEVICE)


def test_memory_runs_out_and_comes_back(machine):
    said = machine.run(
        f"cuda.init(); cuda.enter(); code, first = cuda.take({CARD_MIB - CONTEXT_MIB - 2} * MIB)\n"
        "print(code, cuda.take(4 * MIB)[0], cuda.take(2 * MIB)[0], cuda.take(1)[0])\n"
        "print(cuda.give_back(first), cuda.give_back(first), cuda.take(4 * MIB)[0])"
    )
    assert said.split() == ["0", str(OUT_OF_MEMORY), "0", str(OUT_OF_MEMORY), "0", "1", "0"]


def test_a_card_is_shared_by_all_processes(machine, holding):
    holding(9_000)
    assert machine.run("print(alloc(9_000))") == str(OUT_OF_MEMORY)
    assert machine.run("print(alloc(5_000))") == "0"
    assert machine.run("print(alloc(9_000, device=1))") == "0", "another card is another card"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_whoever_dies_gives_everything_back(machine, holding, how):
    holder = holding(14_000)
    holder.send_signal(how)
    holder.wait(PATIENCE_S)
    assert machine.run("print(alloc(14_000))") == "0"


def test_processes_that_cannot_see_each_other_share_the_card_all_the_same(machine, holding):
    """As in containers, where each is process 1 of its own namespace."""
    require_namespaces()
    holder = holding(14_000)
    looking = "import os, subprocess, sys\nprint(subprocess.run(['unshare', '--pid', '--fork', sys.executable, '-c',"
    looking += " 'from tests.native.looking import *; print(alloc(14_000), end=\"\")'], stdout=subprocess.PIPE).stdout)"
    assert machine.run(looking) == f"b'{OUT_OF_MEMORY}'"
    holder.kill()
    holder.wait(PATIENCE_S)
    assert machine.run(looking) == "b'0'"


def test_a_forked_child_starts_anew_and_holds_nothing_of_its_parent(machine):
    script = """
import os, sys
assert alloc(10_000) == 0
child = os.fork()
if child == 0:
    print(cuda.count(), cuda.init() or cuda.enter() or cuda.take(4_000 * MIB)[0], cuda.take(1_000 * MIB)[0], flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(cuda.take(4_000 * MIB)[0])
"""
    assert machine.run(script).split() == [f"-{NOT_INITIALIZED}", "0", str(OUT_OF_MEMORY), "0"]


def test_a_child_that_outlives_its_parent_does_not_keep_its_memory(machine):
    outlive = "import os\nassert alloc(14_000) == 0\nif os.fork() == 0: print(input(), flush=True)\nos._exit(0)"
    with machine.start(outlive) as parent:
        parent.wait(PATIENCE_S)
        assert machine.run("print(alloc(14_000))") == "0"
        assert parent.communicate("the child lived\n", timeout=PATIENCE_S)[0] == "the child lived\n"


RACE = """
alloc(1)
rounds = over = 0
while rounds < 3_000:
    rounds += 1
    code, pointer = cuda.take(6_900 * MIB)
    over += cuda.free_mib() > 15_360
    cuda.give_back(pointer)
print(over)
"""


def test_those_who_race_for_the_last_memory_do_not_get_more_than_there_is(machine):
    """Two of them fit at a time. Where a third got in, less than nothing would be free."""
    with ExitStack() as stack:
        racing = [stack.enter_context(machine.start(RACE)) for _ in range(4)]
        assert [program.communicate(timeout=PATIENCE_S)[0] for program in racing] == ["0\n"] * 4


def test_what_is_copied_in_comes_out(machine):
    script = """
import ctypes
assert alloc(1) == 0
_, pointer = cuda.take(64)
into = ctypes.create_string_buffer(64)
to = ctypes.c_uint64(pointer)
print(cuda.library.cuMemcpyHtoD_v2(to, b"tessera" + bytes(57), ctypes.c_size_t(64)))
print(cuda.library.cuMemcpyDtoH_v2(into, to, ctypes.c_size_t(64)), into.value.decode())
print(cuda.library.cuMemcpyDtoH_v2(into, to, ctypes.c_size_t(65)))
"""
    assert machine.run(script).split() == ["0", "0", "tessera", "1"]


def test_lines_of_a_plane_are_copied_to_where_they_belong(machine):
    """Four bytes of each of two lines, from the second byte on, between memory whose lines are of different lengths."""
    script = """
import ctypes
assert alloc(1) == 0
_, pointer = cuda.take(64)
words = lambda *values: (ctypes.c_uint64 * len(values))(*values)
source, into = ctypes.create_string_buffer(b"abcdefghijklmnop", 16), ctypes.create_string_buffer(64)
in_source, on_card = (1, 0, 1, ctypes.addressof(source), 0, 0, 8), (0, 0, 4, 0, pointer, 0, 32)
print(cuda.library.cuMemcpy2D_v2(words(*in_source, *on_card, 4, 2)))
print(cuda.library.cuMemcpyDtoH_v2(into, ctypes.c_uint64(pointer), ctypes.c_size_t(64)))
print(into.raw[:4].decode(), into.raw[32:36].decode(), set(into.raw[4:32]))
print(cuda.library.cuMemcpy2D_v2(words(*in_source, *on_card, 4, 3)))
print(cuda.library.cuMemcpy2D_v2(words(*in_source, *on_card, 9, 2)))
"""
    assert machine.run(script).split() == ["0", "0", "bcde", "jklm", "{0}", "1", "1"]


def test_who_forgets_a_step_is_told_which(machine):
    script = "print(cuda.take(1)[0], cuda.init(), cuda.take(1)[0], cuda.enter(9), cuda.error_name(2))"
    wanted = f"{NOT_INITIALIZED} 0 {INVALID_CONTEXT} {INVALID_DEVICE} CUDA_ERROR_OUT_OF_MEMORY"
    assert machine.run(script) == wanted


def test_the_last_release_of_a_context_frees_what_was_allocated_in_it(machine):
    script = "assert alloc(10_000) == 0\nassert cuda.leave() == 0\ncuda.enter()\nprint(cuda.free_mib())"
    assert machine.run(script) == str(CARD_MIB - CONTEXT_MIB)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("GPU-1\tT4\n", "has a line that is no card"),
        ("GPU-1\tT4\t0\t300\t7.5\t40\t0\n", "has a line that is no card"),
        ("".join(f"GPU-{n}\tT4\t100\t0\t7.5\t40\t0\n" for n in range(65)), "has more cards than can be simulated"),
    ],
)
def test_a_description_that_cannot_be_read_is_said_in_a_sentence(machine, text, sentence):
    (machine.directory / "cards").write_text(text)
    assert sentence in machine.run("print(cuda.init())")


def test_without_a_directory_there_are_no_cards_and_a_sentence_says_so(machine):
    said = machine.run("import os; del os.environ['TESSERA_SIM']; print(cuda.init())")
    assert "TESSERA_SIM: is not set" in said
    assert said.endswith(str(NO_DEVICE))
