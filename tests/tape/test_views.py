"""Which operations are views, on every path: a write to either side is seen on the other.

NumPy's own views are the expectation; where NumPy differs from PyTorch, a `.copy()` says so.
"""

from __future__ import annotations

import numpy as np
import pytest

import lucid
import lucid.func as F
from lucid.errors import GraphError
from lucid.ir.primitive import NEVER, REGISTRY
from lucid.tape.views import can_view

N = 6


def windows(a, size, step):
    """The windows along axis 1, as a view."""
    view = np.lib.stride_tricks.sliding_window_view(a, size, 1, writeable=True)
    return view[:, ::step]


def diagonal(a, offset=0):
    steps = (sum(a.strides),)
    start = a[:, offset:] if offset >= 0 else a[-offset:]
    return np.lib.stride_tricks.as_strided(start, (min(start.shape),), steps)


def bits_of_a_row(a):
    row = a[2:3]
    return (row if row.strides[1] == row.itemsize else row.copy()).view("int32")


def lowest(a):
    """The whole memory that an array is in, as a vector."""
    while a.base is not None:
        a = a.base
    return a.reshape(-1)


def contiguous_of_transposed(a):
    return a.T if a.T.flags.c_contiguous else a.T.copy()


# name: (of a Lucid tensor, of a NumPy array); the operand is N x N
VIEWS = {
    "select": (lambda x: x[1], lambda a: a[1]),
    "slice": (lambda x: x[1:5:2, 2:], lambda a: a[1:5:2, 2:]),
    "negative step": (lambda x: x[::-1, ::-2], lambda a: a[::-1, ::-2]),
    "new axis": (lambda x: x[:, None, 1:], lambda a: a[:, None, 1:]),
    "ellipsis": (lambda x: x[...], lambda a: a[...]),
    "element": (lambda x: x[1, 2], lambda a: a[1, 2, ...]),
    "T": (lambda x: x.T, lambda a: a.T),
    "mT": (lambda x: x.mT, lambda a: a.T),
    "t": (lambda x: x.t(), lambda a: a.T),
    "permute": (lambda x: x.permute(1, 0), lambda a: a.T),
    "transpose": (lambda x: x.transpose(0, 1), lambda a: a.T),
    "swapaxes": (lambda x: x.swapaxes(0, 1), lambda a: a.T),
    "movedim": (lambda x: x.movedim(0, 1), lambda a: a.T),
    "reshape": (lambda x: x.reshape(2, -1, len(x)), lambda a: a.reshape(2, -1, len(a))),
    "flat": (lambda x: x.reshape(-1), lambda a: a.reshape(-1)),
    "flatten": (lambda x: x[None].flatten(0, 1), lambda a: a),
    "ravel": (lambda x: x.ravel(), lambda a: a.ravel()),
    "view": (lambda x: x[:, :2].view(2, -1, 2), lambda a: a[:, :2].reshape(2, -1, 2)),
    "view_as": (lambda x: x.view_as(x[None, :, None]), lambda a: a[None, :, None]),
    "unflatten": (lambda x: x.unflatten(0, (2, -1)), lambda a: a.reshape(2, -1, len(a))),
    "squeeze": (lambda x: x[:1].squeeze(0), lambda a: a[0]),
    "unsqueeze": (lambda x: x.unsqueeze(1), lambda a: a[:, None]),
    "atleast_3d": (lambda x: lucid.atleast_3d(x), lambda a: a[:, :, None]),
    "narrow": (lambda x: x.narrow(1, 2, 3), lambda a: a[:, 2:5]),
    "select method": (lambda x: x.select(1, 2), lambda a: a[:, 2]),
    "split": (lambda x: x.split(4)[1], lambda a: a[4:8]),
    "chunk": (lambda x: x.chunk(2, 1)[0], lambda a: a[:, : len(a) // 2]),
    "tensor_split": (lambda x: x.tensor_split(2)[1], lambda a: a[len(a) // 2 :]),
    "hsplit": (lambda x: lucid.hsplit(x, 2)[1], lambda a: a[:, len(a) // 2 :]),
    "unbind": (lambda x: x.unbind(1)[2], lambda a: a[:, 2]),
    "diagonal": (lambda x: x.diagonal(), diagonal),
    "diagonal above": (lambda x: x.diagonal(2), lambda a: diagonal(a, 2)),
    "diagonal below": (lambda x: x[1:].diagonal(-1, 1, 0), lambda a: diagonal(a[1:], 1)),
    "unfold": (lambda x: x.unfold(1, 2, 3), lambda a: windows(a, 2, 3)),
    "detach": (lambda x: x.detach(), lambda a: a),
    "data": (lambda x: x.data, lambda a: a),
    "bits": (lambda x: x.view(lucid.int64), lambda a: a.view("int64")),
    "bits of a row": (lambda x: x[2:3].view(lucid.int32), bits_of_a_row),
    # not views
    "flip": (lambda x: x.flip(0), lambda a: a[::-1].copy()),
    "flip of no axis": (lambda x: x.flip(()), lambda a: a.copy()),
    "fliplr": (lambda x: x.fliplr(), lambda a: a[:, ::-1].copy()),
    "rot90": (lambda x: x.rot90(), lambda a: np.rot90(a).copy()),
    "rot90 by 0": (lambda x: x.rot90(0), lambda a: a.copy()),
    "roll": (lambda x: x.roll(1, 0), lambda a: np.roll(a, 1, 0)),
    "diag": (lambda x: x.diag(), lambda a: np.diag(a).copy()),
    "clone": (lambda x: x.clone(), lambda a: a.copy()),
    "tile": (lambda x: x.tile(1, 1), lambda a: a.copy()),
    "repeat": (lambda x: x.repeat(1, 1), lambda a: a.copy()),
    "index": (lambda x: x[[0, 2]], lambda a: a[[0, 2]]),
    "mask": (lambda x: x[lucid.tensor([True] * len(x))], lambda a: a.copy()),
    "gathered": (lambda x: lucid.index_select(x, 0, lucid.tensor([1])), lambda a: a[1:2].copy()),
    "contiguous of another order": (lambda x: x.T.contiguous(), contiguous_of_transposed),
    "as_strided_copy": (
        lambda x: lucid.as_strided_copy(x[...], (2,), (1,), 0) * 1,
        lambda a: lowest(a)[:2].copy(),
    ),
    "unfold_copy": (lambda x: x.unfold(1, 2, 3).clone(), lambda a: windows(a, 2, 3).copy()),
}


# what the operation is applied to: (of a Lucid tensor, of a NumPy array), N x N from 2N x 2N
BASES = {
    "plain": (lambda b: b.reshape(4, N, N)[1] * 1, lambda a: a.reshape(4, N, N)[1] * 1),
    "view of a view": (lambda b: b[2:8].T[1:7], lambda a: a[2:8].T[1:7]),
    "transposed": (lambda b: b[:N, :N].T, lambda a: a[:N, :N].T),
    "rows": (lambda b: b.view(-1)[: N * N].view(N, N), lambda a: a.ravel()[: N * N].reshape(N, N)),
    "in NumPy's order": (lambda b: b[:N, :N].T * 2, lambda a: (a[:N, :N].T * 2).copy("C")),
}  # fmt: skip
X = np.arange(4.0 * N * N).reshape(2 * N, 2 * N) + 0.5


def program(base, op):
    """Write to the operand before the view exists, to the view, then to the operand."""

    def run(x):
        whole = x * 1
        b = base(whole)
        b.mul_(2)
        v = op(b)
        before = v.clone()
        if v.dtype == b.dtype:
            v.add_(100)
        else:
            v.bitwise_or_(1 << 20)
        b[1:3, 1] = -7
        b.mul_(3)
        return whole.clone(), b.clone(), v.clone(), before

    return run


def expected(base, op, x):
    whole = x * 1
    b = base(whole)
    b *= 2
    v = op(b)
    before = v.copy()
    if v.dtype == b.dtype:
        v += 100
    else:
        v |= 1 << 20
    b[1:3, 1] = -7
    b *= 3
    return whole, b, v, before


def check(results, wanted):
    for y, a in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(y.detach().numpy(), a)


ROWS = [(name, where) for name in VIEWS for where in BASES]
every_view = pytest.mark.parametrize("name, where", ROWS, ids=[f"{n}-{w}" for n, w in ROWS])


def programs(name, where):
    if name == "as_strided_copy" and where != "plain":
        pytest.skip("its offset counts from the start of the memory")
    (op, numpy_op), (base, numpy_base) = VIEWS[name], BASES[where]
    return program(base, op), lambda x: expected(numpy_base, numpy_op, x)


@every_view
def test_eagerly(name, where):
    run, wanted = programs(name, where)
    check(run(lucid.tensor(X)), wanted(X))


@every_view
def test_with_a_gradient(name, where):
    run, wanted = programs(name, where)
    x = lucid.tensor(X, requires_grad=True)
    if name.startswith("bits"):
        with lucid.no_grad():
            results = run(x)
    else:
        results = run(x)
    check(results, wanted(X))


@every_view
def test_inside_jit(name, where):
    run, wanted = programs(name, where)
    jitted = lucid.jit(run)
    for scale in (1, 2, 3):
        check(jitted(lucid.tensor(scale * X)), wanted(scale * X))


@every_view
def test_inside_vmap(name, where):
    run, wanted = programs(name, where)
    if name == "mask":
        pytest.skip("the shape depends on values")
    results = F.vmap(run)(lucid.tensor(np.stack([X, -2 * X])))
    for i, x in enumerate((X, -2 * X)):
        check([y[i] for y in results], wanted(x))


@pytest.mark.parametrize("name", VIEWS)
def test_when_everything_is_hot(name):
    op, numpy_op = VIEWS[name]
    run, base = program(lambda b: b[:240].T[:240], op), lambda a: a[:240].T[:240]
    large = np.arange(250.0 * 250).reshape(250, 250)
    if name == "as_strided_copy":
        pytest.skip("its offset counts from the start of the memory")
    for _ in range(20):
        results = run(lucid.tensor(large))
    check(results, expected(base, numpy_op, large))


# Views whose elements are in the same memory


def test_a_window_that_overlaps_others_is_written_through():
    @lucid.jit
    def f(x):
        b = x * 1
        w = b.unfold(0, 3, 1)
        w[1] = lucid.tensor([7.0, 8.0, 9.0])
        b[2] = -1.0
        w[2, 1] *= 2
        return b.clone(), w.clone()

    for x in np.arange(5.0), np.arange(5.0) + 3, np.arange(5.0) - 1:
        b = x * 1
        w = np.lib.stride_tricks.sliding_window_view(b, 3, writeable=True)
        w[1] = [7.0, 8.0, 9.0]
        b[2] = -1.0
        w[2, 1] *= 2
        check(f(lucid.tensor(x)), (b, w))
        check(f.function(lucid.tensor(x)), (b, w))
        check([y[0] for y in F.vmap(f.function)(lucid.tensor(x[None]))], (b, w))


def test_the_gradient_of_a_write_to_overlapping_windows():
    def f(x):
        w = (x * 1).unfold(0, 2, 1)
        w[0] = x[2:] * x[3]
        return (w * w).sum()

    def pure(x):
        b = lucid.cat([x[2:] * x[3], x[2:]])
        return (b[:-1] ** 2).sum() + (b[1:] ** 2).sum()

    x = lucid.tensor([1.0, 2.0, 3.0, 4.0])
    assert np.array_equal(F.grad(f)(x), F.grad(pure)(x))
    assert np.array_equal(F.grad(lucid.jit(f))(x), F.grad(pure)(x))
    leaf = lucid.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    f(leaf).backward()
    assert np.array_equal(leaf.grad, F.grad(pure)(x))


@pytest.mark.parametrize(
    "write",
    [
        lambda w: w.mul_(2),
        lambda w: w.fill_(0.0),
        lambda w: w.masked_fill_(w > 0, 0.0),
        lambda w: w.__setitem__(w > 0, 0.0),
        lambda w: w.__setitem__(slice(0, 2), 0.0),
    ],
)
def test_a_write_to_several_elements_in_the_same_memory_is_refused(write):
    x = lucid.arange(5.0)
    for view in (lambda x: x.unfold(0, 3, 1), lambda x: x.as_strided((3, 3), (1, 1))):

        def f(x, view=view):
            return write(view(x * 1))

        for run in (f, lucid.jit(f), F.grad(f)):
            with pytest.raises(GraphError, match="several elements of this view are in the same"):
                run(x)


def test_as_strided_is_a_view_of_the_storage():
    x = lucid.arange(12.0).reshape(3, 4)
    row = x[1]
    y = row.as_strided((2, 2), (4, 1), 1)
    y.mul_(-1.0)
    assert x.tolist() == [[0, -1, -2, 3], [4, -5, -6, 7], [8, 9, 10, 11]]
    assert row.tolist() == [4, -5, -6, 7]
    row.fill_(0.0)
    assert y.tolist() == [[-1, -2], [0, 0]]
    assert row.as_strided((2,), (1,)).tolist() == [0, 0]


def test_the_gradient_of_as_strided_of_a_view_goes_to_its_base():
    x = lucid.arange(6.0, requires_grad=True)
    (x[2:].as_strided((2, 2), (1, 1), 0) * lucid.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.grad.tolist() == [1, 5, 4, 0, 0, 0]
    detached = x[2:].detach().requires_grad_()
    with pytest.raises(GraphError, match="leaf"):
        detached.as_strided((2,), (1,)).mul_(2)


# Parts of complex numbers


def parts(x):
    z = (x * (1 + 2j)).T
    real, imag = z.real, z[1:].imag
    real[0] = 7.0
    imag.mul_(3.0)
    z.mul_(2.0)
    return z.clone(), real.clone(), imag.clone()


def test_parts_of_complex_numbers_are_views():
    x = np.arange(6.0).reshape(2, 3)
    z = (x * (1 + 2j)).T
    z.real[0] = 7.0
    z[1:].imag[...] *= 3.0
    z *= 2.0
    wanted = z, z.real, z[1:].imag
    jitted = lucid.jit(parts)
    for _ in range(3):
        check(jitted(lucid.tensor(x)), wanted)
    check(parts(lucid.tensor(x)), wanted)
    check([y[0] for y in F.vmap(parts)(lucid.tensor(x[None]))], wanted)


def test_the_gradient_of_a_write_to_the_real_part():
    def f(x):
        z = x * (1 + 2j)
        z.real.mul_(x)
        return (z.real * 3 + z.imag * 5).sum()

    x = lucid.tensor([1.0, 2.0])
    for grad in (F.grad(f), F.grad(lucid.jit(f)), F.grad(lucid.jit(f))):
        assert grad(x).tolist() == [6 * 1 + 10, 6 * 2 + 10]


# Layout


def test_a_reshape_is_a_view_exactly_where_numpy_needs_no_copy():
    rng = np.random.default_rng(0)
    shapes = [
        (),
        (1,),
        (6,),
        (2, 3),
        (3, 1, 2),
        (2, 2, 3),
        (1, 12),
        (12, 1, 1),
        (3, 4),
        (4, 3),
        (2, 6),
    ]
    for _ in range(3000):
        a = np.zeros(tuple(rng.integers(1, 5, rng.integers(0, 5))))
        for _ in range(int(rng.integers(0, 3))):
            if rng.random() < 0.5:
                a = a.transpose(rng.permutation(a.ndim))
            else:
                steps = [int(rng.choice([1, 1, 2, -1])) for _ in a.shape]
                a = a[(*[slice(None, None, step) for step in steps], ...)]
        if rng.random() < 0.2:
            a = np.broadcast_to(a, (2, *a.shape))
        for shape in shapes:
            if np.prod(shape) == a.size:
                assert can_view(a, shape) == np.shares_memory(a.reshape(shape), a), (
                    a.strides,
                    shape,
                )


def test_a_view_class_is_never_compiled_alone():
    views = {name for name, op in REGISTRY.items() if op.is_view}
    assert {"slice", "transpose", "reshape", "broadcast", "strided", "stop_gradient"} <= views
    assert all(REGISTRY[name].native_from == NEVER for name in views)


def test_the_layout_of_a_users_array_stays_its_own():
    a = np.arange(6.0).reshape(2, 3)
    for make in (lucid.from_numpy, lucid.as_tensor, lucid.from_dlpack):
        x = make(a.T)
        assert x.stride() == (1, 3) and not x.is_contiguous()
        y = x.reshape(-1)
        y[0] = 7.0
        assert a[0, 0] == 0.0
        x.T.reshape(-1)[1] = 7.0
        assert a[0, 1] == 7.0
        a[0, 1] = 1.0


def test_a_result_is_row_major_in_whatever_order_numpy_returns_it():
    x = lucid.arange(6.0).reshape(2, 3).T * 2
    assert x.is_contiguous() and x.stride() == (2, 1)
    array = x.numpy()
    x.reshape(-1)[1] = 7.0
    assert array[0, 1] == 7.0 and x[0, 1].item() == 7.0


def test_an_operation_that_reads_no_operand_keeps_no_array_of_a_tensor_with_views():
    x = lucid.ones(3, requires_grad=True)
    y = x + 1.0
    view = y.reshape(1, 3)
    z = -y
    assert y.node.saved is None
    (z.sum() + view.sum() * 3.0).backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
