"""What NVIDIA's cards do, over a stand-in for NVML: usage, faults, and a driver that comes and goes."""

import threading
from typing import Any

import pytest

from tessera.errors import DiscoveryFailed
from tessera.vendors.nvml_watching import NvmlWatch
from tessera.vendors.usage import CardProcess, CardUsage, Fault
from tests.unit.vendors.fake_nvml import FakeNvml

SHORT_S = 0.01


def test_usage_is_told_by_card_and_what_a_card_does_not_tell_is_left_open():
    usage = NvmlWatch(nvml=FakeNvml()).usage()
    assert usage["GPU-1"] == CardUsage(memory_used_mib=2, busy_percent=10)
    assert usage["GPU-3"] == CardUsage(memory_used_mib=4, busy_percent=None)


def test_a_card_that_does_not_answer_is_left_out():
    nvml = FakeNvml()
    nvml.lost_cards = (1,)
    assert set(NvmlWatch(nvml=nvml).usage()) == {"GPU-0", "GPU-2", "GPU-3"}


def test_processes_are_told_by_card_also_where_the_driver_does_not_know_what_they_have():
    nvml = FakeNvml()
    nvml.processes = {0: [(10, 2**30), (11, None)]}
    nvml.lost_cards = (1,)
    listed = NvmlWatch(nvml=nvml).processes()
    assert listed["GPU-0"] == (CardProcess(10, 2**30), CardProcess(11, 0))
    assert (listed["GPU-2"], "GPU-1" in listed) == ((), False)


def test_faults_come_one_by_one_with_their_card_and_number():
    nvml = FakeNvml()
    watch = NvmlWatch(nvml=nvml)
    assert watch.wait_for_faults(SHORT_S) == []
    nvml.faults = [(2, 79), (0, 13)]
    assert watch.wait_for_faults(SHORT_S) == [Fault("GPU-2", 79)]
    assert watch.wait_for_faults(SHORT_S) == [Fault("GPU-0", 13)]
    assert watch.wait_for_faults(SHORT_S) == []


def test_every_card_is_listened_to_from_the_first_wait_on_and_the_driver_is_opened_once():
    nvml = FakeNvml()
    watch = NvmlWatch(nvml=nvml)
    for _ in range(3):
        watch.wait_for_faults(SHORT_S)
        watch.usage()
    assert nvml.watched == {0: {0, 1, 2, 3}}
    assert (nvml.opened, nvml.closed) == (1, 0)


def test_a_card_that_cannot_be_listened_to_keeps_no_other_from_it():
    nvml = FakeNvml()
    nvml.lost_cards = (0,)
    nvml.faults = [(1, 79)]
    assert NvmlWatch(nvml=nvml).wait_for_faults(SHORT_S) == [Fault("GPU-1", 79)]


@pytest.mark.parametrize(
    "ask",
    [NvmlWatch.usage, NvmlWatch.processes, lambda watch: watch.wait_for_faults(SHORT_S)],
    ids=["usage", "processes", "faults"],
)
def test_without_a_driver_one_sentence_says_so_and_it_is_asked_again_later(ask):
    nvml = FakeNvml()
    nvml.init_error = "Driver Not Loaded"
    watch = NvmlWatch(nvml=nvml)
    with pytest.raises(DiscoveryFailed, match=r"^NVML did not start \(Driver Not Loaded\), expected"):
        ask(watch)
    nvml.init_error = ""
    ask(watch)
    assert nvml.opened == 1


def test_a_driver_that_stops_telling_of_faults_is_opened_anew():
    nvml = FakeNvml()
    watch = NvmlWatch(nvml=nvml)
    watch.wait_for_faults(SHORT_S)
    nvml.wait_error = "GPU is lost"
    with pytest.raises(DiscoveryFailed, match=r"^NVML does not tell of faults \(GPU is lost\), expected"):
        watch.wait_for_faults(SHORT_S)
    assert (nvml.opened, nvml.closed) == (1, 1)
    nvml.wait_error, nvml.faults = "", [(0, 79)]
    assert watch.wait_for_faults(SHORT_S) == [Fault("GPU-0", 79)]
    assert (nvml.opened, nvml.closed) == (2, 1)


def test_a_driver_that_does_not_count_its_cards_is_opened_anew():
    nvml = FakeNvml()
    watch = NvmlWatch(nvml=nvml)
    names, nvml.names = nvml.names, ()
    with pytest.raises(DiscoveryFailed, match=r"^NVML did not answer \(Unknown Error\), expected the cards"):
        watch.usage()
    nvml.names = names
    assert len(watch.usage()) == 4
    assert (nvml.opened, nvml.closed) == (2, 1)


def test_a_driver_that_fails_both_who_wait_for_faults_and_who_read_usage_is_told_to_both():
    class Failing(FakeNvml):
        """The driver goes away while one thread waits in it and another counts the cards."""

        waits, counts, closes = threading.Event(), threading.Event(), threading.Event()

        def nvmlEventSetWait_v2(self, events: int, milliseconds: int) -> Any:  # noqa: N802
            if not self.wait_error:
                return super().nvmlEventSetWait_v2(events, milliseconds)
            self.waits.set()
            self.counts.wait(5)
            raise self.NVMLError(self.wait_error)

        def nvmlDeviceGetCount(self) -> int:  # noqa: N802
            if not self.waits.is_set():
                return super().nvmlDeviceGetCount()
            self.counts.set()
            self.closes.wait(0.2)
            raise self.NVMLError("Uninitialized")

        def nvmlShutdown(self) -> None:  # noqa: N802
            super().nvmlShutdown()
            self.closes.set()

    nvml = Failing()
    watch = NvmlWatch(nvml=nvml)
    watch.wait_for_faults(SHORT_S)
    nvml.wait_error = "GPU is lost"
    failures: list[BaseException] = []

    def wait() -> None:
        with pytest.raises(DiscoveryFailed) as failure:
            watch.wait_for_faults(SHORT_S)
        failures.append(failure.value)

    waiting = threading.Thread(target=wait)
    waiting.start()
    nvml.waits.wait(5)
    with pytest.raises(DiscoveryFailed):
        watch.usage()
    waiting.join()
    assert len(failures) == 1
    assert nvml.closed == 1, "closed as often as opened"
