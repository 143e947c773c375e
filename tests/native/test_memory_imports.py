"""Memory that processes share is charged once, to whoever allocated it, however it comes and goes in others."""

from contextlib import contextmanager

import pytest

from tests.native.machines import CONTEXT_MIB, end, first_lines
from tests.native.test_memory_upkeep import REST_MIB, grow

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
assert lib.cuMemFree_v2(u64(pointer)) == 0
"""
OPEN = f"""{BEGIN}
import time
class Handle(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_ubyte * 64),)
lib.cuIpcOpenMemHandle_v2.argtypes = (ctypes.c_void_p, Handle, ctypes.c_uint)
pointer, handle = u64(), Handle.from_buffer_copy(bytes.fromhex("HANDLE"))
assert lib.cuIpcOpenMemHandle_v2(ctypes.byref(pointer), handle, 1) == 0
"""
CLOSE = "assert lib.cuIpcCloseMemHandle(pointer) == 0\n"
NEXT = "print(cuda.free_mib(), flush=True)\ninput()\n"


@pytest.fixture
def container(container):
    container.limit(LIMIT_MIB)
    return container


@pytest.fixture
def exporter(container):
    """A process that has memory, frees it when it is told to, and says what is free, line by line."""
    with container.start(f"{EXPORT}{NEXT * 3}") as program:
        yield program


@contextmanager
def an_importer(container, exporter, then, contexts=2):
    """A process that has imported it, and does nothing before it is told to."""
    (handle,) = first_lines([exporter])
    with container.start(f"{OPEN}{NEXT}{then}{NEXT}".replace("HANDLE", handle)) as program:
        assert first_lines([program]) == [f"{LIMIT_MIB - contexts * CONTEXT_MIB - SHARED_MIB}"]
        yield program


def go_on(program):
    print(file=program.stdin, flush=True)
    return first_lines([program])[0]


def test_memory_of_another_process_is_charged_to_the_other_alone(container, exporter):
    with an_importer(container, exporter, CLOSE) as importer:
        assert go_on(importer) == f"{ROOM_MIB - CONTEXT_MIB - SHARED_MIB}"
        end([importer, exporter])
    assert container.filled_mib(50) == ROOM_MIB


def test_memory_that_its_owner_has_freed_is_charged_while_its_importer_sleeps_and_no_longer(container, exporter):
    """NVML says of the importer that it has it from then on."""
    left = ROOM_MIB - CONTEXT_MIB
    with an_importer(container, exporter, CLOSE) as importer:
        grow(container.machine, importer.pid, SHARED_MIB)
        assert go_on(exporter) == f"{left - SHARED_MIB}"
        grow(container.machine, importer.pid, -SHARED_MIB)
        assert go_on(importer) == go_on(exporter) == f"{left}"
        end([importer, exporter])


def test_an_importer_that_looks_is_charged_itself_and_once(container, exporter):
    """What it was charged with and a part of the margin, as for whatever else NVML says that it has."""
    looks = "time.sleep(0.11)\nassert alloc(2 * MIB)[1]() == 0\n"
    with an_importer(container, exporter, looks) as importer:
        grow(container.machine, importer.pid, SHARED_MIB)
        assert go_on(exporter) == f"{ROOM_MIB - CONTEXT_MIB - SHARED_MIB}"
        assert go_on(importer) == go_on(exporter) == f"{ROOM_MIB - CONTEXT_MIB - SHARED_MIB - REST_MIB}"
        end([importer, exporter])


def test_memory_of_one_that_was_killed_is_charged_while_its_importer_sleeps(container, exporter):
    with an_importer(container, exporter, CLOSE) as importer:
        exporter.kill()
        exporter.wait()
        grow(container.machine, importer.pid, SHARED_MIB)
        assert container.filled_mib(50) == ROOM_MIB - CONTEXT_MIB - SHARED_MIB
        end([importer])


def test_what_nobody_claims_is_gone_with_the_importer(container, exporter):
    with an_importer(container, exporter, CLOSE) as importer:
        grow(container.machine, importer.pid, SHARED_MIB)
        assert go_on(exporter) == f"{ROOM_MIB - CONTEXT_MIB - SHARED_MIB}"
        for program in (importer, exporter):
            program.kill()
            program.wait()
    assert container.filled_mib(50) == ROOM_MIB


def test_what_nobody_claims_any_more_keeps_nobody_from_starting(container, exporter):
    """The importer is gone and another lives; nobody has looked at the card since."""
    with container.start(f"{BEGIN}print(flush=True)\ninput()") as other:
        first_lines([other])
        with an_importer(container, exporter, CLOSE, contexts=3) as importer:
            grow(container.machine, importer.pid, SHARED_MIB)
            go_on(exporter)
            for program in (importer, exporter):
                program.kill()
                program.wait()
        container.limit(2 * CONTEXT_MIB + 100)
        assert container.filled_mib(50) == 100
        end([other])


FILE = 1


@pytest.mark.parametrize("first", ["handle", "again"])
def test_memory_that_comes_back_by_its_own_handle_is_charged_until_both_are_let_go_of(container, first):
    script = f"""{BEGIN}
import os
handle, again, file, wish = u64(), u64(), ctypes.c_int(), Place(1, {FILE}, DEVICE, 0)
assert lib.cuMemCreate(ctypes.byref(handle), size({SHARED_MIB} * MIB), ctypes.byref(wish), u64(0)) == 0
assert lib.cuMemExportToShareableHandle(ctypes.byref(file), handle, {FILE}, u64(0)) == 0
assert lib.cuMemImportFromShareableHandle(ctypes.byref(again), ctypes.c_void_p(file.value), {FILE}) == 0
os.close(file.value)
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
os.close(file.value)
print(cuda.free_mib(), lib.cuMemRelease(handle), cuda.free_mib())
"""
    left = ROOM_MIB - SHARED_MIB
    assert container.run(script).split() == [str(left - CONTEXT_MIB)] * 2 + [str(left), "0", str(ROOM_MIB)]


EXPORTED = f"""{BEGIN}
import os
def export(handle):
    file = ctypes.c_int()
    assert lib.cuMemExportToShareableHandle(ctypes.byref(file), handle, {FILE}, u64(0)) == 0
    return file.value
handle, wish = u64(), Place(1, {FILE}, DEVICE, 0)
assert lib.cuMemCreate(ctypes.byref(handle), size({SHARED_MIB} * MIB), ctypes.byref(wish), u64(0)) == 0
file = export(handle)
"""
RELEASED = f"{EXPORTED}assert lib.cuMemRelease(handle) == 0\n"
HELD, FREE = str(ROOM_MIB - SHARED_MIB), str(ROOM_MIB)


@pytest.mark.parametrize(
    "copied", ["os.dup(file)", "socket.fromfd(file, socket.AF_UNIX, socket.SOCK_DGRAM).detach()"], ids=["dup", "socket"]
)
def test_memory_that_only_its_file_keeps_is_charged_until_the_last_copy_of_that_is_closed(container, copied):
    script = f"""import socket\n{RELEASED}
print(cuda.free_mib())
copy = {copied}
os.close(file)
print(cuda.free_mib())
os.close(copy)
print(cuda.free_mib())
"""
    assert container.run(script).split() == [HELD, HELD, FREE]


def test_another_process_may_keep_the_file(container):
    script = f"""{RELEASED}
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    os.close(writing)
    os.read(reading, 1)
    os._exit(0)
os.close(file)
print(cuda.free_mib())
os.close(writing)
os.waitpid(child, 0)
print(cuda.free_mib())
"""
    assert container.run(script).split() == [HELD, FREE]


def test_no_more_than_the_limit_lies_in_files(container):
    script = f"""{RELEASED}
files = [file]
while (code := lib.cuMemCreate(ctypes.byref(handle), size({SHARED_MIB} * MIB), ctypes.byref(wish), u64(0))) == 0:
    files.append(export(handle))
    assert lib.cuMemRelease(handle) == 0
print(len(files), code, cuda.free_mib())
for file in files:
    os.close(file)
print(fill("alloc", {SHARED_MIB} * MIB)[0])
"""
    most = ROOM_MIB // SHARED_MIB
    assert container.run(script).split() == [str(most), "2", str(ROOM_MIB - most * SHARED_MIB), str(most)]


def test_memory_with_several_files_is_charged_until_the_last_is_closed(container):
    script = f"""{EXPORTED}
other = export(handle)
assert lib.cuMemRelease(handle) == 0
os.close(file)
print(cuda.free_mib())
os.close(other)
print(cuda.free_mib())
"""
    assert container.run(script).split() == [HELD, FREE]


def test_a_mapping_is_charged_after_its_file_is_closed(container):
    script = f"""{EXPORTED}
address = u64()
assert lib.cuMemAddressReserve(ctypes.byref(address), size({SHARED_MIB} * MIB), size(0), u64(0), u64(0)) == 0
assert lib.cuMemMap(address, size({SHARED_MIB} * MIB), size(0), handle, u64(0)) == 0
assert lib.cuMemRelease(handle) == 0
os.close(file)
print(cuda.free_mib())
assert lib.cuMemUnmap(address, size({SHARED_MIB} * MIB)) == 0
print(cuda.free_mib())
"""
    assert container.run(script).split() == [HELD, FREE]


def test_what_comes_back_from_its_file_alone_is_charged_once(container):
    script = f"""{RELEASED}
assert lib.cuMemImportFromShareableHandle(ctypes.byref(handle), ctypes.c_void_p(file), {FILE}) == 0
os.close(file)
print(cuda.free_mib())
assert lib.cuMemRelease(handle) == 0
print(cuda.free_mib())
"""
    assert container.run(script).split() == [HELD, FREE]


def test_a_program_that_closes_files_that_it_does_not_know_keeps_its_later_ones_for_itself(container):
    """The library's own are closed, and the program's have their numbers then."""
    script = f"""{RELEASED}
import select
os.close(file)
for one in map(int, os.listdir("/proc/self/fd")):
    if os.path.exists(f"/proc/self/fd/{{one}}") and "anon_inode:[event" in os.readlink(f"/proc/self/fd/{{one}}"):
        os.close(one)
print(cuda.free_mib())
watches = [select.epoll() for _ in range(64)]
assert lib.cuMemCreate(ctypes.byref(handle), size({SHARED_MIB} * MIB), ctypes.byref(wish), u64(0)) == 0
file = export(handle)
assert lib.cuMemRelease(handle) == 0
print(cuda.free_mib())
print(sum("tfd:" in open(f"/proc/self/fdinfo/{{watch.fileno()}}").read() for watch in watches))
os.close(file)
print(cuda.free_mib())
"""
    assert container.run(script).split() == [FREE, HELD, "0", FREE]
