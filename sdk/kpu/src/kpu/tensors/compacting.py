"""Tensors whose elements do not lie one after the other, or not in our order of bytes: when they are copied to be so.

A large one is copied when its bytes are wanted, and straight to where they are wanted: in shared memory there would
else be two copies of it at once. What a small one takes is not worth the detour.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Fetch = Callable[[NDArray[np.uint8]], None]
"""Copies the bytes of a tensor to memory of this host that has room for them."""

LARGE_BYTES = 1 << 20
