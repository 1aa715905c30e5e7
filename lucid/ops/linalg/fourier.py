"""Discrete Fourier transforms along axes: complex to complex, real to complex, and back.

    fft      y[k] = scale * sum over j of x[j] e**(-2 pi i j k / n), with + where `inverse`
    rfft     the same for real x, up to k = n // 2: the rest is its conjugate
    irfft    back to n real numbers; the imaginary parts of y[0] and y[n / 2] are ignored

`norm` places the factor 1 / n: "backward" in inverse transforms, "forward" in the others, "ortho"
1 / sqrt(n) in both. The adjoint is the transform in the other direction with the other norm.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import DTypeError
from lucid.ir.types import Type
from lucid.ops.core.kinds import Linear
from lucid.ops.core.promote import cast, complex_dtype
from lucid.tape.bind import bind
from lucid.tape.node import wrap

ADJOINT_NORM = {"backward": "forward", "forward": "backward", "ortho": "ortho"}
REAL_OF: dict[np.dtype, np.dtype] = {
    np.dtype("complex64"): np.dtype("float32"),
    np.dtype("complex128"): np.dtype("float64"),
}


class Fft(Linear):
    """The transform of complex numbers along `axes`."""

    axes: tuple[int, ...]
    inverse: bool = False
    norm: str = "backward"
    lowering = "lucid.compiler.lowering.fft.fft_lowering:FftLowering"

    def infer(self, x: Type) -> Type:
        if x.dtype.kind != "c":
            raise DTypeError(f"fft: operand of dtype {x.dtype}; it takes complex dtypes")
        return x

    def eval(self, x: np.ndarray) -> np.ndarray:
        import scipy.fft

        if x.size == 0 or not self.axes:
            return x.copy()
        transform = scipy.fft.ifftn if self.inverse else scipy.fft.fftn
        return transform(x, axes=self.axes, norm=self.norm)

    def adjoint(self, ct: Any, x: Any) -> Any:
        return bind(Fft(self.axes, not self.inverse, ADJOINT_NORM[self.norm]), ct)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Fft(tuple(a + 1 for a in self.axes), self.inverse, self.norm), x)


class Rfft(Linear):
    """The first half of the transform of real numbers along `axis`; float16 gives complex64."""

    axis: int
    norm: str = "backward"
    lowering = "lucid.compiler.lowering.fft.fft_lowering:RfftLowering"

    def infer(self, x: Type) -> Type:
        if x.dtype.kind != "f":
            raise DTypeError(f"rfft: operand of dtype {x.dtype}; it takes floating dtypes")
        return Type(
            complex_dtype(x.dtype), resize_axis(x.shape, self.axis, x.shape[self.axis] // 2 + 1)
        )

    def eval(self, x: np.ndarray) -> np.ndarray:
        import scipy.fft

        if x.size == 0:
            shape = resize_axis(x.shape, self.axis, x.shape[self.axis] // 2 + 1)
            return np.zeros(shape, complex_dtype(x.dtype))
        x = x.astype("float32") if x.dtype == np.float16 else x
        return scipy.fft.rfft(x, axis=self.axis, norm=self.norm)

    def adjoint(self, ct: Any, x: Any) -> Any:
        n = x.shape[self.axis]
        halved = scale_doubled_frequencies(ct, self.axis, n, 0.5)
        return cast(bind(Irfft(self.axis, n, ADJOINT_NORM[self.norm]), halved), x.dtype)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Rfft(self.axis + 1, self.norm), x)


class Irfft(Linear):
    """The `n` real numbers along `axis` whose rfft is given."""

    axis: int
    n: int
    norm: str = "backward"
    lowering = "lucid.compiler.lowering.fft.fft_lowering:IrfftLowering"

    def infer(self, x: Type) -> Type:
        if x.dtype.kind != "c":
            raise DTypeError(f"irfft: operand of dtype {x.dtype}; it takes complex dtypes")
        return Type(REAL_OF[x.dtype], resize_axis(x.shape, self.axis, self.n))

    def eval(self, x: np.ndarray) -> np.ndarray:
        import scipy.fft

        shape = resize_axis(x.shape, self.axis, self.n)
        if 0 in shape:
            return np.zeros(shape, REAL_OF[x.dtype])
        return scipy.fft.irfft(x, n=self.n, axis=self.axis, norm=self.norm)

    def adjoint(self, ct: Any, x: Any) -> Any:
        return scale_doubled_frequencies(
            bind(Rfft(self.axis, ADJOINT_NORM[self.norm]), ct), self.axis, self.n, 2.0
        )

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Irfft(self.axis + 1, self.n, self.norm), x)


def resize_axis(shape: tuple[int, ...], axis: int, n: int) -> tuple[int, ...]:
    return (*shape[:axis], n, *shape[axis + 1 :])


def scale_doubled_frequencies(x: Any, axis: int, n: int, factor: float) -> Any:
    """Scale the frequencies that have a conjugate partner: all but 0, and n / 2 if n is even."""
    weights = np.full(n // 2 + 1, factor, REAL_OF[x.dtype])
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return x * wrap(weights.reshape(-1, *[1] * (x.ndim - axis - 1)))
