"""Who judges, from outside the library: CUPTI in the process that works, and NVML in one without the library."""

import ctypes
import threading
import time
from collections.abc import Callable
from ctypes import byref, c_uint, c_ulonglong, c_void_p
from dataclasses import dataclass
from importlib import import_module
from statistics import fmean
from typing import Any

from .windows import busy_shares, variation

PERIOD_S = 0.1
SETTLED_S = 0.4
"""NVML's utilisation tells of the time before it was asked, and lags behind a change."""
MIB = 1 << 20
SM_CLOCK = 1
UUID_ROOM = 96
WAITING = ("Sync", "Wait Event")
"""How CUPTI's records end that are not work of the card."""


@dataclass(frozen=True)
class Busy:
    """What the card did for one process, by CUPTI."""

    share: float
    variation: float | None
    copy_share: float
    kernels: int
    kernel_us: float
    windows: int


def profile(work: Callable[[], None]) -> Busy | None:
    """Run `work` under PyTorch's profiler. It stays attached and slows launches afterwards: profile last."""
    profiler: Any = import_module("torch.profiler")
    with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as profiled:
        work()
    records = [
        (record.start_ns(), record.start_ns() + record.duration_ns(), record.name())
        for record in profiled.profiler.kineto_results.events()
        if "CUDA" in str(record.device_type()) and record.duration_ns() > 0
    ]
    return _busy([record for record in records if is_work(record[2])])


def is_work(name: str) -> bool:
    return not name.startswith("cuda") and not name.endswith(WAITING)


def _busy(records: list[tuple[int, int, str]]) -> Busy | None:
    if not records:
        return None
    begins, ends = min(record[0] for record in records), max(record[1] for record in records)
    kernels = [record[:2] for record in records if not record[2].startswith("Mem")]
    copies = [record[:2] for record in records if record[2].startswith("Mem")]
    shares = busy_shares(kernels, begins, ends)
    if not shares or not kernels:
        return None
    return Busy(
        share=fmean(shares),
        variation=variation(shares),
        copy_share=fmean(busy_shares(copies, begins, ends)),
        kernels=len(kernels),
        kernel_us=fmean(until - since for since, until in kernels) / 1e3,
        windows=len(shares),
    )


class _Memory(ctypes.Structure):
    _fields_ = (("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong))


class _Rates(ctypes.Structure):
    _fields_ = (("gpu", c_uint), ("memory", c_uint))


@dataclass(frozen=True)
class Sample:
    at: float
    utilisation: int
    clock_mhz: int
    watts: float


class Card:
    """The first card, by NVML, which is asked in this process and therefore without any library before it."""

    def __init__(self) -> None:
        self._nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self._handle = c_void_p()
        self._ask("nvmlInit_v2")
        self._ask("nvmlDeviceGetHandleByIndex_v2", 0, byref(self._handle))
        self.samples: list[Sample] = []

    def uuid(self) -> str:
        text = ctypes.create_string_buffer(UUID_ROOM)
        self._ask("nvmlDeviceGetUUID", self._handle, text, UUID_ROOM)
        return text.value.decode()

    def name(self) -> str:
        text = ctypes.create_string_buffer(UUID_ROOM)
        self._ask("nvmlDeviceGetName", self._handle, text, UUID_ROOM)
        return text.value.decode()

    def used_mib(self) -> float:
        memory = _Memory()
        self._ask("nvmlDeviceGetMemoryInfo", self._handle, byref(memory))
        return memory.used / MIB

    def watch(self) -> None:
        """Keep samples until the process ends."""
        threading.Thread(target=self._sample, daemon=True).start()

    def between(self, begins_at: float, ends_at: float) -> dict[str, float] | None:
        """Means of the samples that tell of that time alone."""
        seen = [sample for sample in self.samples if begins_at + SETTLED_S <= sample.at <= ends_at]
        if not seen:
            return None
        return {
            "utilisation": fmean(sample.utilisation for sample in seen),
            "clock_mhz": fmean(sample.clock_mhz for sample in seen),
            "watts": fmean(sample.watts for sample in seen),
        }

    def _sample(self) -> None:
        while True:
            rates, clock, milliwatts = _Rates(), c_uint(), c_uint()
            self._ask("nvmlDeviceGetUtilizationRates", self._handle, byref(rates))
            self._try("nvmlDeviceGetClockInfo", self._handle, SM_CLOCK, byref(clock))
            self._try("nvmlDeviceGetPowerUsage", self._handle, byref(milliwatts))
            self.samples.append(Sample(time.monotonic(), rates.gpu, clock.value, milliwatts.value / 1e3))
            time.sleep(PERIOD_S)

    def _ask(self, entry: str, *arguments: object) -> None:
        code = getattr(self._nvml, entry)(*arguments)
        if code:
            raise OSError(f"{entry} of NVML answered {code}, expected 0; is there a card and its driver?")

    def _try(self, entry: str, *arguments: object) -> None:
        """A figure that is nice to have; a simulated NVML lacks some."""
        if hasattr(self._nvml, entry):
            getattr(self._nvml, entry)(*arguments)
