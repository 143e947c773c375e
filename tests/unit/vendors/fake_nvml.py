"""A stand-in for the pynvml module: two pairs of cards, each joined by four NVLinks; the last card cannot do MIG."""

import ctypes
from types import SimpleNamespace
from typing import Any

NOT_SUPPORTED = "Not Supported"


class FakeNvml:
    class NVMLError(Exception):
        pass

    class NVMLError_Timeout(NVMLError):  # noqa: N801
        pass

    nvmlEventTypeXidCriticalError = 8  # noqa: N815

    NVML_SUCCESS = 0
    NVML_FI_DEV_GET_GPU_RECOVERY_ACTION = 230
    NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON = 90
    NVML_FI_DEV_NVLINK_GET_SPEED = 164

    class c_nvmlGpuInstancePlacement_t(ctypes.Structure):  # noqa: N801
        _fields_ = (("start", ctypes.c_uint), ("size", ctypes.c_uint))

    def __init__(self, *, names: tuple[Any, ...] = ("NVIDIA A100-SXM4-40GB",) * 4, switch: bool = False) -> None:
        self.names = names
        self.switch = switch
        self.opened = self.closed = 0
        self.init_error = ""
        self.lost_cards: tuple[int, ...] = ()
        self.memory_total = 40_960 * 2**20
        self.recovery_actions: dict[int, int] = {}
        self.link_speeds: dict[int, int] = {}
        self.link_version = 0
        self.faults: list[tuple[int, int]] = []
        self.wait_error = ""
        self.processes: dict[int, list[tuple[int, int | None]]] = {}
        self.watched: dict[int, set[int]] = {}

    def nvmlInit(self) -> None:  # noqa: N802
        if self.init_error:
            raise self.NVMLError(self.init_error)
        self.opened += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.closed += 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        if not self.names:
            raise self.NVMLError("Unknown Error")
        return len(self.names)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        if index in self.lost_cards:
            raise self.NVMLError("GPU is lost")
        return index

    def nvmlDeviceGetFieldValues(self, handle: int, fields: list[Any]) -> list[Any]:  # noqa: N802
        """`link_speeds` are by the field that tells them, in MB/s; a field that is not there is not supported."""
        known = {self.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION: self.recovery_actions.get(handle, 0), **self.link_speeds}
        asked = [field[0] if isinstance(field, tuple) else field for field in fields]
        return [
            SimpleNamespace(nvmlReturn=0 if field in known else 3, value=SimpleNamespace(uiVal=known.get(field, 0)))
            for field in asked
        ]

    def nvmlDeviceGetNvLinkVersion(self, handle: int, link: int) -> int:  # noqa: ARG002, N802
        if not self.link_version:
            raise self.NVMLError(NOT_SUPPORTED)
        return self.link_version

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        return f"GPU-{handle}"

    def nvmlDeviceGetName(self, handle: int) -> Any:  # noqa: N802
        return self.names[handle]

    def nvmlDeviceGetPciInfo(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(busId=f"00000000:{handle:02X}:00.0")

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:  # noqa: N802
        if not self.memory_total:
            raise self.NVMLError(NOT_SUPPORTED)
        return SimpleNamespace(total=self.memory_total, used=(handle + 1) * 2**20)

    def nvmlDeviceGetMigMode(self, handle: int) -> list[int]:  # noqa: N802
        if handle == 3:
            raise self.NVMLError(NOT_SUPPORTED)
        return [1 if handle == 2 else 0, 0]

    def nvmlDeviceGetGpuInstanceProfileInfo(self, handle: int, profile: int) -> Any:  # noqa: ARG002, N802
        known = {
            0: ("MIG 1g.5gb", 4864, 14, 1, 7),
            1: ("MIG 1g.5gb+me", 4864, 14, 1, 9),
            4: (b"MIG 7g.40gb", 40192, 98, 7, 1),
        }
        if profile not in known:
            raise self.NVMLError(NOT_SUPPORTED)
        name, memory, processors, slices, instances = known[profile]
        return SimpleNamespace(
            id=profile,
            name=name,
            memorySizeMB=memory,
            multiprocessorCount=processors,
            sliceCount=slices,
            instanceCount=instances,
        )

    def nvmlDeviceGetGpuInstancePossiblePlacements(self, handle: int, profile: int, found: Any, count: Any) -> None:  # noqa: N802
        """The smallest profile fits at 0 and 1; of the others nothing is known. Asked without a list, it counts."""
        if handle or profile:
            raise self.NVMLError(NOT_SUPPORTED)
        count._obj.value = 2
        for index in range(2 if found else 0):
            found[index].start, found[index].size = index, 1

    def nvmlDeviceGetNvLinkState(self, handle: int, link: int) -> int:  # noqa: ARG002, N802
        if link >= 12:
            raise self.NVMLError(NOT_SUPPORTED)
        return int(link < 4)

    def nvmlDeviceGetNvLinkRemoteDeviceType(self, handle: int, link: int) -> int:  # noqa: ARG002, N802
        return 2 if self.switch else 0

    def nvmlDeviceGetNvLinkRemotePciInfo(self, handle: int, link: int) -> Any:  # noqa: ARG002, N802
        return SimpleNamespace(busId=f"00000000:{handle ^ 1:02X}:00.0".encode())

    def nvmlDeviceGetTopologyCommonAncestor(self, one: int, other: int) -> int:  # noqa: N802
        return 20 if one // 2 == other // 2 else 50

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:  # noqa: N802
        if handle == 3:
            raise self.NVMLError(NOT_SUPPORTED)
        return SimpleNamespace(gpu=10 * handle)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:  # noqa: N802
        """`processes` are pairs of a number and bytes, by card."""
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in self.processes.get(handle, ())]

    def nvmlEventSetCreate(self) -> int:  # noqa: N802
        self.watched[len(self.watched)] = set()
        return len(self.watched) - 1

    def nvmlDeviceRegisterEvents(self, handle: int, _: int, events: int) -> None:  # noqa: N802
        self.watched[events].add(handle)

    def nvmlEventSetWait_v2(self, events: int, milliseconds: int) -> Any:  # noqa: ARG002, N802
        """The next of `faults`, pairs of a card and an XID, that this set was made to hear of."""
        if self.wait_error:
            raise self.NVMLError(self.wait_error)
        for fault in [fault for fault in self.faults if fault[0] in self.watched[events]]:
            self.faults.remove(fault)
            return SimpleNamespace(device=fault[0], eventType=8, eventData=fault[1])
        raise self.NVMLError_Timeout("Timeout")
