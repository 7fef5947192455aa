"""The types of arrays."""

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
U8 = NDArray[np.uint8]
Flags = NDArray[np.bool_]
I32 = NDArray[np.int32]
U32 = NDArray[np.uint32]
U16 = NDArray[np.uint16]
I8 = NDArray[np.int8]
