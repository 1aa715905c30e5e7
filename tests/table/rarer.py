"""Calls that pass the rarer parameters of a name, added to those of its row.

tests/matrix counts the parameters that no call passes.
"""

import numpy as np
from scipy.special import log_softmax

from tests.cases.case import Arg, index, real
from tests.cases.linalg import matrix
from tests.table.row import call


def apart(*shape: int) -> Arg:
    return real(*shape, distinct=True)


def sample(*shape: int) -> Arg:
    return real(*shape, low=0.0, high=1.0)


def summed(x, t, size_average, reduce):
    """PyTorch's older words for reduction="sum"."""
    return -log_softmax(x, 1)[np.arange(len(x)), t].sum()


def solved(A, B, left):
    return B @ np.linalg.inv(A), np.zeros((), "int32")


CUBE = call(apart(1, 2, 4, 6, 6), 2, None, 0.5, True, _random_samples=sample(1, 2, 3))
SQUARE = call(apart(1, 2, 6, 6), 2, None, 0.5, True, _random_samples=sample(1, 2, 2))
WITH_NAN = [1.0, float("nan")]
MORE_CALLS = {
    "binomial": [
        call(real(low=0, high=0), real(low=0, high=1), size=(2, 3)).but(
            expected=lambda n, p, size: np.zeros(size)
        )
    ],
    "poisson": [
        call(real(low=1, high=5), size=(2, 3)).but(expected=lambda rate, size: np.ones(size))
    ],
    "linalg.solve_ex": [call(matrix(3, 3), real(2, 3), left=False).but(expected=solved)],
    "nn.functional.cross_entropy": [
        call(real(3, 4), index(3, high=4), size_average=False, reduce=True).but(expected=summed)
    ],
    "nn.functional.fractional_max_pool2d": [SQUARE],
    "nn.functional.fractional_max_pool2d_with_indices": [SQUARE],
    "nn.functional.fractional_max_pool3d": [CUBE],
    "nn.functional.fractional_max_pool3d_with_indices": [CUBE],
    "transpose": [call(real(2, 3, 4), axes=(2, 0, 1)).but(expected=np.transpose)],
    "flip": [call(real(2, 3), axis=1).but(expected=np.flip)],
    "diagonal": [
        call(real(2, 3, 4), axis1=2, axis2=1).but(
            expected=lambda x, axis1, axis2: np.diagonal(x, 0, axis1, axis2)
        )
    ],
    "squeeze": [call(real(1, 2, 1), 0, 2).but(expected=lambda x, *dims: x.squeeze(dims))],
    "broadcast_to": [call(real(3), 2, 3).but(expected=lambda x, *s: np.broadcast_to(x, s))],
    "linspace": [
        call(0.0, 1.0, 4, endpoint=False).but(
            expected=lambda a, b, n, endpoint: np.linspace(a, b, n, endpoint).astype("float32")
        )
    ],
    "equal": [
        call(WITH_NAN, WITH_NAN, equal_nan=True).but(expected=lambda x, y, equal_nan: np.True_),
    ],
    "max": [call(real(2, 3), other=real(3)).but(expected=lambda x, other: np.maximum(x, other))],
    "min": [call(real(2, 3), other=real(3)).but(expected=lambda x, other: np.minimum(x, other))],
    "repeat_interleave": [
        call(real(3), 2, output_size=6).but(expected=lambda x, n, output_size: np.repeat(x, n))
    ],
    "nn.functional.conv3d": [call(real(1, 1, 3, 4, 3), real(1, 1, 2, 2, 2), dilation=(2, 1, 2))],
    "nn.functional.conv_transpose3d": [
        call(
            real(1, 2, 2, 2, 2),
            real(2, 1, 2, 2, 1),
            stride=2,
            output_padding=1,
            groups=2,
            dilation=(1, 2, 1),
        )
    ],
    "nn.functional.lp_pool2d": [call(real(2, 5, 4, low=0.5), 2, 3, 2, ceil_mode=True)],
    "nn.functional.lp_pool3d": [call(real(1, 3, 3, 3, low=0.5), 2, 2, 2, ceil_mode=True)],
    "nn.functional.avg_pool3d": [call(real(1, 1, 3, 4, 4), 2, divisor_override=3)],
    "nn.functional.max_pool1d_with_indices": [call(apart(2, 3, 7), 2, 1, 0, 2)],
    "nn.functional.max_pool2d_with_indices": [call(apart(2, 5, 6), 2, 1, 0, 2)],
    "nn.functional.max_pool3d_with_indices": [call(apart(2, 3, 4, 3), 2, 1, 0, (1, 2, 2))],
    "nn.functional.max_unpool1d": [
        call(real(1, 2, 1), index(1, 2, 1, high=2), 3, 2, 1, (2,)),
    ],
    "nn.functional.max_unpool3d": [
        call(real(1, 1, 1, 1, 1), index(1, 1, 1, 1, 1, high=8), 3, 2, 1, (2, 2, 2)),
    ],
}
