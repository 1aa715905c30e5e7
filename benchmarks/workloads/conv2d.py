"""conv2d and both of its gradients, for the sizes that networks of images are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from workloads import pure


class Size(NamedTuple):
    """Images, channels and side, results, side of the kernel, stride, padding, groups."""

    n: int
    channels: int
    side: int
    results: int
    kernel: int
    stride: int = 1
    padding: int = 1
    groups: int = 1


def data_for(size: Size) -> Callable[[np.random.Generator], Any]:
    places = (size.side + 2 * size.padding - size.kernel) // size.stride + 1
    shapes = (
        (size.n, size.channels, size.side, size.side),
        (size.results, size.channels // size.groups, size.kernel, size.kernel),
        (size.n, size.results, places, places),
    )
    return lambda rng: [rng.normal(size=shape).astype(np.float32) for shape in shapes]


def systems(size: Size) -> dict[str, Any]:
    """The convolution and, for a cotangent, the gradients of images and weights."""
    stride, padding, groups = size.stride, size.padding, size.groups

    def lucid(data: Any) -> Any:
        import lucid

        def f(x: Any, w: Any, ct: Any) -> Any:
            y, pull = lucid.func.vjp(
                lambda x, w: lucid.conv2d(x, w, None, stride, padding, 1, groups), x, w
            )
            return y, *pull(ct)

        return pure.lucid(f, data)

    def jax(data: Any) -> Any:
        import jax

        def convolve(x: Any, w: Any) -> Any:
            around = [(padding, padding)] * 2
            return jax.lax.conv_general_dilated(
                x, w, (stride, stride), around, feature_group_count=groups
            )

        def f(x: Any, w: Any, ct: Any) -> Any:
            y, pull = jax.vjp(convolve, x, w)
            return y, *pull(ct)

        return pure.jax(f, data)

    def torch(data: Any) -> Any:
        import torch

        def f(x: Any, w: Any, ct: Any) -> Any:
            y = torch.conv2d(x, w, None, stride, padding, 1, groups)
            both = torch.ops.aten.convolution_backward(
                ct, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups,
                [True, True, False],
            )  # fmt: skip
            return y, *both[:2]

        return pure.torch(f, data)

    return {"lucid": lucid, "jax": jax, "torch": torch}


FIRST = Size(32, 1, 28, 16, 3)
SECOND = Size(32, 16, 14, 32, 3)
MIDDLE = Size(8, 64, 56, 64, 3)
PIXEL = Size(8, 64, 56, 64, 1, padding=0)
STRIDE = Size(8, 64, 56, 128, 3, stride=2)
DEPTHWISE = Size(8, 64, 56, 64, 3, groups=64)
LAST = Size(8, 256, 7, 256, 3)

FIRST_SYSTEMS, first_data = systems(FIRST), data_for(FIRST)
SECOND_SYSTEMS, second_data = systems(SECOND), data_for(SECOND)
MIDDLE_SYSTEMS, middle_data = systems(MIDDLE), data_for(MIDDLE)
PIXEL_SYSTEMS, pixel_data = systems(PIXEL), data_for(PIXEL)
STRIDE_SYSTEMS, stride_data = systems(STRIDE), data_for(STRIDE)
DEPTHWISE_SYSTEMS, depthwise_data = systems(DEPTHWISE), data_for(DEPTHWISE)
LAST_SYSTEMS, last_data = systems(LAST), data_for(LAST)
