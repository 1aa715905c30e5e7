"""np.linalg, for programs that import it from autograd."""

from typing import Any

import numpy as _np


def __getattr__(name: str) -> Any:
    return getattr(_np.linalg, name)
