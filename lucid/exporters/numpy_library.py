"""Operations of exported modules that are more than one NumPy call, as text: each is NumPy alone.

A helper takes the operands of an operation, then its parameters in the order of its class.
"""

from __future__ import annotations

LIBRARY = '''
def _fft(x, axes, inverse, norm):
    if x.size == 0 or not axes:
        return np.array(x)
    transform = np.fft.ifftn if inverse else np.fft.fftn
    return transform(x, axes=axes, norm=norm).astype(x.dtype)


def _rfft(x, axis, norm):
    dtype = np.result_type(x.dtype, np.complex64)
    if x.size == 0:
        return np.zeros((*x.shape[:axis], x.shape[axis] // 2 + 1, *x.shape[axis + 1 :]), dtype)
    return np.fft.rfft(x, axis=axis, norm=norm).astype(dtype)


def _irfft(x, axis, n, norm):
    shape = (*x.shape[:axis], n, *x.shape[axis + 1 :])
    if 0 in shape:
        return np.zeros(shape, x.real.dtype)
    return np.fft.irfft(x, n=n, axis=axis, norm=norm).astype(x.real.dtype)


def _complex(a, b):
    y = np.empty(np.broadcast_shapes(np.shape(a), np.shape(b)), np.result_type(a, b, np.complex64))
    y.real, y.imag = a, b
    return y


def _windows(x, kernel, outputs, stride, padding, dilation):
    """The windows of images: (images, channels, *kernel, *outputs), zero outside the images."""
    lengths = [(q - 1) * s + (k - 1) * d + 1
               for q, k, s, d in zip(outputs, kernel, stride, dilation)]
    whole = np.zeros((*x.shape[:2], *lengths), x.dtype)
    inside, read = _overlap(x.shape[2:], padding, lengths)
    whole[inside] = x[read]
    steps = whole.strides[2:]
    strides = [n * d for n, d in zip(steps, dilation)] + [n * s for n, s in zip(steps, stride)]
    shape = (*x.shape[:2], *kernel, *outputs)
    return np.lib.stride_tricks.as_strided(whole, shape, (*whole.strides[:2], *strides))


def _overlap(sizes, padding, lengths):
    """Where images are in the padded array, and which part of them."""
    inside, read = [...], [...]
    for n, p, length in zip(sizes, padding, lengths):
        first, last = max(0, -p), max(max(0, -p), min(n, length - p))
        inside.append(slice(first + p, last + p))
        read.append(slice(first, last))
    return tuple(inside), tuple(read)


def _convolution(x, w, size, stride, padding, dilation, groups):
    kernel = w.shape[2:]
    if 0 in (*x.shape, *w.shape, *size):
        return np.zeros((len(x), len(w), *size), x.dtype)
    windows = _windows(x, kernel, size, stride, padding, dilation)
    windows = windows.reshape(len(x), groups, -1, int(np.prod(size)))
    y = np.matmul(w.reshape(groups, len(w) // groups, -1), windows)
    return y.reshape(len(x), len(w), *size)


def _convolution_transpose(y, w, size, stride, padding, dilation, groups):
    kernel, outputs = w.shape[2:], y.shape[2:]
    x = np.zeros((len(y), w.shape[1] * groups, *size), y.dtype)
    if 0 in (*y.shape, *w.shape, *size):
        return x
    weights = w.reshape(groups, len(w) // groups, -1).swapaxes(1, 2)
    windows = np.matmul(weights, y.reshape(len(y), groups, y.shape[1] // groups, -1))
    windows = windows.reshape(*x.shape[:2], *kernel, *outputs)
    lengths = [(q - 1) * s + (k - 1) * d + 1
               for q, k, s, d in zip(outputs, kernel, stride, dilation)]
    whole = np.zeros((*x.shape[:2], *lengths), y.dtype)
    for k in np.ndindex(kernel):
        at = [slice(i * d, i * d + (q - 1) * s + 1, s)
              for i, q, s, d in zip(k, outputs, stride, dilation)]
        whole[(..., *at)] += windows[(slice(None), slice(None), *k)]
    inside, read = _overlap(size, padding, lengths)
    x[read] = whole[inside]
    return x


def _convolution_weight(x, y, size, stride, padding, dilation, groups):
    outputs, shape = y.shape[2:], (y.shape[1], x.shape[1] // groups, *size)
    if 0 in (*x.shape, *y.shape, *size):
        return np.zeros(shape, x.dtype)
    windows = _windows(x, size, outputs, stride, padding, dilation)
    windows = windows.reshape(len(x), groups, -1, int(np.prod(outputs)))
    values = y.reshape(len(y), groups, y.shape[1] // groups, -1)
    return np.matmul(values, windows.swapaxes(2, 3)).sum(0, x.dtype).reshape(shape)


def _max_pool(x, size, window, stride, padding, dilation):
    """The largest element of every window, and its index in the pooled axes."""
    count = x.ndim - len(size)
    outer, sizes = x.shape[:count], x.shape[count:]
    low = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min if x.dtype.kind in "iu" else 0
    best, index = np.full((*outer, *size), low, x.dtype), np.zeros((*outer, *size), np.int64)
    chosen = np.zeros((*outer, *size), bool)
    for k in np.ndindex(window):
        target, read, at = [...], [...], 0
        for q, s, p, d, n, i in zip(size, stride, padding, dilation, sizes, k):
            shift = i * d - p
            first = max(0, -(shift // s))
            last = max(first, min(q, (n - 1 - shift) // s + 1))
            start = first * s + shift
            target.append(slice(first, last))
            read.append(slice(start, start + max(0, (last - first) * s), s))
            at = np.expand_dims(at * n, -1) + np.arange(start, start + (last - first) * s, s)
        target, value = tuple(target), x[tuple(read)]
        larger = (value > best[target]) | (value != value) | ~chosen[target]
        best[target] = np.where(larger, value, best[target])
        index[target] = np.where(larger, at, index[target])
        chosen[target] = True
    return best, index


def _resample(x, axis, starts, indices, weights):
    """Weighted sums of elements along an axis; row i has the terms starts[i] to starts[i + 1]."""
    y = np.zeros((*x.shape[:axis], len(starts) - 1, *x.shape[axis + 1 :]), x.dtype)
    rows, source = np.moveaxis(y, axis, 0), np.moveaxis(x, axis, 0)
    for i in range(len(starts) - 1):
        for term in range(starts[i], starts[i + 1]):
            rows[i] += source[indices[term]] * x.real.dtype.type(weights[term])
    return y


def _argsort(x, axis, descending, stable):
    kind = "stable" if stable else None
    if not descending:
        return np.argsort(x, axis, kind=kind).astype(np.int64)
    from_the_end = np.argsort(np.flip(x, axis), axis, kind=kind)
    return np.subtract(x.shape[axis] - 1, np.flip(from_the_end, axis), dtype=np.int64)


def _sort(x, axis, descending, stable):
    indices = _argsort(x, axis, descending, stable)
    return np.take_along_axis(x, indices, axis), indices


def _topk(x, axis, k, largest, sorted):
    n = x.shape[axis]
    indices = np.argsort(x, axis, kind="stable")
    indices = indices.take(np.arange(n - k, n) if largest else np.arange(k), axis)
    indices = np.sort(indices, axis)
    values = np.take_along_axis(x, indices, axis)
    order = _argsort(values, axis, largest, True) if sorted else None
    if order is None:
        return values, indices
    return np.take_along_axis(values, order, axis), np.take_along_axis(indices, order, axis)


def _cummax(x, axis):
    return _running(np.maximum, x, axis)


def _cummin(x, axis):
    return _running(np.minimum, x, axis)


def _running(ufunc, x, axis):
    """A running extremum, and where it was found last."""
    values = ufunc.accumulate(x, axis)
    places = np.arange(x.shape[axis]).reshape([-1] + [1] * (x.ndim - 1 - axis))
    chosen = np.where((x == values) | (x != x), places, 0)
    return values, np.maximum.accumulate(chosen, axis)


def _cumsum(x, axis, reverse):
    return _cumulate(np.add, x, axis, reverse)


def _cumprod(x, axis, reverse, exclusive):
    if not exclusive:
        return _cumulate(np.multiply, x, axis, reverse)
    y = np.ones(x.shape, x.dtype)
    source, target = np.moveaxis(x, axis, 0), np.moveaxis(y, axis, 0)
    if reverse:
        source, target = source[::-1], target[::-1]
    target[1:] = np.multiply.accumulate(source[:-1], 0, x.dtype)
    return y


def _recurrence(a, b, axis, reverse):
    """y[i] = a[i] y[i - 1] + b[i] along an axis."""
    y = np.empty(b.shape, b.dtype)
    factors, terms, states = (np.moveaxis(z, axis, 0) for z in (a, b, y))
    state = np.zeros(terms.shape[1:], b.dtype)
    order = range(len(terms))
    for count, i in enumerate(reversed(order) if reverse else order):
        state = factors[i] * state + terms[i] if count else terms[i]
        states[i] = state
    return y


def _frexp(x):
    mantissa, exponent = np.frexp(x)
    return np.asarray(mantissa, x.dtype), np.asarray(exponent, np.int32)


def _strided(x, sizes, starts, steps):
    """The elements x[start + i step + ...] of a view."""
    x = np.ascontiguousarray(x)
    if 0 in sizes:
        return np.empty(sizes, x.dtype)
    first = sum(i * n for i, n in zip(starts, x.strides)) // x.itemsize
    strides = [sum(i * n for i, n in zip(step, x.strides)) for step in steps]
    return np.array(np.lib.stride_tricks.as_strided(x.reshape(-1)[first:], sizes, strides))


def _combine_along(x, values, indices, axis, how):
    y = np.array(x)
    at = [np.arange(n).reshape([-1 if i == k else 1 for i in range(values.ndim)])
          for k, n in enumerate(values.shape)]
    at[axis] = np.asarray(indices)
    {"max": np.maximum, "min": np.minimum, "prod": np.multiply}[how].at(y, tuple(at), values)
    return y


def _last_write(*operands):
    """True where no later index is the same; the last two operands are sizes and batch axes."""
    *indices, sizes, batch = operands
    shape = indices[0].shape
    rows = [np.arange(shape[k]).reshape([-1 if i == k else 1 for i in range(len(shape))])
            for k in range(batch)]
    sizes = (*shape[:batch], *sizes)
    at = [np.where(i < 0, i + n, i) for i, n in zip((*rows, *indices), sizes)]
    flat = np.ravel_multi_index(np.broadcast_arrays(*at), sizes).reshape(-1)
    last, number = np.empty(int(np.prod(sizes)), np.intp), np.arange(flat.size)
    last[flat] = number
    return np.equal(last[flat], number).reshape(shape)


def _random_bits(key, counter, shape):
    """Words of Threefry 2x32 with 20 rounds."""
    size = int(np.prod(shape))
    x0 = counter[..., :1] + np.arange((size + 1) // 2, dtype=np.uint32)
    x1 = np.broadcast_to(counter[..., 1:], x0.shape).copy()
    keys = (key[..., :1], key[..., 1:], key[..., :1] ^ key[..., 1:] ^ np.uint32(0x1BD11BDA))
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for group in range(5):
        for r in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x0 = x0 + x1
            x1 = (x1 << np.uint32(r) | x1 >> np.uint32(32 - r)) ^ x0
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + (keys[(group + 2) % 3] + np.uint32(group + 1))
    flat = np.stack((x0, x1), -1).reshape(*key.shape[:-1], 2 * x0.shape[-1])
    return flat[..., :size].reshape(key.shape[:-1] + tuple(shape))


def _refuse(x, bad, why, is_matrix):
    if np.any(bad):
        raise np.linalg.LinAlgError(why) if is_matrix else ValueError(why)
    return np.array(x)


def _cholesky(a, checked):
    try:
        return np.linalg.cholesky(a), np.zeros(a.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        if checked:
            raise
    lower, info = np.tril(a), np.zeros(a.shape[:-2], np.int32)
    for i in np.ndindex(info.shape):
        try:
            lower[i] = np.linalg.cholesky(a[i])
        except np.linalg.LinAlgError:
            info[i] = 1
    return lower, info


def _triangular_solve(a, b, upper, unit, adjoint):
    a = np.triu(a) if upper else np.tril(a)
    if unit:
        a = a - a * np.eye(a.shape[-1], dtype=a.dtype) + np.eye(a.shape[-1], dtype=a.dtype)
    if adjoint:
        a, upper = a.conj().swapaxes(-1, -2), not upper
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = np.array(np.broadcast_to(b, (*shape, *b.shape[-2:])))
    for i in reversed(range(a.shape[-1])) if upper else range(a.shape[-1]):
        done = slice(i + 1, None) if upper else slice(0, i)
        known = np.matmul(a[..., i : i + 1, done], x[..., done, :])[..., 0, :]
        x[..., i, :] = (x[..., i, :] - known) / a[..., i, i][..., None]
    return x


def _lu_factor(a):
    """Packed transposed factors, pivots from 1, and the first zero pivot or 0, as in LAPACK."""
    *outer, m, n = a.shape
    lu = np.array(a)
    pivots = np.zeros((*outer, min(m, n)), np.int32)
    info = np.zeros(outer, np.int32)
    for at in np.ndindex(*outer):
        one = lu[at]
        for k in range(min(m, n)):
            column = one[k:, k]
            size = np.abs(column.real) + np.abs(column.imag)
            p = k + int(np.argmax(size))
            pivots[(*at, k)] = p + 1
            if one[p, k] == 0:
                info[at] = info[at] or k + 1
                continue
            if p != k:
                one[[k, p]] = one[[p, k]]
            one[k + 1 :, k] /= one[k, k]
            one[k + 1 :, k + 1 :] -= np.outer(one[k + 1 :, k], one[k, k + 1 :])
    return np.ascontiguousarray(lu.swapaxes(-1, -2)), pivots, info


def _permutation(pivots, size):
    """The order of rows after swaps."""
    order = np.empty((*pivots.shape[:-1], size), np.int64)
    order[...] = np.arange(size)
    if pivots.size:
        for row, swaps in zip(order.reshape(-1, size), pivots.reshape(-1, pivots.shape[-1])):
            for i, j in enumerate(swaps - 1):
                row[i], row[j] = row[j], row[i]
    return order


def _lu_solve(a, packed, pivots, b, adjoint, checked):
    lu = packed.swapaxes(-1, -2)
    n = lu.shape[-1]
    if checked and np.any(np.diagonal(lu, axis1=-2, axis2=-1) == 0):
        raise np.linalg.LinAlgError("solve: the matrix is singular")
    order = _permutation(pivots, n)
    if not adjoint:
        b = np.take_along_axis(b, order[..., None], -2)
        return _triangular_solve(lu, _triangular_solve(lu, b, False, True, False), True, False,
                                 False)
    x = _triangular_solve(lu, _triangular_solve(lu, b, True, False, True), False, True, True)
    return np.take_along_axis(x, np.argsort(order, -1)[..., None], -2)


def _qr(a, complete):
    q, r = np.linalg.qr(a, "complete" if complete else "reduced")
    return q, r


def _geqrf(a):
    packed, tau = np.linalg.qr(a, "raw")
    return np.ascontiguousarray(packed.swapaxes(-1, -2)), tau


def _svd(a, full):
    v, s, u = np.linalg.svd(a.swapaxes(-1, -2), full_matrices=full)
    return u.swapaxes(-1, -2), s, v.swapaxes(-1, -2)


def _svdvals(a):
    return np.linalg.svd(a.swapaxes(-1, -2), compute_uv=False)


def _eigh(a):
    values, vectors = np.linalg.eigh(a.conj(), "L")
    return values, vectors.swapaxes(-1, -2)


def _eigvalsh(a):
    return np.linalg.eigvalsh(a)


def _eig(a):
    values, vectors = np.linalg.eig(a)
    dtype = np.result_type(a.dtype, np.complex64)
    return values.astype(dtype), vectors.astype(dtype)


def _eigvals(a):
    return np.linalg.eigvals(a).astype(np.result_type(a.dtype, np.complex64))


def _complex_logcumsumexp(x, axis):
    out = np.moveaxis(np.array(x), axis, 0)
    for i in range(1, len(out)):
        swap = out[i - 1].real < out[i].real
        high, low = np.where(swap, out[i], out[i - 1]), np.where(swap, out[i - 1], out[i])
        same = np.isinf(low.real) & (low.real == high.real)
        out[i] = high + np.log1p(np.exp(np.where(same, 0, low - np.where(same, 0, high))))
    return np.moveaxis(out, 0, axis)


def _repeated_square(a, times):
    a, step = np.array(a), 0
    while np.any(more := step < times):
        a[more] = np.matmul(a[more], a[more])
        step += 1
    return a


def _while(cond, tests, loops, results, *operands):
    """Loops with the same number of steps; the first runs while the condition holds."""
    values, stacks, steps = list(operands), [], 0
    for number, (body, reverse, consts, inits, reads) in enumerate(loops):
        known = [values[v] for v in consts]
        carries = [sum((values[v] for v in init[1:]), values[init[0]]) for init in inits]
        new, i = [], 0
        while i < steps if number else cond(*[values[v] for v in tests], *carries)[0]:
            at = steps - 1 - i if reverse else i
            outs = body(*known, *carries, *[stacks[s][at] for s in reads])
            carries = list(outs[: len(inits)])
            new.append(outs[len(inits) :])
            i += 1
        steps = steps if number else i
        values += carries
        made = [list(stack) for stack in zip(*new)] if new else []
        stacks += [stack[::-1] if reverse else stack for stack in made]
    return tuple(values[v] for v in results)
'''
