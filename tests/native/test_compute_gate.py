"""The gate holds launches back, and never in a way that could stop a program for good or change what it does."""

import pytest

from tests.native.machines import PATIENCE_S
from tests.native.working import Tenant, favour

BEHIND_A_FLAG = """
memory, address = flag()
first, second = stream(), stream()
for _ in range(5):
    launch(MS, second)
wait(second)
lib.cuStreamWaitValue32_v2(first, address, 1, 0)
for _ in range(40):
    assert launch(20 * MS, first) == 0
"""


def test_work_that_waits_for_a_later_launch_does_not_keep_it_back_for_good(tenant: Tenant):
    tenant.limit(5)
    script = (
        f"{BEHIND_A_FLAG}print(launch(MS, second) or lib.cuStreamWriteValue32_v2(second, address, 1, 0), wait(first))"
    )
    assert tenant.run(script) == "0 0"


RESTED_BEHIND_A_FLAG = """
import threading
memory, address = flag()
first, second = stream(), stream()
is_awaited, codes = threading.Event(), []
for _ in range(60):
    launch(2000, second), wait(second), time.sleep(0.005)
lib.cuStreamWaitValue32_v2(first, address, 1, 0)
for _ in range(1023):
    launch(2000, first)
def release():
    cuda.enter()
    is_awaited.wait()
    time.sleep(0.1)
    codes.append(launch(2000, second) or lib.cuStreamWriteValue32_v2(second, address, 1, 0))
thread = threading.Thread(target=release)
thread.start()
time.sleep({pause})
is_awaited.set()
codes.append(launch(2000, first))
thread.join()
print(codes, wait(first))
"""


@pytest.mark.parametrize("policy", ["default", "force"])
@pytest.mark.parametrize("pause", [0.02, 0.6])
def test_a_stream_that_is_full_keeps_no_other_thread_from_launching(tenant: Tenant, policy: str, pause: float):
    """Nothing was measured while it was filled, because the program uses far less than its share."""
    tenant.limit(90, f"cores_policy {policy}")
    assert tenant.run(RESTED_BEHIND_A_FLAG.format(pause=pause)) == "[0, 0] 0"


NEVER_EMPTY = """
memory, address = flag()
passed = ctypes.c_uint32.from_address(memory.value)
on, held, end = stream(), 0.0, time.monotonic() + 2.0
for _ in range(60):
    launch(2000, on), wait(on), time.sleep(0.005)
while time.monotonic() < end:
    assert lib.cuStreamWaitValue32_v2(on, address, passed.value + 1, 0) == 0
    took = [seconds(lambda: launch(2000, on)) for _ in range(300)]
    held += sum(one for one in took if one > 0.02)
    time.sleep(0.005)
    passed.value += 1
passed.value += 1
print(held < 0.2, wait(on))
"""


def test_a_stream_that_always_has_work_left_is_not_waited_for(tenant: Tenant):
    """It waits for the host again and again, and the tenant uses far less than its share. Without a processor the card
    would wait for longer."""
    tenant.limit(90, "cores_policy default")
    with tenant.start(NEVER_EMPTY) as program:
        favour(program)
        assert program.communicate(timeout=PATIENCE_S)[0] == "True 0\n"


def test_collectives_are_launched_at_once_however_deep_the_debt(tenant: Tenant):
    tenant.limit(2)
    script = """
launch(60 * MS), wait()
print(seconds(lambda: launch(1000, kernel=collective)) < 0.5 < seconds(lambda: launch(1000)))
"""
    assert tenant.run(script) == "True"


CAPTURE = """
on = stream()
for _ in range(20):
    launch(MS, on)
assert lib.cuStreamBeginCapture_v2(on, {mode}) == 0
codes = [launch(MS, on) for _ in range(200)]
graph = ctypes.c_void_p()
ended = lib.cuStreamEndCapture(on, ctypes.byref(graph))
run = made("cuGraphInstantiateWithFlags", graph, ctypes.c_uint64(0))
took = seconds(lambda: lib.cuGraphLaunch(run, on) or wait(on))
print(set(codes), ended, 0.19 < took)
"""


def test_a_capture_goes_through_a_gate_that_is_shut(tenant: Tenant):
    tenant.limit(40)
    for mode in (0, 1, 2):
        assert tenant.run(CAPTURE.format(mode=mode)) == "{0} 0 True"


def test_a_thread_that_waits_at_the_gate_does_not_break_a_capture_that_begins_meanwhile(tenant: Tenant):
    """It only launches, which a capture of another thread permits in every mode."""
    tenant.limit(30)
    script = """
import threading
is_over, codes = threading.Event(), set()
def keep_launching():
    cuda.enter()
    own = stream()
    while not is_over.is_set():
        codes.add(launch(2 * MS, own))
thread = threading.Thread(target=keep_launching)
thread.start()
time.sleep(0.3)
on = stream()
for mode in (0, 1, 2) * 10:
    codes.add(lib.cuStreamBeginCapture_v2(on, mode))
    for _ in range(5):
        codes.add(launch(1000, on))
        time.sleep(0.005)
    codes.add(lib.cuStreamEndCapture(on, ctypes.byref(ctypes.c_void_p())))
is_over.set()
thread.join()
print(codes)
"""
    assert tenant.run(script) == "{0}"


def test_a_capture_of_another_stream_holds_no_launch_up(tenant: Tenant):
    tenant.limit(30)
    script = """
on, own = stream(), stream()
for _ in range(300):
    launch(2_000, own)
    wait(own)
    time.sleep(0.0005)
assert lib.cuStreamBeginCapture_v2(on, 2) == launch(1000, on) == 0
slow = 0
for number in range(10_000):
    slow += seconds(lambda: launch(2_000, own)) > 0.04
    if number % 16 == 0:
        time.sleep(0.001)
print(slow < 3)
"""
    assert tenant.run(script) == "True"


def test_other_threads_do_not_break_a_capture(tenant: Tenant):
    tenant.limit(30)
    script = """
import threading
is_over = threading.Event()
def keep_launching():
    cuda.enter()
    own = stream()
    while not is_over.is_set():
        launch(MS // 2, own)
        wait(own)
thread = threading.Thread(target=keep_launching)
thread.start()
time.sleep(0.2)
on, ends = stream(), []
for _ in range(20):
    assert lib.cuStreamBeginCapture_v2(on, 2) == 0
    for _ in range(50):
        launch(1000, on)
    ends.append(lib.cuStreamEndCapture(on, ctypes.byref(ctypes.c_void_p())))
is_over.set()
thread.join()
print(set(ends))
"""
    assert tenant.run(script) == "{0}"


def test_a_stream_that_is_destroyed_under_way_takes_nothing_along(tenant: Tenant):
    tenant.limit(40)
    script = """
for _ in range(30):
    on = stream()
    for _ in range(20):
        launch(20_000, on)
    assert lib.cuStreamDestroy_v2(on) == 0
print(lib.cuCtxSynchronize())
"""
    assert tenant.run(script) == "0"


def test_more_streams_than_the_gate_keeps_apart_are_served(tenant: Tenant):
    tenant.limit(40)
    script = """
streams = [stream() for _ in range(100)]
print({launch(20_000, on) for on in streams * 5}, lib.cuCtxSynchronize())
"""
    assert tenant.run(script) == "{0} 0"


def test_a_context_that_goes_and_comes_again_is_measured_anew(tenant: Tenant):
    tenant.limit(40)
    script = """
for _ in range(3):
    for _ in range(20):
        launch(100_000)
    assert lib.cuDevicePrimaryCtxReset_v2(0) == 0
    assert cuda.enter() == 0
    print(launch(1000, kernel=kernel(b"spin")) or lib.cuCtxSynchronize(), end=" ")
"""
    assert tenant.run(script) == "0 0 0"


def test_a_child_of_a_process_that_launches_starts_afresh(tenant: Tenant):
    tenant.limit(40)
    script = """
import os, subprocess, sys
for _ in range(50):
    launch(100_000)
child = os.fork()
if child == 0:
    os._exit(7)
status = os.waitpid(child, 0)[1]
script = "from tests.native.launching import *; print(launch(1000) or wait())"
again = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
print(os.waitstatus_to_exitcode(status), again.stdout.strip(), launch(1000) or wait())
"""
    assert tenant.run(script) == "7 0 0"


def test_two_cards_of_a_process_have_a_share_each(tenant: Tenant):
    uuids = tenant.machine.uuids
    (tenant.directory / "limits").write_text(
        f"version 1\ncard {uuids[0]} memory_mib 0 cores_percent 10\ncard {uuids[1]} memory_mib 0 cores_percent 0\n"
    )
    script = """
def hundred():
    return {launch(MS) for _ in range(100)} == {0} and lib.cuCtxSynchronize()
first = seconds(hundred)
cuda.enter(1)
launch.__defaults__ = (None, kernel(b"spin"))
second = seconds(hundred)
print(first > 0.6, second < 0.5)
"""
    assert tenant.run(script) == "True True"


def test_the_share_of_a_card_holds_although_limits_are_always_looked_at_from_another(tenant: Tenant):
    uuids = tenant.machine.uuids
    (tenant.directory / "limits").write_text(
        f"version 1\ncard {uuids[0]} memory_mib 0 cores_percent 0\ncard {uuids[1]} memory_mib 0 cores_percent 10\n"
    )
    script = """
assert cuda.enter(1) == 0
there = kernel(b"spin")
def both():
    time.sleep(0.02)  # so that the first launch looks
    return cuda.enter(0) or launch(1000) or cuda.enter(1) or launch(20 * MS, kernel=there) or lib.cuCtxSynchronize()
print(seconds(lambda: max(both() for _ in range(10))) > 1)
"""
    assert tenant.run(script) == "True"
