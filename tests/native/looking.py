"""What programs under test need: the driver by its C interface, as any program would load it."""

import ctypes

MIB = 1 << 20


class Cuda:
    """Functions return the driver's codes; what they find is what they return otherwise."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")

    def init(self) -> int:
        return self.library.cuInit(0)

    def count(self) -> int:
        found = ctypes.c_int(-1)
        code = self.library.cuDeviceGetCount(ctypes.byref(found))
        return found.value if code == 0 else -code

    def uuid(self, device: int) -> str:
        found = (ctypes.c_ubyte * 16)()
        assert self.library.cuDeviceGetUuid(found, device) == 0
        digits = bytes(found).hex()
        return "GPU-" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    def uuids(self) -> list[str]:
        return [self.uuid(device) for device in range(self.count())]

    def name(self, device: int) -> str:
        found = ctypes.create_string_buffer(100)
        assert self.library.cuDeviceGetName(found, 100, device) == 0
        return found.value.decode()

    def memory_mib(self, device: int) -> int:
        found = ctypes.c_size_t()
        assert self.library.cuDeviceTotalMem_v2(ctypes.byref(found), device) == 0
        return found.value // MIB

    def attribute(self, number: int, device: int = 0) -> int:
        found = ctypes.c_int()
        assert self.library.cuDeviceGetAttribute(ctypes.byref(found), number, device) == 0
        return found.value

    def enter(self, device: int = 0) -> int:
        """Make the primary context of the device current."""
        context = ctypes.c_void_p()
        code = self.library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
        return code or self.library.cuCtxSetCurrent(context)

    def leave(self, device: int = 0) -> int:
        return self.library.cuDevicePrimaryCtxRelease_v2(device)

    def take(self, nbytes: int) -> tuple[int, int]:
        """The code and the address."""
        pointer = ctypes.c_uint64()
        code = self.library.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(nbytes))
        return code, pointer.value

    def give_back(self, pointer: int) -> int:
        return self.library.cuMemFree_v2(ctypes.c_uint64(pointer))

    def free_mib(self) -> int:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        assert self.library.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
        return free.value // MIB

    def error_name(self, code: int) -> str:
        found = ctypes.c_char_p()
        self.library.cuGetErrorName(code, ctypes.byref(found))
        return (found.value or b"").decode()


cuda = Cuda()


def nvml_uuids() -> list[str]:
    """The cards as NVML shows them."""
    library = ctypes.CDLL("libnvidia-ml.so.1")
    count, card, uuid = ctypes.c_uint(), ctypes.c_void_p(), ctypes.create_string_buffer(96)
    assert library.nvmlInit_v2() == 0
    assert library.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
    found: list[str] = []
    for index in range(count.value):
        assert library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(card)) == 0
        assert library.nvmlDeviceGetUUID(card, uuid, 96) == 0
        found.append(uuid.value.decode())
    return found


def alloc(mib: int, device: int = 0) -> int:
    """Start as a program starts, and take memory; the code of the last step."""
    return cuda.init() or cuda.enter(device) or cuda.take(mib * MIB)[0]
