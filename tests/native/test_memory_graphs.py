"""Memory of graphs stays within the limit too: recorded or added as nodes, it counts when a launch takes it."""

import pytest

from tests.native.machines import CONTEXT_MIB, end, first_lines

LIMIT_MIB = 2_000
ROOM_MIB = LIMIT_MIB - CONTEXT_MIB
INVALID_VALUE, OUT_OF_MEMORY = 1, 2
BEGIN = """from tests.native.taking import *
from tests.native.graphs import *
assert cuda.init() == 0
assert cuda.enter() == 0
"""


@pytest.fixture
def container(container):
    container.limit(LIMIT_MIB)
    return container


def test_an_upload_may_take_no_more_than_a_launch(container):
    script = f"""{BEGIN}
graph = ready(recorded([416]))
print(upload(ready(recorded([992, 800]))), upload(graph), launch(graph), cuda.free_mib())
"""
    assert container.run(script).split() == [str(OUT_OF_MEMORY), "0", "0", str(ROOM_MIB - 416)]


@pytest.mark.parametrize("suffix", ["", "_ptsz"])
def test_an_upload_that_comes_with_a_graph_may_take_no_more_than_another(container, suffix):
    script = f"""{BEGIN}
for mib in ([992, 800], [416]):
    print(uploaded(recorded(mib), {suffix!r}), cuda.free_mib())
"""
    assert container.run(script).split() == [str(OUT_OF_MEMORY), str(ROOM_MIB), "0", str(ROOM_MIB - 416)]


def test_who_gives_no_place_for_the_graph_gets_the_drivers_answer(container):
    script = f"""{BEGIN}
wish = Readying(flags=UPLOAD_TOO)
print(lib.cuGraphInstantiateWithParams(None, recorded([416]), ctypes.byref(wish)), wish.flags)
"""
    assert container.run(script) == f"{INVALID_VALUE} 2"


def test_a_graph_in_a_graph_takes_nothing_while_it_is_recorded(container):
    script = f"""{BEGIN}
graph = ready(recorded([416]))
fill("alloc", 50 * MIB)
print(launch_recorded(graph), launch(graph))
"""
    assert container.run(script).split() == ["0", str(OUT_OF_MEMORY)]


@pytest.mark.parametrize("made", ["recorded([416], frees=True)", "recorded([416]), FREE_AT_LAUNCH"])
def test_a_graph_that_has_its_memory_runs_again_and_again_although_nothing_is_left(container, made):
    script = f"""{BEGIN}
graph = ready({made})
print(launch(graph), *fill("alloc", {ROOM_MIB - 416} * MIB)[2:], launch(graph), launch(graph), cuda.free_mib())
"""
    assert container.run(script).split() == ["0", str(OUT_OF_MEMORY), "0", "0", "0"]


def test_memory_of_a_graph_that_was_freed_outside_of_it_comes_back(container):
    script = f"""{BEGIN}
graph = recorded([416])
assert launch(ready(graph)) == 0
assert not any(lib.cuMemFreeAsync(pointer, None) for pointer in pointers)
assert trim() == 0
print(cuda.free_mib())
"""
    assert container.run(script) == str(ROOM_MIB)


def test_a_graph_without_memory_is_none_of_this(container):
    assert container.run(f"{BEGIN}fill('alloc', 50 * MIB)\nprint(launch(ready(recorded([]))))") == "0"


@pytest.mark.parametrize("made", ["recorded", "recorded_from_pool", "recorded_of_thread", "added"])
def test_a_graph_with_more_memory_than_is_left_is_refused_when_it_would_take_it(container, made):
    script = f"""{BEGIN}
small, large = ready({made}([96, 416])), ready({made}([992, 416]))
print(launch(small), cuda.free_mib(), launch(large), cuda.free_mib(), alloc({ROOM_MIB - 512} * MIB)[0], flush=True)
input()
"""
    with container.start(script) as program:
        said = first_lines([program])[0].split()
        held = container.machine.held_mib()
        end([program])
    free = str(ROOM_MIB - 512)
    assert said == ["0", free, str(OUT_OF_MEMORY), free, "0"]
    assert held <= LIMIT_MIB


def test_a_graph_needs_no_more_than_it_has_at_once(container):
    """What would not fit together fits one after the other."""
    script = f"""{BEGIN}
print(launch(ready(recorded_in_turn([992] * 4))), cuda.free_mib(), launch(ready(recorded_in_turn([{ROOM_MIB + 2}]))))
"""
    assert container.run(script).split() == ["0", str(ROOM_MIB - 992), str(OUT_OF_MEMORY)]


def test_recording_goes_on_where_nothing_is_left(container):
    """Nothing is taken yet. Whoever gives something back in between can launch it."""
    script = f"""{BEGIN}
_, backs, _ = fill("alloc", 50 * MIB)
graph = ready(recorded([416]))
print(launch(graph), alloc(2 * MIB)[0])
assert not any(back() for back in backs)
print(launch(graph), cuda.free_mib())
"""
    assert container.run(script).split() == [str(OUT_OF_MEMORY), str(OUT_OF_MEMORY), "0", str(ROOM_MIB - 416)]


def test_what_graphs_keep_is_let_go_of_when_it_is_trimmed_or_others_need_it(container):
    script = f"""{BEGIN}
graph = ready(recorded([416], frees=True))
assert launch(graph) == 0
print(cuda.free_mib(), trim(), cuda.free_mib())
assert launch(graph) == 0
print(cuda.free_mib(), alloc({ROOM_MIB} * MIB)[0], launch(graph))
"""
    said = container.run(script).split()
    kept = str(ROOM_MIB - 416)
    assert said == [kept, "0", str(ROOM_MIB), kept, "0", str(OUT_OF_MEMORY)]


def test_graphs_of_processes_share_one_limit_and_the_dead_have_none(container):
    hold = f"{BEGIN}print(launch(ready(recorded([992]))), flush=True)\ninput()"
    script = f"{BEGIN}print(launch(ready(recorded([{ROOM_MIB - CONTEXT_MIB - 896}]))))"
    with container.start(hold) as program:
        assert first_lines([program]) == ["0"]
        assert container.run(script) == str(OUT_OF_MEMORY)
        end([program])
    assert container.run(script) == "0"
