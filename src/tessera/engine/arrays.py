"""Names for the array shapes that the engine passes around.

N is the number of rows (nodes), D a selection of them, C the widest node's number of cards.
"""

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Rows = NDArray[np.intp]
