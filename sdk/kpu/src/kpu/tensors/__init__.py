"""What a tensor is: a dtype, a shape, a few flags, and its bytes.

Torch tensors, numpy arrays and whatever speaks DLPack come in; torch tensors go out where torch is installed, numpy
arrays elsewhere. Bytes are taken and given as they lie in memory, little-endian and compact, so that every bit survives
and no dtype needs a rule of its own. Nothing here does I/O.
"""

from kpu.tensors.description import Description, parse_shape
from kpu.tensors.dtypes import item_bytes
from kpu.tensors.giving import can_give, give, make_room
from kpu.tensors.taking import Taken, refuse_unsupported, take
from kpu.tensors.torch_tensors import the_torch

__all__ = [
    "Description",
    "Taken",
    "can_give",
    "give",
    "item_bytes",
    "make_room",
    "parse_shape",
    "refuse_unsupported",
    "take",
    "the_torch",
]
