"""Calls of NumPy's functions that edit, choose, fit and compare; `a` is an array or a tensor."""

import numpy as np

V = np.array([0.7, 0.2, 0.5, 0.9])
ROWS = np.array([[0, 2, 1, 0]])


def edited(function, *args, **kwargs):
    """Return a call of a function that writes: it is applied to a copy, which is returned."""

    def call(a):
        copy = a * 1.0
        function(copy, *args, **kwargs)
        return copy

    return call


CALLS = {
    np.apply_along_axis: [
        lambda a: np.apply_along_axis(lambda r: r * r, 0, a),
        lambda a: np.apply_along_axis(np.sum, 1, a),
        lambda a: np.apply_along_axis(lambda r: np.outer(r, r), 1, a),
    ],
    np.apply_over_axes: [lambda a: np.apply_over_axes(np.sum, a, [0, 1])],
    np.array: [lambda a: np.add(a, np.array([1.0]))],
    np.asanyarray: [lambda a: a + np.asanyarray(1.0)],
    np.asarray: [lambda a: a + np.asarray(1.0)],
    np.ascontiguousarray: [lambda a: a + np.ascontiguousarray(1.0)],
    np.choose: [
        lambda a: np.choose([0, 1, 2, 1], [a[0], a[1], a[2]]),
        lambda a: np.choose(np.array([5, -1, 2, 0]), [a, 2.0 * a], mode="wrap"),
        lambda a: np.choose(np.array([5, -1, 2, 0]), [a, 2.0 * a], mode="clip"),
    ],
    np.correlate: [
        lambda a: np.correlate(a[0], V[:2]),
        lambda a: np.correlate(a[0], a[1][:3], "same"),
        lambda a: np.correlate(a[0][:2], a[1], "same"),
        lambda a: np.correlate(a[0][:3], a[1], "same"),
        lambda a: np.correlate(a[0][:3], a[1], "full"),
        lambda a: np.correlate(a[0][:3], a[1], "valid"),
    ],
    np.delete: [
        lambda a: np.delete(a, 1, axis=0),
        lambda a: np.delete(a, [0, -1], 1),
        lambda a: np.delete(a, slice(None, None, 2)),
    ],
    np.fill_diagonal: [edited(np.fill_diagonal, 2.0), edited(np.fill_diagonal, [1.0, 2.0, 3.0])],
    np.i0: [np.i0],
    np.insert: [
        lambda a: np.insert(a, 1, 7.0),
        lambda a: np.insert(a, 1, a[0], axis=0),
        lambda a: np.insert(a, [0, 2], a[:, :2], axis=1),
        lambda a: np.insert(a, -1, V[:3], axis=1),
    ],
    np.intersect1d: [lambda a: np.intersect1d(a, a[1:])],
    np.lib.stride_tricks.sliding_window_view: [
        lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, axis=1),
        lambda a: np.lib.stride_tricks.sliding_window_view(a, (2, 3)),
    ],
    np.piecewise: [
        lambda a: np.piecewise(a, [a < 0.5, a >= 0.8], [lambda x: x * x, 3.0, lambda x: -x]),
        lambda a: np.piecewise(a, [a < 0.5], [lambda x, k: k * x, 0.0], 2.0),
    ],
    np.place: [edited(np.place, np.array([[True] * 4, [False] * 4, [True] * 4]), [1.0, 2.0, 3.0])],
    np.poly: [lambda a: np.poly(a[0])],
    np.polyadd: [lambda a: np.polyadd(a[0], a[1][:2]), lambda a: np.polyadd(2.0, a[0])],
    np.polyder: [lambda a: np.polyder(a[0]), lambda a: np.polyder(a[0], 2)],
    np.polydiv: [lambda a: np.polydiv(a[0], a[1][:2]), lambda a: np.polydiv(a[0], V[:1])],
    np.polyfit: [
        lambda a: np.polyfit(V, a[0], 2),
        lambda a: np.polyfit(V, a.T, 1, w=np.array([1.0, 2.0, 1.0, 0.5])),
    ],
    np.polyint: [lambda a: np.polyint(a[0]), lambda a: np.polyint(a[0], 2, [1.0, 2.0])],
    np.polymul: [lambda a: np.polymul(a[0], a[1])],
    np.polysub: [lambda a: np.polysub(a[0], a[1][:2])],
    np.put: [edited(np.put, [0, 5], [1.0, 2.0]), edited(np.put, [[1], [2]], 3.0)],
    np.put_along_axis: [
        edited(np.put_along_axis, ROWS, 0.0, 0),
        edited(np.put_along_axis, np.array([[1], [0], [3]]), V[:3, None], 1),
    ],
    np.putmask: [edited(np.putmask, np.array([[True, False, True, False]] * 3), V)],
    np.real_if_close: [lambda a: np.real_if_close(a + 0j), np.real_if_close],
    np.resize: [lambda a: np.resize(a, (5, 3)), lambda a: np.resize(a, 4)],
    np.roots: [lambda a: np.roots(a[0, :2]) + 0j],
    np.setdiff1d: [lambda a: np.setdiff1d(a, a[0])],
    np.setxor1d: [lambda a: np.setxor1d(a[:2], a[1:])],
    np.sort_complex: [lambda a: np.sort_complex(a[0] + 1j * a[1])],
    np.trim_zeros: [lambda a: np.trim_zeros(np.concatenate([np.zeros(2), a[0], np.zeros(1)]))],
    np.union1d: [lambda a: np.union1d(a[0], a[1])],
    np.unique_all: [lambda a: np.unique_all(a)[0]],
    np.unique_counts: [lambda a: np.unique_counts(a)[0]],
    np.unique_inverse: [lambda a: np.unique_inverse(a)[0]],
    np.unique_values: [lambda a: np.sort(np.unique_values(a))],
    np.unwrap: [
        lambda a: np.unwrap(9.0 * a),
        lambda a: np.unwrap(20.0 * a, axis=0),
        lambda a: np.unwrap(5.0 * a, period=1.5),
    ],
}

CONSTANT_CALLS = {
    np.broadcast_shapes: [lambda a: np.broadcast_shapes(a.shape, (1, 4))],
    np.common_type: [lambda a: np.dtype(np.common_type(a)).itemsize],
    np.diag_indices_from: [lambda a: np.diag_indices_from(a[:, :3])],
    np.ix_: [lambda a: np.ix_(np.argsort(a[0]), np.argsort(a[1]))],
    np.min_scalar_type: [lambda a: np.min_scalar_type(a).itemsize],
    np.nanargmax: [lambda a: np.nanargmax(a, axis=1)],
    np.nanargmin: [np.nanargmin],
    np.ravel_multi_index: [lambda a: np.ravel_multi_index((np.argsort(a[0]), [0] * 4), (4, 4))],
    np.tril_indices_from: [np.tril_indices_from],
    np.triu_indices_from: [lambda a: np.triu_indices_from(a, 1)],
    np.unpackbits: [lambda a: np.unpackbits((a > 0.5).astype(np.uint8))],
    np.packbits: [lambda a: np.packbits(a > 0.5)],
}

# What reads values, and says so where a derivative would be lost.
VALUE_CALLS = {
    np.histogram2d: [lambda a: np.histogram2d(a[0], a[1], bins=3)],
    np.histogramdd: [lambda a: np.histogramdd(a.T, bins=2)[0]],
    np.histogram_bin_edges: [lambda a: np.histogram_bin_edges(a, 4)],
    np.lexsort: [lambda a: np.lexsort((a[0], a[1]))],
}

# Functions of numbers, tested as names of the namespace.
MADE = {
    np.arange, np.bartlett, np.blackman, np.diag_indices, np.empty, np.eye, np.from_dlpack, np.full,
    np.hamming, np.hanning, np.identity, np.indices, np.kaiser, np.ones, np.tri, np.tril_indices,
    np.triu_indices, np.zeros, np.fft.fftfreq, np.fft.rfftfreq,
}  # fmt: skip
