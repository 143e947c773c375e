"""Structures of the CUDA driver that ask for memory, as they lie in it."""

import ctypes
from ctypes import c_int, c_size_t, c_uint, c_uint64, c_ushort, c_void_p


class Location(ctypes.Structure):
    _fields_ = (("type", c_int), ("id", c_int))


class HandleProperties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = (
        ("type", c_int), ("handle_types", c_int), ("location", Location), ("metadata", c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )  # fmt: skip


class Access(ctypes.Structure):
    _fields_ = (("location", Location), ("flags", c_int))


class PoolProperties(ctypes.Structure):
    """CUmemPoolProps."""

    _fields_ = (
        ("type", c_int), ("handle_types", c_int), ("location", Location), ("security", c_void_p),
        ("largest", c_size_t), ("usage", c_ushort), ("reserved", ctypes.c_ubyte * 54),
    )  # fmt: skip


class ArrayShape(ctypes.Structure):
    _fields_ = (("width", c_size_t), ("height", c_size_t), ("format", c_int), ("channels", c_uint))


class Array3dShape(ctypes.Structure):
    _fields_ = (
        ("width", c_size_t), ("height", c_size_t), ("depth", c_size_t), ("format", c_int), ("channels", c_uint),
        ("flags", c_uint),
    )  # fmt: skip


class Part(ctypes.Structure):
    """CUdevResource: the multiprocessors of a device, or some of them."""

    _fields_ = (("type", c_int), ("rest", ctypes.c_ubyte * 252))


class Copy2d(ctypes.Structure):
    """CUDA_MEMCPY2D."""

    _fields_ = (
        ("source_x", c_size_t), ("source_y", c_size_t), ("source_memory", c_int), ("source_host", c_void_p),
        ("source_device", c_uint64), ("source_array", c_void_p), ("source_pitch", c_size_t),
        ("target_x", c_size_t), ("target_y", c_size_t), ("target_memory", c_int), ("target_host", c_void_p),
        ("target_device", c_uint64), ("target_array", c_void_p), ("target_pitch", c_size_t),
        ("bytes", c_size_t), ("height", c_size_t),
    )  # fmt: skip
