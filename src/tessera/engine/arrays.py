"""Names for the array shapes that the engine passes around, and sums of products over them.

N is the number of rows (nodes), D a selection of them, C the widest node's number of cards.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Rows = NDArray[np.intp]


def contract(subscripts: str, *operands: NDArray[Any]) -> NDArray[Any]:
    """`np.einsum` that gives zero for sums over nothing.

    NumPy multiplies them with what lies in the memory of an empty array, and zero times that need not be a number.
    """
    if all(operand.size for operand in operands):
        return np.einsum(subscripts, *operands)  # noqa: TID251
    names, result = subscripts.split("->")
    length = {
        name: size
        for axes, one in zip(names.split(","), operands, strict=True)
        for name, size in zip(axes, one.shape, strict=True)
    }
    return np.zeros([length[name] for name in result], np.result_type(*operands))
