"""A program as users write them: it finds its card, takes memory of it in steps, and tells what it got."""

import ctypes
import sys
import time

MIB = 1 << 20
STEPS = 4


def main(wanted_mib: int) -> None:
    cuda = ctypes.CDLL("libcuda.so.1")
    context, name = ctypes.c_void_p(), ctypes.create_string_buffer(100)
    check(cuda.cuInit(0), "no card was found")
    cuda.cuDeviceGetName(name, len(name), 0)
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "the card has no room for a context")
    cuda.cuCtxSetCurrent(context)
    print(f"I see {name.value.decode()}", flush=True)
    for step in range(1, STEPS + 1):
        pointer, part = ctypes.c_uint64(), wanted_mib // STEPS * MIB
        check(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(part)), "there is no more for me")
        print(f"I have taken {step * wanted_mib // STEPS} MiB", flush=True)
        time.sleep(0.5)


def check(code: int, complaint: str) -> None:
    if code:
        sys.exit(f"{complaint} (CUDA error {code})")


if __name__ == "__main__":
    main(int(sys.argv[1]))
