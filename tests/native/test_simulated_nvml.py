"""NVML over simulated cards, asked by the official binding and by our own discovery."""

import pytest

from tests.native.machines import CONTEXT_MIB, PATIENCE_S

MIB = 1 << 20
BEGIN = "import pynvml as n\nn.nvmlInit()\nfirst = n.nvmlDeviceGetHandleByIndex(0)\n"


def test_cards_are_counted_named_and_found(machine):
    script = f"""{BEGIN}
last = n.nvmlDeviceGetHandleByUUID({machine.uuids[3]!r})
print(n.nvmlDeviceGetCount(), n.nvmlDeviceGetIndex(last), n.nvmlDeviceGetName(last), n.nvmlDeviceGetPciInfo(last).bus)
"""
    assert machine.run(script) == "4 3 Tesla T4 4"


def test_a_container_is_shown_its_own_cards_only(machine):
    script = f"{BEGIN}print(n.nvmlDeviceGetCount(), n.nvmlDeviceGetUUID(first))"
    assert machine.run(script, NVIDIA_VISIBLE_DEVICES="2", CUDA_VISIBLE_DEVICES="") == f"1 {machine.uuids[2]}"


def test_memory_and_processes_are_those_of_everybody(machine, holding):
    one, other = holding(1_000), holding(2_000)
    script = f"""{BEGIN}
memory, newer = n.nvmlDeviceGetMemoryInfo(first), n.nvmlDeviceGetMemoryInfo(first, version=n.nvmlMemory_v2)
print(memory.used // {MIB}, newer.used // {MIB}, (memory.free + memory.used) // {MIB})
for process in n.nvmlDeviceGetComputeRunningProcesses(first):
    print(process.pid, process.usedGpuMemory // {MIB})
"""
    used = 3_000 + 2 * CONTEXT_MIB
    processes = sorted(((one.pid, 1_000 + CONTEXT_MIB), (other.pid, 2_000 + CONTEXT_MIB)))
    lines = machine.run(script).splitlines()
    assert lines[0] == f"{used} {used} 15360"
    assert sorted(tuple(map(int, line.split())) for line in lines[1:]) == processes


def test_room_for_processes_that_is_none_is_refused(machine):
    script = f"{BEGIN}import ctypes\nlist_ = n._nvmlGetFunctionPointer('nvmlDeviceGetComputeRunningProcesses_v3')\n"
    assert machine.run(f"{script}print(list_(first, ctypes.byref(ctypes.c_uint(4)), None))") == "2"


def test_the_memory_of_the_dead_is_not_shown(machine, holding):
    holder = holding(5_000)
    holder.kill()
    holder.wait()
    assert machine.run(f"{BEGIN}print(n.nvmlDeviceGetMemoryInfo(first).used)") == "0"


def test_a_child_may_ask_what_its_parent_has_begun_to(machine, holding):
    holding(1_000)
    script = f"""{BEGIN}
import os
if os.fork() == 0:
    print(n.nvmlDeviceGetMemoryInfo(first).used // {MIB}, flush=True)
    os._exit(0)
print(os.wait()[1])
"""
    assert machine.run(script).split() == [str(1_000 + CONTEXT_MIB), "0"]


def test_our_own_discovery_finds_the_cards(machine):
    script = """
from tessera.vendors.nvml import NvmlBackend
for device in NvmlBackend(slots=10, assumed_memory_mib=0).read().devices:
    print(device.uuid, device.memory_mib, device.model)
"""
    assert machine.run(script).splitlines() == [f"{uuid} 15360 NVIDIA-Tesla T4" for uuid in machine.uuids]


def test_who_did_not_begin_is_told_so(machine):
    script = "import pynvml as n\ntry: n.nvmlDeviceGetCount()\nexcept n.NVMLError as error: print(error)"
    assert machine.run(script) == "Uninitialized"


SPIN = "from tests.native.computing import *\nbegin()\nlaunch(kernel(b'spin'), stream(), 600_000 * MS)\n"
HOLD = "import os\nprint('busy', flush=True)\ninput()\nos._exit(0)"


@pytest.fixture
def busy(machine):
    """A process whose kernel is on the first card."""
    with machine.start(SPIN + HOLD) as program:
        assert program.stdout.readline() == "busy\n"
        yield program
        program.kill()


def test_use_is_the_time_in_which_kernels_were_on_the_card(machine, busy, holding):
    holding(100)
    script = f"""{BEGIN}
def samples():
    return [(one.pid, one.smUtil) for one in n.nvmlDeviceGetProcessUtilization(first, 0)]

other = n.nvmlDeviceGetHandleByIndex(1)
while n.nvmlDeviceGetUtilizationRates(first).gpu < 100 or samples() != [({busy.pid}, 100)]:
    pass
print(n.nvmlDeviceGetUtilizationRates(other).gpu, len(n.nvmlDeviceGetComputeRunningProcesses(first)))
print(n.nvmlDeviceGetGraphicsRunningProcesses(first))
"""
    assert machine.run(script).splitlines() == ["0 2", "[]"]


WATCH = """
from tessera.vendors.nvml_watching import NvmlWatch
watch = NvmlWatch()
print(watch.wait_for_faults(0), flush=True)
for _ in range({faults}):
    found = []
    while not found:
        found = watch.wait_for_faults(10)
    print(*((fault.uuid, fault.number) for fault in found), flush=True)
"""


def test_a_kernel_that_must_not_be_ends_its_context_and_is_told_to_who_waits(machine):
    trap = "from tests.native.computing import *\nbegin()\non = stream()\n"
    trap += "print(launch(kernel(b'trap'), on), driver.cuStreamSynchronize(on), cuda.take(1)[0])"
    with machine.start(WATCH.format(faults=1)) as watching:
        assert watching.stdout.readline() == "[]\n"
        assert machine.run(trap) == "0 700 700"
        said, _ = watching.communicate(timeout=PATIENCE_S)
    assert said == f"('{machine.uuids[0]}', 31)\n"


def test_a_card_fails_when_its_file_says_so(machine):
    with machine.start(WATCH.format(faults=2)) as watching:
        assert watching.stdout.readline() == "[]\n"
        with (machine.directory / "faults").open("a") as faults:
            faults.write(f"{machine.uuids[2]} 79\nGPU-nobody 1\n{machine.uuids[1]} 48\n")
        said, _ = watching.communicate(timeout=PATIENCE_S)
    assert said.splitlines() == [f"('{machine.uuids[2]}', 79)", f"('{machine.uuids[1]}', 48)"]
