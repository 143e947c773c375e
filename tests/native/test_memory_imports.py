"""Memory that processes share is charged once, to whoever allocated it, however it comes and goes in others."""

import pytest

from tests.native.machines import CONTEXT_MIB, end, first_lines
from tests.native.test_memory_upkeep import grow

LIMIT_MIB = 2_000
ROOM_MIB = LIMIT_MIB - CONTEXT_MIB
SHARED_MIB = 500
BEGIN = "from tests.native.taking import *\nassert cuda.init() == 0\nassert cuda.enter() == 0\n"
EXPORT = f"""{BEGIN}
class Handle(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_ubyte * 64),)
handle, (_, pointer) = Handle(), cuda.take({SHARED_MIB} * MIB)
assert lib.cuIpcGetMemHandle(ctypes.byref(handle), u64(pointer)) == 0
print(bytes(handle).hex(), flush=True)
input()
"""
OPEN = f"""{BEGIN}
import time
class Handle(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_ubyte * 64),)
lib.cuIpcOpenMemHandle_v2.argtypes = (ctypes.c_void_p, Handle, ctypes.c_uint)
pointer, handle = u64(), Handle.from_buffer_copy(bytes.fromhex("HANDLE"))
assert lib.cuIpcOpenMemHandle_v2(ctypes.byref(pointer), handle, 1) == 0
"""
LOOK = """
print(cuda.free_mib(), flush=True)
input()
time.sleep(0.11)  # so that the next allocation compares it with what NVML says
print(alloc(2 * MIB)[1](), cuda.free_mib(), flush=True)
input()
"""
CLOSE = "assert lib.cuIpcCloseMemHandle(pointer) == 0\nprint(cuda.free_mib())"


@pytest.fixture
def container(container):
    container.limit(LIMIT_MIB)
    return container


def test_memory_of_another_process_is_charged_to_the_other_alone(container):
    left = ROOM_MIB - CONTEXT_MIB - SHARED_MIB
    with container.start(EXPORT) as exporter:
        (handle,) = first_lines([exporter])
        with container.start(f"{OPEN}{LOOK}{CLOSE}".replace("HANDLE", handle)) as importer:
            assert first_lines([importer]) == [f"{left}"]
            grow(container.machine, importer.pid, SHARED_MIB)  # as where NVML says of both that they have it
            print(file=importer.stdin, flush=True)
            assert first_lines([importer]) == [f"0 {left}"]
            grow(container.machine, importer.pid, -SHARED_MIB)
            assert importer.communicate("\n")[0] == f"{left}\n"
        end([exporter])
    assert container.filled_mib(50) == ROOM_MIB


def test_what_was_imported_is_forgotten_with_its_context(container):
    """Otherwise what the driver takes for itself afterwards would be thought to be that."""
    left = ROOM_MIB - CONTEXT_MIB - SHARED_MIB
    anew = "assert cuda.leave() == cuda.enter() == 0"
    with container.start(EXPORT) as exporter:
        (handle,) = first_lines([exporter])
        with container.start(f"{OPEN}{anew}{LOOK}".replace("HANDLE", handle)) as importer:
            assert first_lines([importer]) == [f"{left}"]
            grow(container.machine, importer.pid, 200)
            print(file=importer.stdin, flush=True)
            code, free = first_lines([importer])[0].split()
            end([importer])
        end([exporter])
    assert code == "0"
    assert int(free) < left - 200


FILE = 1


@pytest.mark.parametrize("first", ["handle", "again"])
def test_memory_that_comes_back_by_its_own_handle_is_charged_until_both_are_let_go_of(container, first):
    script = f"""{BEGIN}
handle, again, file, wish = u64(), u64(), ctypes.c_int(), Place(1, {FILE}, DEVICE, 0)
assert lib.cuMemCreate(ctypes.byref(handle), size({SHARED_MIB} * MIB), ctypes.byref(wish), u64(0)) == 0
assert lib.cuMemExportToShareableHandle(ctypes.byref(file), handle, {FILE}, u64(0)) == 0
assert lib.cuMemImportFromShareableHandle(ctypes.byref(again), ctypes.c_void_p(file.value), {FILE}) == 0
print(cuda.free_mib(), lib.cuMemRelease({first}), cuda.free_mib())
print(lib.cuMemRelease({"again" if first == "handle" else "handle"}), cuda.free_mib())
"""
    said = container.run(script).split()
    assert (said[0], said[-1]) == (str(ROOM_MIB - SHARED_MIB), str(ROOM_MIB))
    assert said[1] == said[3] == "0"


def test_memory_by_handle_of_another_process_is_charged_to_the_other_alone(container):
    script = f"""{BEGIN}
import os
handle, file, wish = u64(), ctypes.c_int(), Place(1, {FILE}, DEVICE, 0)
assert lib.cuMemCreate(ctypes.byref(handle), size({SHARED_MIB} * MIB), ctypes.byref(wish), u64(0)) == 0
assert lib.cuMemExportToShareableHandle(ctypes.byref(file), handle, {FILE}, u64(0)) == 0
child = os.fork()
if child == 0:
    address = u64()
    assert cuda.init() == cuda.enter() == 0
    assert lib.cuMemImportFromShareableHandle(ctypes.byref(handle), ctypes.c_void_p(file.value), {FILE}) == 0
    assert lib.cuMemAddressReserve(ctypes.byref(address), size({SHARED_MIB} * MIB), size(0), u64(0), u64(0)) == 0
    assert lib.cuMemMap(address, size({SHARED_MIB} * MIB), size(0), handle, u64(0)) == 0
    print(cuda.free_mib(), flush=True)
    assert lib.cuMemRelease(handle) == lib.cuMemUnmap(address, size({SHARED_MIB} * MIB)) == 0
    print(cuda.free_mib(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(cuda.free_mib(), lib.cuMemRelease(handle), cuda.free_mib())
"""
    left = ROOM_MIB - SHARED_MIB
    assert container.run(script).split() == [str(left - CONTEXT_MIB)] * 2 + [str(left), "0", str(ROOM_MIB)]
