"""Functions that exported modules contain, as text: each needs only NumPy."""

from __future__ import annotations

import re

from lucid.exporters.numpy_library import LIBRARY

SOURCE = '''
def _array(x, dtype, shape):
    """An argument, checked and in row-major order."""
    x = np.ascontiguousarray(x, dtype).reshape(np.shape(x))
    if x.shape != shape:
        raise ValueError(f"an argument has shape {x.shape}; the module was exported for {shape}")
    return x


def _results(*ys):
    """The results as new arrays: one, or a tuple."""
    ys = tuple(np.array(y) for y in ys)
    return ys[0] if len(ys) == 1 else ys


def _broadcast(x, shape, axes):
    """x with its axes at the places `axes` of a larger shape."""
    x = np.asarray(x)
    sizes = [1] * len(shape)
    for n, axis in zip(x.shape, axes):
        sizes[axis] = n
    return np.broadcast_to(x.reshape(sizes), shape)


def _relu(x):
    return np.where(x < 0, np.zeros((), x.dtype), x)


def _scale(a, b):
    """a * b, in which zero times inf is zero."""
    return np.where(np.equal(a, 0), np.zeros((), np.result_type(a, b)), a * b)


def _rsqrt(x):
    return np.ones((), x.dtype) / np.sqrt(x)


def _sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, np.ones((), x.dtype)) / (e + np.ones((), x.dtype))


def _clamp(x, low, high):
    return np.minimum(np.maximum(x, low), high)


def _iota(shape, axis, dtype):
    """The index along an axis."""
    sizes = [n if i == axis else 1 for i, n in enumerate(shape)]
    return np.broadcast_to(np.arange(shape[axis], dtype=dtype).reshape(sizes), shape)


def _put(x, updates, at):
    y = np.array(x)
    y[at] = updates
    return y


def _pad(x, low, high, interior):
    """Zeros around and between elements; negative numbers remove elements."""
    x = np.asarray(x)
    spread = [n + max(n - 1, 0) * k for n, k in zip(x.shape, interior)]
    y = np.zeros([n + max(a, 0) + max(b, 0) for n, a, b in zip(spread, low, high)], x.dtype)
    at = [slice(max(a, 0), max(a, 0) + n, k + 1) for n, a, k in zip(spread, low, interior)]
    y[tuple(at)] = x
    cut = [slice(max(-a, 0), n - max(-b, 0)) for n, a, b in zip(y.shape, low, high)]
    return y[tuple(cut)]


def _grid(axes, batch, shape, indices):
    """The order with indexed axes first, and the index arrays along them."""
    order = [*range(batch), *axes]
    order += [axis for axis in range(len(shape)) if axis not in order]
    ndim = np.ndim(indices[0])
    rows = [np.arange(shape[k]).reshape([-1 if i == k else 1 for i in range(ndim)])
            for k in range(batch)]
    return order, (*rows, *[np.asarray(i).astype(np.intp) for i in indices])


def _gather(x, axes, batch, *indices):
    order, grid = _grid(axes, batch, x.shape, indices)
    return x.transpose(order)[grid]


def _scatter(x, updates, axes, batch, adds, *indices):
    """x with updates added or written at indices."""
    order, grid = _grid(axes, batch, x.shape, indices)
    y = x.transpose(order).copy()
    if adds:
        np.add.at(y, grid, updates)
    else:
        y[grid] = updates
    return y.transpose(np.argsort(order))


def _put_along(values, indices, axis, size):
    """Zeros with values added at indices along an axis."""
    y = np.zeros((*values.shape[:axis], size, *values.shape[axis + 1 :]), values.dtype)
    at = [np.arange(n).reshape([-1 if i == k else 1 for i in range(values.ndim)])
          for k, n in enumerate(values.shape)]
    at[axis] = np.asarray(indices)
    np.add.at(y, tuple(at), values)
    return y


def _cumulate(ufunc, x, axis, reverse):
    x = np.flip(x, axis) if reverse else x
    y = ufunc.accumulate(x, axis, x.dtype)
    return np.flip(y, axis) if reverse else y


def _scan(body, consts, carries, xs, stacks, length, reverse):
    """A loop with carries, which stacks the other results of its steps."""
    found = [np.empty((length, *shape), dtype) for shape, dtype in stacks]
    order = range(length)
    for i in reversed(order) if reverse else order:
        outs = body(*consts, *carries, *[x[i, ...] for x in xs])
        carries = outs[: len(carries)]
        for stack, y in zip(found, outs[len(carries) :]):
            stack[i] = y
    return (*carries, *found)


def _fma(a, b, c):
    """a * b + c with (almost always) one rounding."""
    a, b, c = np.asarray(a), np.asarray(b), np.asarray(c)
    if a.dtype == np.float32:
        return (a.astype(np.float64) * b + c).astype(np.float32)
    p = a * b
    high = [x - (x * 134217729.0 - (x * 134217729.0 - x)) for x in (a, b)]
    (al, bl) = high
    (ah, bh) = (a - al, b - bl)
    error = al * bl - (((p - ah * bh) - al * bh) - ah * bl)
    s = p + c
    t = s - p
    rest = (p - (s - t)) + (c - t)
    out = s + (rest + error)
    return np.where(np.isfinite(out), out, s)


def _bits(x):
    """The bit pattern of a float."""
    x = np.asarray(x)
    return x.view({4: np.int32, 8: np.int64}[x.dtype.itemsize])


def _float(x):
    """The float of a bit pattern."""
    x = np.asarray(x)
    return x.view({4: np.float32, 8: np.float64}[x.dtype.itemsize])
'''

HELPERS = {
    match[1]: match[0]
    for match in re.finditer(r"^def (\w+)\(.*?(?=^def |\Z)", SOURCE + LIBRARY, re.M | re.S)
}


def with_called(names: set[str]) -> list[str]:
    """The texts of these helpers and of those that they call."""
    found, new = set(names), set(names)
    while new:
        called = {x for name in new for x in re.findall(r"\b_\w+(?=\(|,)", HELPERS[name])}
        new = (called & HELPERS.keys()) - found
        found |= new
    return [text for name, text in HELPERS.items() if name in found]
