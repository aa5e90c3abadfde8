"""Tensors in and out of a Python model, whichever numpy there is.

The Python backend's stub of 2.51.0 is built for numpy 1: under numpy 2 it takes an array's item size from the wrong
place, so that arrays have to travel by DLPack there. Under numpy 1 DLPack can hang a thread that answers, so it is
not used there.
"""

from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils  # type: ignore[import-not-found]

NUMPY_1 = np.__version__.startswith("1.")


def read(request: Any, name: str) -> Any:
    """An input as an array; None where it was not sent."""
    found = pb_utils.get_input_tensor_by_name(request, name)
    if found is None:
        return None
    return found.as_numpy() if NUMPY_1 else np.from_dlpack(found)


def number(request: Any, name: str, default: int = 0) -> int:
    """The first number of an input, or the default where it was not sent."""
    found = read(request, name)
    return default if found is None else int(found.flatten()[0])


def tensor(name: str, array: Any) -> Any:
    """An output."""
    return pb_utils.Tensor(name, array) if NUMPY_1 else pb_utils.Tensor.from_dlpack(name, array.copy())


def respond(name: str, array: Any) -> Any:
    """A response with one output."""
    return pb_utils.InferenceResponse([tensor(name, array)])
