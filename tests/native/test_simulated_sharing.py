"""Memory of simulated cards that several processes have: who sees what the others wrote, and who is charged."""

from tests.native.machines import CONTEXT_MIB, PATIENCE_S

CARD_MIB = 15_360
OFFER = """
import ctypes
assert alloc(1) == 0
_, pointer = cuda.take(100 * MIB)
cuda.library.cuMemcpyHtoD_v2(ctypes.c_uint64(pointer), b"from one", ctypes.c_size_t(8))
handle = (ctypes.c_char * 64)()
assert cuda.library.cuIpcGetMemHandle(handle, ctypes.c_uint64(pointer)) == 0
print(handle.raw.hex(), flush=True)
input()
into = ctypes.create_string_buffer(8)
cuda.library.cuMemcpyDtoH_v2(into, ctypes.c_uint64(pointer), ctypes.c_size_t(8))
print(into.raw.decode(), flush=True)
"""
OPEN = """
import ctypes
class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 64)]
assert cuda.init() or cuda.enter() == 0
before, opened, into = cuda.free_mib(), ctypes.c_uint64(), ctypes.create_string_buffer(8)
handle = Handle.from_buffer_copy(bytes.fromhex({handle!r}))
print(cuda.library.cuIpcOpenMemHandle_v2(ctypes.byref(opened), handle, 1), before - cuda.free_mib())
print(cuda.library.cuMemcpyDtoH_v2(into, opened, ctypes.c_size_t(8)), into.raw.decode())
print(cuda.library.cuMemcpyHtoD_v2(opened, b"from two", ctypes.c_size_t(8)), cuda.give_back(opened.value))
print(cuda.library.cuIpcCloseMemHandle(opened), cuda.library.cuIpcCloseMemHandle(opened))
"""


def test_a_block_that_another_process_opened_is_one_block_and_charged_once(machine):
    with machine.start(OFFER) as owner:
        assert owner.stdout
        handle = owner.stdout.readline().strip()
        said = machine.run(OPEN.format(handle=handle)).splitlines()
        answer, _ = owner.communicate("\n", timeout=PATIENCE_S)
    assert said == ["0 0", "0 from one", "0 1", "0 1"]
    assert answer == "from two\n"


def test_a_handle_of_the_dead_opens_nothing(machine):
    with machine.start(OFFER) as owner:
        assert owner.stdout
        handle = owner.stdout.readline().strip()
        owner.kill()
    assert machine.run(OPEN.format(handle=handle)).splitlines()[0] == "1 0"


EXPORT = """
import ctypes, os, socket
sides = socket.socketpair(socket.AF_UNIX)
wish = (ctypes.c_int * 40)(1, 1, 1, 0)
handle, address, file = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_int(-1)
size = ctypes.c_size_t(4 * MIB)
access = (ctypes.c_int * 3)(1, 0, 3)

def map_here():
    assert cuda.library.cuMemAddressReserve(ctypes.byref(address), size, ctypes.c_size_t(0), ctypes.c_uint64(0), 0) == 0
    assert cuda.library.cuMemMap(address, size, ctypes.c_size_t(0), handle, 0) == 0
    assert cuda.library.cuMemSetAccess(address, size, access, ctypes.c_size_t(1)) == 0

if os.fork() == 0:
    assert (cuda.init() or cuda.enter()) == 0
    _, files, _, _ = socket.recv_fds(sides[1], 1, 1)
    before = cuda.free_mib()
    assert cuda.library.cuMemImportFromShareableHandle(ctypes.byref(handle), ctypes.c_void_p(files[0]), 1) == 0
    map_here()
    into = ctypes.create_string_buffer(8)
    cuda.library.cuMemcpyDtoH_v2(into, address, ctypes.c_size_t(8))
    print(into.raw.decode(), before - cuda.free_mib(), flush=True)
    os._exit(0)
assert (cuda.init() or cuda.enter()) == 0
assert cuda.library.cuMemCreate(ctypes.byref(handle), size, wish, 0) == 0
map_here()
cuda.library.cuMemcpyHtoD_v2(address, b"by a file"[:8], ctypes.c_size_t(8))
assert cuda.library.cuMemExportToShareableHandle(ctypes.byref(file), handle, 1, 0) == 0
socket.send_fds(sides[0], [b"x"], [file.value])
os.wait()
"""


def test_memory_by_handle_goes_to_another_process_as_a_file(machine):
    assert machine.run(EXPORT) == "by a fil 0"


def test_a_module_takes_memory_that_no_allocation_shows(machine):
    script = "from tests.native.computing import *\nbegin()\nbefore = cuda.free_mib()\nmodule = load()\n"
    script += "print(before - cuda.free_mib())\ndriver.cuModuleUnload(module)\nprint(before - cuda.free_mib())"
    assert machine.run(script).split() == ["2", "0"]


CAPTURED = """
import ctypes
from tests.native.computing import *
begin()
on, graph, ready, pointer = stream(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
driver.cuStreamBeginCapture_v2(on, 0)
assert driver.cuMemAllocAsync(ctypes.byref(pointer), ctypes.c_size_t({mib} * MIB), on) == 0
driver.cuStreamEndCapture(on, ctypes.byref(graph))
assert driver.cuGraphInstantiateWithFlags(ctypes.byref(ready), graph, ctypes.c_ulonglong(0)) == 0
before = cuda.free_mib()
print(driver.cuGraphLaunch(ready, on), before - cuda.free_mib())
driver.cuMemFreeAsync(pointer, on)
print(before - cuda.free_mib(), driver.cuDeviceGraphMemTrim(0), before - cuda.free_mib())
"""


def test_the_memory_of_a_graph_is_taken_when_it_is_launched(machine):
    """In pieces of 32 MiB, which it keeps until they are trimmed."""
    assert machine.run(CAPTURED.format(mib=100)).splitlines() == ["0 128", "128 0 0"]


def test_a_graph_that_wants_more_than_there_is_is_refused(machine):
    wanted = CARD_MIB - CONTEXT_MIB + 2
    assert machine.run(CAPTURED.format(mib=wanted)).splitlines()[0] == "2 0"


def test_an_older_driver_lacks_what_came_later(machine):
    script = """
import ctypes
cuda.init()
look_up, flags = cuda.library.cuGetProcAddress_v2, ctypes.c_uint64(0)
for name in b"cuLaunchKernelEx", b"cuStreamGetCaptureInfo", b"cuKernelGetFunction":
    entry, status = ctypes.c_void_p(), ctypes.c_int()
    code = look_up(name, ctypes.byref(entry), 13000, flags, ctypes.byref(status))
    print(code, status.value, end="; ")
"""
    assert machine.run(script) == "0 0; 0 0; 0 0;"
    assert machine.run(script, TESSERA_SIM_DRIVER="11080") == "0 0; 0 0; 500 2;"
