"""Programs that launch in odd ways are kept to their share, and get it."""

import pytest

from tests.native.working import Tenant


def test_several_streams_of_small_kernels_get_the_share(tenant: Tenant):
    tenant.limit(50)
    script = """
streams = [stream() for _ in range(4)]
def work():
    codes = {launch(100_000, streams[number % 4]) for number in range(4000)}
    return max(codes) or max(wait(on) for on in streams)
print(0.6 < seconds(work) < 3)
"""
    assert tenant.run(script) == "True"


@pytest.mark.parametrize("every", [1, 5, 20])
def test_kernels_of_many_lengths_between_waits_are_paid_for_what_they_take(tenant: Tenant, every: int):
    tenant.limit(20)
    script = f"""
import random
lengths = random.Random(7).choices([4_000, 12_000, 300_000], [6, 2, 1], k=3000)
def work():
    return max(launch(ns) or (wait() if number % {every} == 0 else 0) for number, ns in enumerate(lengths)) or wait()
print(sum(lengths) / 1e9 / seconds(work) < 0.25)
"""
    assert tenant.run(script) == "True"


def test_streams_that_are_destroyed_before_their_work_is_done_are_paid(tenant: Tenant):
    tenant.limit(20)
    script = """
def work():
    for _ in range(60):
        on = stream()
        assert launch(5 * MS, on) == 0
        assert lib.cuStreamDestroy_v2(on) == 0
    return lib.cuCtxSynchronize()
print(seconds(work) > 1)
"""
    assert tenant.run(script) == "True"


def test_a_context_that_one_of_two_lets_go_of_stays_measured(tenant: Tenant):
    tenant.limit(30)
    script = """
import threading
is_over = threading.Event()
def come_and_go():
    while not is_over.is_set():
        assert cuda.enter() == 0
        assert cuda.leave() == 0
thread = threading.Thread(target=come_and_go)
thread.start()
on = stream()
took = seconds(lambda: max(launch(200_000, on) for _ in range(1500)) or wait(on))
is_over.set()
thread.join()
print(took > 0.8)
"""
    assert tenant.run(script) == "True"


SHAPES = """
def words(*values):
    return (ctypes.c_uint64 * len(values))(*values)
def plane_at(memory):
    return 0, 0, 2, 0, memory.value, 0, 1 << 20
def box_at(memory):
    return 0, 0, 0, 0, 2, 0, memory.value, 0, 0, 1 << 20, 16
def one(value):
    return words(value.value)
ONCE = ctypes.c_size_t(1), None, None, ctypes.c_size_t(0)
"""


@pytest.mark.parametrize(
    "fill",
    [
        "lib.cuMemcpyDtoD_v2(to, start, size)",
        "lib.cuMemcpy(to, start, size)",
        "lib.cuMemcpy2D_v2(plane)",
        "lib.cuMemcpy2DAsync_v2(plane, None)",
        "lib.cuMemcpy3D_v2(box)",
        "lib.cuMemcpy3DAsync_v2(box, None)",
        "lib.cuMemcpyAsync(to, start, size, None)",
        "lib.cuMemcpyDtoDAsync_v2(to, start, size, None)",
        "lib.cuMemcpyBatchAsync(one(to), one(start), one(size), *ONCE, None, on)",
        "lib.cuMemcpyBatchAsync_v2(one(to), one(start), one(size), *ONCE, on)",
        "lib.cuMemsetD8_v2(start, 7, size)",
        "lib.cuMemsetD32Async(start, 7, quarter, None)",
    ],
)
def test_copies_and_fills_within_the_card_are_paid(tenant: Tenant, fill: str):
    tenant.limit(50)
    script = f"""{SHAPES}
length = 32 << 20
start, to = (ctypes.c_uint64(cuda.take(length)[1]) for _ in range(2))
size, quarter = ctypes.c_size_t(length), ctypes.c_size_t(length // 4)
plane = words(*plane_at(start), *plane_at(to), 1 << 20, 32)
box = words(*box_at(start), *box_at(to), 1 << 20, 16, 2)
on = stream()
print({{{fill} for _ in range(40)}}, lib.cuCtxSynchronize())
"""
    assert tenant.run(script) == "{0} 0"
    assert tenant.told().gpu_ns > 0


@pytest.mark.parametrize(
    "copy", ["cuMemcpyBatchAsync(*batch, *ONCE, None, on)", "cuMemcpyBatchAsync_v2(*batch, *ONCE, on)"]
)
def test_batches_between_host_and_card_are_not_paid(tenant: Tenant, copy: str):
    tenant.limit(50)
    script = f"""{SHAPES}
size = ctypes.c_size_t(32 << 20)
batch = one(ctypes.c_uint64(cuda.take(size.value)[1])), one(made("cuMemHostAlloc", size, HOST_MAPPED)), one(size)
on = stream()
print({{launch(1000, on) or lib.{copy} or wait(on) for _ in range(100)}})
"""
    assert tenant.run(script) == "{0}"
    assert tenant.told().gpu_ns < 30_000_000
