"""What arrays hold, by the names that annotations use in every room."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Single = NDArray[np.float32]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]
Indices = NDArray[np.int64]
Index = NDArray[np.intp]
