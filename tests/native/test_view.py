"""What a container is told about who uses its card, and how much: its own processes, and nobody else's."""

import mmap
import struct
import sys
from contextlib import ExitStack

import pytest

from tessera.node.regions import HEAD
from tests.native.machines import CONTEXT_MIB, MIB, PATIENCE_S, TAKER, end, first_lines, region_at, require_namespaces

LIMIT_MIB = 2_000
UNINITIALIZED, INVALID_ARGUMENT, INSUFFICIENT_SIZE = 1, 2, 7
BEGIN = "import pynvml as n\nn.nvmlInit()\ncard = n.nvmlDeviceGetHandleByIndex(0)\n"
LIST = f"{BEGIN}for one in n.nvmlDeviceGetComputeRunningProcesses(card): print(one.pid, one.usedGpuMemory >> 20)"


@pytest.fixture
def container(container):
    container.limit(LIMIT_MIB)
    return container


def listed(said):
    return sorted(tuple(map(int, line.split())) for line in said.splitlines())


def test_a_container_sees_its_own_processes_with_what_they_hold_and_no_others(container, holding):
    holding(5_000)
    with container.taker("one", 100) as one, container.taker("one", 300) as other:
        assert first_lines([one, other]) == ["100", "300"]
        mine = sorted([(one.pid, 100 + CONTEXT_MIB), (other.pid, 300 + CONTEXT_MIB)])
        assert listed(container.run(LIST)) == mine
        other.kill()
        other.wait(PATIENCE_S)
        assert listed(container.run(LIST)) == [(one.pid, 100 + CONTEXT_MIB)], "the dead are not listed"
        end([one, other])


def test_processes_are_listed_also_where_nvml_lists_none(container):
    with container.taker("one", 100) as one:
        assert first_lines([one]) == ["100"]
        assert [pid for pid, _ in listed(container.run(LIST, TESSERA_SIM_NO_PROCESSES="1"))] == [one.pid]
        end([one])


def test_processes_have_the_numbers_of_the_container(container):
    require_namespaces()
    look = f"""
import subprocess
command = [{str(TAKER)!r}, "dlsym", "one", "100"]
subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE).stdout.readline()
{LIST}
"""
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", look]
    with container.machine.execute(command, **container.environment) as program:
        assert program.communicate(timeout=PATIENCE_S)[0] == f"2 {100 + CONTEXT_MIB}\n"


def test_without_a_limit_the_list_is_the_drivers(container, holding):
    container.limit(0)
    holder = holding(5_000)
    assert listed(container.run(LIST)) == [(holder.pid, 5_000 + CONTEXT_MIB)]


ASK = """
import ctypes
from tests.native.looking import *
nvml, card, count = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p(), ctypes.c_uint(COUNT)
rows = (ctypes.c_ubyte * 4096)()
ask = nvml[NAME]
"""


@pytest.mark.parametrize("version", ["", "_v2", "_v3"])
def test_a_list_is_asked_for_as_nvml_has_it(container, version):
    script = f"""{ASK.replace("COUNT", "1").replace("NAME", f"'nvmlDeviceGetComputeRunningProcesses{version}'")}
print(ask(card, ctypes.byref(count), rows))
nvml.nvmlInit_v2()
nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(card))
print(ask(None, ctypes.byref(count), rows), ask(card, None, rows))
print(ask(card, ctypes.byref(count), rows), count.value)
print(ask(card, ctypes.byref(count), rows), count.value)
count.value = 0
print(ask(card, ctypes.byref(count), None), count.value)
"""
    with ExitStack() as stack:
        programs = [stack.enter_context(container.taker("one", 100)) for _ in range(2)]
        assert first_lines(programs) == ["100"] * 2
        said = container.run(script).split()
        end(programs)
    too_little = [str(INSUFFICIENT_SIZE), "2"]
    errors = [str(UNINITIALIZED), str(INVALID_ARGUMENT), str(INVALID_ARGUMENT)]
    assert said == [*errors, *too_little, "0", "2", *too_little]


def test_nobody_draws_on_the_card_and_nobody_is_behind_mps(container):
    script = f"""{BEGIN}
print(n.nvmlDeviceGetGraphicsRunningProcesses(card), n.nvmlDeviceGetMPSComputeRunningProcesses(card))
"""
    with container.taker("one", 100) as one:
        assert first_lines([one]) == ["100"]
        assert container.run(script) == "[] []"
        end([one])


SAMPLE = f"""{BEGIN}
import time
deadline, pids = time.monotonic() + {PATIENCE_S}, set()
while not pids:
    assert time.monotonic() < deadline
    try: pids = {{sample.pid for sample in n.nvmlDeviceGetProcessUtilization(card, 0)}}
    except n.NVMLError_NotFound: pass
print(*pids)
"""


def test_samples_are_of_the_processes_of_the_container(container):
    work = [str(TAKER.with_name("worker")), str(PATIENCE_S), "1000000"]
    with (
        container.machine.execute(work) as neighbour,
        container.machine.execute(work, **container.environment) as worker,
    ):
        assert container.machine.run(SAMPLE) != "", "there is somebody to be seen"
        assert container.run(SAMPLE) == str(worker.pid)
        end([neighbour, worker])


def use_card(container, nanoseconds):
    """As the gate writes it down."""
    gpu_ns = HEAD.size + 48 + 3 * 8
    with (container.directory / "region").open("r+b") as file, mmap.mmap(file.fileno(), 0) as region:
        (before,) = struct.unpack_from("=Q", region, gpu_ns)
        struct.pack_into("=Q", region, gpu_ns, before + nanoseconds)


RATES = f"{BEGIN}\nwhile True: print(n.nvmlDeviceGetUtilizationRates(card).gpu, flush=True) or input()"


def test_a_container_with_a_share_is_shown_how_much_of_the_card_it_uses_itself(container):
    container.write(container.limits.read_text().replace("cores_percent 0", "cores_percent 50", 1))
    with container.start(RATES) as program:
        assert first_lines([program]) == ["0"]
        use_card(container, 3_600 * 10**9)
        print(file=program.stdin, flush=True)
        assert first_lines([program]) == ["100"]
        end([program])


def test_the_agent_finds_the_limit_and_the_refusals_in_the_region(container):
    container.filled_mib(50)
    (card,) = region_at(container.directory / "region").cards
    assert (card.uuid, card.limit_bytes, card.refusals) == (container.machine.uuids[0], LIMIT_MIB * MIB, 1)
    container.limit(1_000)
    container.filled_mib(50)
    (card,) = region_at(container.directory / "region").cards
    assert (card.limit_bytes, card.refusals) == (1_000 * MIB, 2)
    container.limit(0)
    container.run("print(alloc(2))")
    assert region_at(container.directory / "region").cards[0].limit_bytes == 0
