"""Cards in the region: parts of cards under names of their own, and more cards than it has room for."""

import pytest

from tessera.node.regions import MOST_CARDS as CARDS
from tessera.vendors.loading import load_catalogue
from tessera.vendors.simulated import parse_plan, simulate
from tessera.vendors.simulated_driver import write_cards
from tests.native.machines import CONTEXT_MIB, Container, Machine, region_at

LIMIT_MIB = 1_000
ROOM_MIB = LIMIT_MIB - CONTEXT_MIB
OUT_OF_MEMORY = 2


def test_a_part_of_a_card_has_its_own_limit_under_its_own_name(container):
    machine = container.machine
    cards = machine.directory / "cards"
    cards.write_text(cards.read_text().replace("GPU-", "MIG-"))
    part, other = (uuid.replace("GPU-", "MIG-") for uuid in machine.uuids[:2])
    container.write(f"version 1\ncard {part} memory_mib {LIMIT_MIB}\ncard {other} memory_mib 500\n")
    script = """
import pynvml as n
from tests.native.looking import *
n.nvmlInit()
cuda.init()
memory = n.nvmlDeviceGetMemoryInfo(n.nvmlDeviceGetHandleByIndex(0))
print(memory.total // MIB, cuda.memory_mib(0), cuda.memory_mib(1))
"""
    assert container.run(script) == f"{LIMIT_MIB} {LIMIT_MIB} 500"
    assert container.filled_mib(10) == ROOM_MIB
    assert len(region_at(container.directory / "region").cards) == 2, "each is known under one name only"


@pytest.fixture
def crowded(tmp_path):
    """More cards than a region can have."""
    devices = simulate("here", parse_plan(f"{CARDS + 8}xT4"), load_catalogue()).devices
    write_cards(tmp_path / "sim", devices, context_mib=CONTEXT_MIB)
    container = Container(Machine(tmp_path / "sim", [device.uuid for device in devices]), tmp_path)
    container.limit(*[LIMIT_MIB] * len(devices))
    return container


def test_a_card_for_which_the_region_has_no_room_keeps_its_limit_in_each_process(crowded):
    last = CARDS + 7
    script = f"""
from tests.native.taking import *
assert cuda.init() == 0
totals = {{cuda.memory_mib(device) for device in range(cuda.count())}}
assert cuda.enter({last}) == 0
print(*totals, cuda.free_mib(), fill("alloc", 10 * MIB)[0] * 10, alloc(10 * MIB)[0], cuda.free_mib())
"""
    complaint, said = crowded.run(script).splitlines()
    assert said.split() == [str(LIMIT_MIB), str(ROOM_MIB), str(ROOM_MIB), str(OUT_OF_MEMORY), "0"]
    uuid = crowded.machine.uuids[CARDS]
    assert complaint == (
        f"tessera: {uuid} is one card more than {CARDS} can be shared; its limit holds for each process alone"
    )


def test_a_child_of_such_a_process_starts_with_nothing(crowded):
    last = CARDS + 7
    script = f"""
import os
from tests.native.taking import *
def begin():
    assert cuda.init() == 0
    for device in range(cuda.count()): cuda.memory_mib(device)
    assert cuda.enter({last}) == 0
begin()
assert alloc(500 * MIB)[0] == 0
child = os.fork()
if child == 0:
    begin()
    print(cuda.free_mib(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    assert crowded.run(script).splitlines()[-1] == str(ROOM_MIB)
