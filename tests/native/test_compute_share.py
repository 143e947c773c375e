"""One tenant of a card is kept to its share of the card's time, whichever way it launches."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.native.working import Tenant, favour, report_of


@pytest.mark.parametrize("mode", ["kernel", "ex", "coop", "graph", "streams2", "sync"])
def test_every_way_to_launch_is_kept_to_the_share(tenant: Tenant, mode: str):
    tenant.limit(25)
    report = report_of(tenant.work(1.6, 300, mode))
    assert 12 < report.percent() < 28


@pytest.mark.parametrize(("microseconds", "threads", "think_us"), [(3_000, 2, 5_000), (200, 4, 600)])
def test_threads_that_are_each_below_the_share_together_get_no_more(
    tenant: Tenant, microseconds: int, threads: int, think_us: int
):
    tenant.limit(50)
    report = report_of(tenant.crowd(2.2, microseconds, threads, think_us=think_us))
    assert 30 < report.whole_percent < 53


def test_processes_that_are_each_below_the_share_together_get_no_more(tenant: Tenant):
    """What the card takes to change from one process to the other is their time too."""
    tenant.limit(50)
    programs = [tenant.crowd(2.2, 1_000, 1, think_us=2_000) for _ in range(2)]
    longest_ns = max(report_of(program).wall_ns for program in programs)
    assert tenant.told().gpu_ns < 0.53 * longest_ns


@pytest.mark.parametrize(("threads", "batch"), [(8, 1), (64, 4), (64, 64)])
def test_time_that_streams_use_together_is_paid_once(tenant: Tenant, threads: int, batch: int):
    tenant.limit(50)
    report = report_of(tenant.crowd(2.2, 20, threads, batch))
    assert tenant.told().gpu_ns == pytest.approx(report.gpu_ns, rel=0.08)
    assert report.whole_percent < 53


def test_threads_with_less_than_the_share_pay_for_no_more_than_they_use(tenant: Tenant):
    tenant.limit(25)
    report = report_of(tenant.crowd(2.2, 50, 4, think_us=900))
    assert tenant.told().gpu_ns < 1.15 * report.gpu_ns


@pytest.mark.parametrize("share", [50, 75])
def test_a_larger_share_is_given_and_not_more(tenant: Tenant, share: int):
    tenant.limit(share)
    report = report_of(tenant.work(1.6, 500))
    assert 0.5 * share < report.percent() < share + 3


@pytest.mark.parametrize(("share", "ms"), [(25, 40), (75, 100), (50, 400), (50, 1500)])
def test_kernels_longer_than_a_frame_get_the_share_as_well_as_short_ones(tenant: Tenant, share: int, ms: int):
    tenant.limit(share)
    report = report_of(tenant.work(max(2.5, ms * 0.008), ms * 1000, depth=1))
    whole_cycles = report.gpu_ns / (report.wall_ns + ms * 1e6 * (100 / share - 1))
    assert 0.85 * share < 100 * whole_cycles < share + 7


def test_small_kernels_are_paid_with_what_they_take_and_not_with_the_gaps_between(tenant: Tenant):
    tenant.limit(10)
    with tenant.work(1.6, 2, depth=1) as program:
        favour(program)
        report = report_of(program)
    assert 4 < report.percent() < 14


@pytest.fixture
def crowded() -> Iterator[int]:
    """A processor that others want all the time."""
    processor = min(os.sched_getaffinity(0))
    with ExitStack() as stack:
        for _ in range(3):
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(busy.wait)
            stack.callback(busy.kill)
            os.sched_setaffinity(busy.pid, {processor})
        yield processor


def test_pauses_that_a_busy_host_makes_are_not_paid(tenant: Tenant, crowded: int):
    """Without a processor nothing is launched, and the card has nothing to do."""
    tenant.limit(10)
    with tenant.work(2.5, 2, depth=1) as program:
        os.sched_setaffinity(program.pid, {crowded})
        report = report_of(program)
    assert tenant.told().gpu_ns < 8 * report.gpu_ns


def test_without_a_share_nothing_is_held_back_and_nothing_measured(tenant: Tenant):
    tenant.limit(0)
    report = report_of(tenant.work(0.8, 500))
    assert report.percent() > 45
    assert tenant.told().throttled_ns == tenant.told().gpu_ns == 0


def test_the_agent_is_told_what_was_used_and_how_long_launches_waited(tenant: Tenant):
    tenant.limit(25)
    report = report_of(tenant.work(1.2, 500))
    assert tenant.told().gpu_ns == pytest.approx(report.gpu_ns, rel=0.15)
    assert tenant.told().throttled_ns > report.wall_ns / 3


def test_a_new_share_holds_without_a_restart(tenant: Tenant):
    tenant.limit(20)
    with tenant.work(2.4, 500) as program:
        time.sleep(1.2)
        tenant.limit(80)
        report = report_of(program)
    assert report.percent(slice(3, 10)) < 25
    assert 35 < report.percent(slice(15, -1)) < 83


def test_a_share_given_to_a_running_process_that_had_none_holds(tenant: Tenant):
    tenant.limit(0)
    with tenant.work(2.4, 500) as program:
        time.sleep(1.2)
        tenant.limit(25)
        report = report_of(program)
    assert report.percent(slice(1, 9)) > 45
    assert report.percent(slice(15, -1)) < 29


def test_processes_of_a_container_have_its_share_together(tenant: Tenant):
    tenant.limit(50)
    reports = [report_of(program) for program in [tenant.work(1.8, 500) for _ in range(2)]]
    assert 20 < sum(report.percent() for report in reports) < 53


@pytest.mark.parametrize(
    ("variables", "least", "most"),
    [
        ({"CUDA_DEVICE_SM_LIMIT": "25"}, 12, 28),
        ({"CUDA_DEVICE_SM_LIMIT_0": "50", "CUDA_DEVICE_SM_LIMIT": "10"}, 25, 53),
        ({"CUDA_DEVICE_SM_LIMIT": "25", "GPU_CORE_UTILIZATION_POLICY": "DISABLE"}, 45, 101),
        ({"CUDA_DEVICE_SM_LIMIT": "0"}, 45, 101),
        ({"CUDA_DEVICE_SM_LIMIT": "a lot"}, 0, 4),
        ({"CUDA_DEVICE_SM_LIMIT": "130"}, 0, 4),
    ],
)
def test_variables_of_hami_mean_the_same(tenant: Tenant, variables: dict[str, str], least: float, most: float):
    report = report_of(tenant.work(1.5, 500, environment=variables))
    assert least <= report.percent() < most


def test_a_share_that_cannot_be_read_is_said_once_and_the_least_is_given(tenant: Tenant):
    tenant.limit("half")
    with tenant.work(1.2, 500) as program:
        said, _ = program.communicate(timeout=60)
    lines = [line for line in said.splitlines() if line.startswith("tessera:")]
    assert len(lines) == 1
    assert "cores_percent and a whole number" in lines[0]


def test_copies_between_host_and_card_are_not_paid(tenant: Tenant):
    tenant.limit(25)
    report_of(tenant.work(1.0, 500, "copy"))
    assert tenant.told().gpu_ns < 20_000_000


@pytest.fixture
def pipes() -> Iterator[Path]:
    """Where MPS would be served; paths of sockets are short."""
    with TemporaryDirectory() as directory:
        yield Path(directory)


@contextmanager
def serving(kind: str, path: Path) -> Iterator[None]:
    """Stands in for the daemon of MPS. What it served at stays behind."""
    if kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen()
            yield
        return
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield
    os.close(reader)


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_with_mps_the_daemon_is_told_the_share_and_the_gate_stays_open(tenant: Tenant, pipes: Path, kind: str):
    tenant.limit(25)
    environment = {"CUDA_MPS_PIPE_DIRECTORY": str(pipes)}
    script = "read = ctypes.CDLL(None).getenv\nread.restype = ctypes.c_char_p\n"
    with serving(kind, pipes / "control"):
        told = tenant.run(f"{script}print(read(b'CUDA_MPS_ACTIVE_THREAD_PERCENTAGE'))", **environment)
        report = report_of(tenant.work(0.9, 500, environment=environment))
    assert told == "b'25'"
    assert report.percent() > 45


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_what_a_daemon_of_mps_has_left_behind_opens_no_gate(tenant: Tenant, pipes: Path, kind: str):
    tenant.limit(25)
    with serving(kind, pipes / "control"):
        pass
    report = report_of(tenant.work(1.4, 500, environment={"CUDA_MPS_PIPE_DIRECTORY": str(pipes)}))
    assert report.percent() < 28


def test_one_that_was_modest_for_a_while_is_kept_to_its_share_when_it_wants_more(tenant: Tenant):
    tenant.limit(40)
    script = """
on = stream()
quiet_until = time.monotonic() + 0.6
while time.monotonic() < quiet_until:
    launch(20_000, on)
    time.sleep(0.001)
took = seconds(lambda: any(launch(MS, on) for _ in range(800)) or wait(on))
print(took > 1.7)
"""
    assert tenant.run(script) == "True"


def test_time_without_a_share_is_not_owed_when_there_is_one_again(tenant: Tenant):
    tenant.limit(50)
    with tenant.work(2.6, 20, "sync", depth=1) as program:
        time.sleep(0.7)
        tenant.limit(0)
        time.sleep(0.8)
        tenant.limit(5)
        report = report_of(program)
    assert all(report.windows[18:-1])
