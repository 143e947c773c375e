"""The names of dtypes and how many bytes an element takes, also for dtypes that this process cannot make.

Names are torch's. A receiver without torch must still know the size of a bfloat16 to judge a header, so the table
stands here and is not asked of torch; the torch that is installed may know more, and those are taken from it.
"""

import sys
from typing import Any

from kpu.errors import UnsupportedTensor

PREFIX = "torch."

_BYTES_OF = {
    1: (
        "bool uint8 int8 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2 "
        "bits8 bits1x8 bits2x4 bits4x2 "
        "uint1 uint2 uint3 uint4 uint5 uint6 uint7 int1 int2 int3 int4 int5 int6 int7"
    ),
    2: "float16 bfloat16 uint16 int16 bits16",
    4: "float32 uint32 int32 complex32 bcomplex32",
    8: "float64 uint64 int64 complex64",
    16: "complex128",
}
ITEM_BYTES = {name: size for size, names in _BYTES_OF.items() for name in names.split()}
ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
}
QUANTISED = frozenset(("qint8", "quint8", "qint32", "quint4x2", "quint2x4"))


def dtype_name(text: str) -> str:
    """`torch.float32`, `float32` and `float` are one dtype."""
    name = text.strip().removeprefix(PREFIX)
    return ALIASES.get(name, name)


def item_bytes(name: str) -> int:
    """Bytes of one element, or a refusal of a dtype that nobody here knows."""
    size = ITEM_BYTES.get(name) or _of_the_installed_torch(name)
    if size is None or name in QUANTISED:
        raise UnsupportedTensor(f'dtype "{name[:64]}" is unknown, expected one such as "float32" or "bfloat16"')
    return size


def _of_the_installed_torch(name: str) -> int | None:
    """None also for a torch that another thread is still loading."""
    torch: Any = sys.modules.get("torch")
    found: Any = getattr(torch, "__dict__", {}).get(name)
    dtype_class = getattr(torch, "dtype", None)
    return int(found.itemsize) if dtype_class is not None and isinstance(found, dtype_class) else None
