"""What NVIDIA's cards do: how much of them is in use, and the faults that the driver tells of.

NVML stays open here, because faults are told only to those who wait for them. Calls come from one thread at a time.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from tessera.errors import DiscoveryFailed
from tessera.vendors.nvml_asking import ask_nvml, import_nvml, text_of
from tessera.vendors.usage import CardProcess, CardUsage, Fault

T = TypeVar("T")
_MIB = 2**20
WAIT_S = 1.0


class NvmlWatch:
    """`nvml` is the machine's own unless a test brings another."""

    def __init__(self, *, nvml: Any = None) -> None:
        self._nvml = nvml
        self._opened: Any = None
        self._events: Any = None
        self._lock = threading.Lock()

    def usage(self) -> dict[str, CardUsage]:
        """By UUID; a card that does not answer is left out."""
        return self._of_each_card(_read_usage)

    def processes(self) -> dict[str, tuple[CardProcess, ...]]:
        """Those that compute, by UUID of the card; a card that does not answer is left out."""
        return self._of_each_card(_read_processes)

    def _of_each_card(self, read: Callable[[Any, Any], T]) -> dict[str, T]:
        with self._lock:
            nvml = self._open()
            found: dict[str, T] = {}
            for index in range(self._asked(nvml, nvml.nvmlDeviceGetCount)):
                found |= ask_nvml(nvml, lambda index=index: _of_card(nvml, index, read), {})
            return found

    async def upcoming_faults(self) -> list[Fault]:
        return await asyncio.to_thread(self.wait_for_faults, WAIT_S)

    def wait_for_faults(self, seconds: float) -> list[Fault]:
        """Those of the next moments; an empty list when nothing happened."""
        with self._lock:
            nvml = self._open()
            if self._events is None:
                self._events = self._subscribe(nvml)
            events = self._events
        try:
            event = nvml.nvmlEventSetWait_v2(events, round(seconds * 1000))
        except nvml.NVMLError_Timeout:
            return []
        except nvml.NVMLError as error:
            with self._lock:
                self._close()
            raise DiscoveryFailed(f"NVML does not tell of faults ({error}), expected it to; see nvidia-smi") from None
        if event.eventType != nvml.nvmlEventTypeXidCriticalError:
            return []
        uuid = ask_nvml(nvml, lambda: text_of(nvml.nvmlDeviceGetUUID(event.device)), "")
        return [Fault(uuid, int(event.eventData))] if uuid else []

    def _subscribe(self, nvml: Any) -> Any:
        events = self._asked(nvml, nvml.nvmlEventSetCreate)
        for index in range(self._asked(nvml, nvml.nvmlDeviceGetCount)):
            ask_nvml(nvml, lambda index=index: _register(nvml, index, events), None)
        return events

    def _open(self) -> Any:
        if self._opened is None:
            nvml = self._nvml if self._nvml is not None else import_nvml()
            try:
                nvml.nvmlInit()
            except nvml.NVMLError as error:
                raise DiscoveryFailed(f"NVML did not start ({error}), expected an NVIDIA driver") from None
            self._opened = nvml
        return self._opened

    def _asked(self, nvml: Any, question: Any) -> Any:
        try:
            return question()
        except nvml.NVMLError as error:
            self._close()
            raise DiscoveryFailed(f"NVML did not answer ({error}), expected the cards; see nvidia-smi") from None

    def _close(self) -> None:
        """Start over at the next call: the driver may have been reloaded."""
        nvml, self._opened, self._events = self._opened, None, None
        if nvml is not None:
            ask_nvml(nvml, nvml.nvmlShutdown, None)


def _of_card(nvml: Any, index: int, read: Callable[[Any, Any], T]) -> dict[str, T]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    return {text_of(nvml.nvmlDeviceGetUUID(handle)): read(nvml, handle)}


def _read_usage(nvml: Any, handle: Any) -> CardUsage:
    memory = int(nvml.nvmlDeviceGetMemoryInfo(handle).used) // _MIB
    busy = ask_nvml(nvml, lambda: int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu), None)
    return CardUsage(memory_used_mib=memory, busy_percent=busy)


def _read_processes(nvml: Any, handle: Any) -> tuple[CardProcess, ...]:
    """A driver that does not tell how much a process has tells that it is there."""
    listed = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    return tuple(CardProcess(int(one.pid), int(one.usedGpuMemory or 0)) for one in listed)


def _register(nvml: Any, index: int, events: Any) -> None:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, events)
