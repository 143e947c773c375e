"""Memory of graphs stays within the limit too: recorded or added as nodes, it counts when a launch takes it."""

import pytest

from tests.native.machines import CONTEXT_MIB

LIMIT_MIB = 2_000
ROOM_MIB = LIMIT_MIB - CONTEXT_MIB
OUT_OF_MEMORY = 2
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
