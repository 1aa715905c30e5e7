"""In-place writes: the values and gradients of the same program without them, or an error.

Where a program stands beside a pure one, the pure one says what is right. Behavior under `no_grad`
and through `detach` is PyTorch's.
"""

from __future__ import annotations

import numpy as np
import pytest

import lucid
import lucid.func as F
from lucid import autograd
from lucid.errors import DTypeError, GraphError, MutationError, ShapeError
from tests.compiled import compiled
from tests.ops.test_laws import CASES

X = np.array([0.9, 1.2, 0.7, 1.4])
U = np.array([1.1, 0.6, 1.3, 0.8])


def leaf(values=X) -> lucid.Tensor:
    return lucid.tensor(np.array(values), requires_grad=True)


def equal(actual, expected) -> None:
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=1e-12, atol=1e-14)


# Programs and their pure counterparts: functions of two tensors of four numbers


def on_an_intermediate(w, u):
    y = w * 2
    y.add_(u)
    y.mul_(3.0)
    return y


def on_an_intermediate_pure(w, u):
    return (w * 2 + u) * 3


def with_an_operand_that_needs_the_old_value(w, u):
    y = w * 2
    y.mul_(u)
    y.sin_()
    return y


def with_an_operand_that_needs_the_old_value_pure(w, u):
    return (w * 2 * u).sin()


def by_itself(w, u):
    y = w * 1
    y.mul_(y)
    return y


def by_itself_pure(w, u):
    return w * w


def through_a_slice(w, u):
    y = w * 2
    part = y[1:3]
    part.mul_(u[:2])
    return y * part.sum()


def through_a_slice_pure(w, u):
    y = w * 2
    part = y[1:3] * u[:2]
    return lucid.cat([y[:1], part, y[3:]]) * part.sum()


def seen_by_a_view_made_before(w, u):
    y = w * 2
    part = y[1:3]
    y.add_(u)
    return part * part


def seen_by_a_view_made_before_pure(w, u):
    return (w * 2 + u)[1:3] ** 2


def into_a_plain_buffer_with_views(w, u):
    buffer = lucid.ones(4, dtype=lucid.float64)
    left, right = buffer[:2], buffer[1:3]
    right.mul_(w[:2] * u[:2])
    buffer[3] = u[0]
    return lucid.cat([left * 3, buffer])


def into_a_plain_buffer_with_views_pure(w, u):
    new = w[:2] * u[:2]
    one = lucid.ones(1, dtype=lucid.float64)
    return lucid.cat([one * 3, new[:1] * 3, one, new, u[:1]])


def through_rows_and_columns(w, u):
    y = (w * u).reshape(2, 2)
    row, column = y[0], y[:, 1]
    row.mul_(2.0)
    column.mul_(w[0])
    return y * row.sum() * column.sum()


def through_rows_and_columns_pure(w, u):
    y = (w * u).reshape(2, 2)
    y = lucid.stack([y[0] * 2, y[1]])
    y = lucid.stack([y[:, 0], y[:, 1] * w[0]], 1)
    return y * y[0].sum() * y[:, 1].sum()


def through_a_chain_of_views(w, u):
    y = (w * u).reshape(2, 2)
    part = y.t()[1:][:, ::-1][0]
    part.mul_(u[:2])
    return y


def through_a_chain_of_views_pure(w, u):
    y = (w * u).reshape(2, 2)
    return lucid.stack([y[:, 0], y[:, 1] * u[:2].flip(0)], 1)


def through_transpose_and_flip(w, u):
    y = (w * 1).reshape(2, 2)
    turned = y.t()
    turned.mul_(u.reshape(2, 2))
    back = y[::-1]
    back[0].add_(u[2])
    return y


def through_transpose_and_flip_pure(w, u):
    y = w.reshape(2, 2) * u.reshape(2, 2).t()
    return lucid.stack([y[0], y[1] + u[2]])


def by_items(w, u):
    y = w * 1
    y[0] = u[1] * w[2]
    y[1] += 2 * w[0]
    y[2:] *= 3
    return y


def by_items_pure(w, u):
    return lucid.stack([u[1] * w[2], w[1] + 2 * w[0], w[2] * 3, w[3] * 3])


def by_a_mask(w, u):
    y = w * 1
    y[lucid.tensor([True, False, True, False])] = u[:2]
    y[lucid.tensor([False, False, False, True])] = 0.0
    return y


def by_a_mask_pure(w, u):
    return lucid.stack([u[0], w[1], u[1], w[3] * 0])


def by_indices(w, u):
    y = w * 1
    y[lucid.tensor([3, 0, 3])] = u[:3]
    return y


def by_indices_pure(w, u):
    return lucid.stack([u[1], w[1], w[2], u[2]])


def in_a_recurrence(w, u):
    h = lucid.ones(4, dtype=lucid.float64)
    for i in range(1, 4):
        h[i] = h[i - 1].clone() * w[i] + u[i]
    return h


def in_a_recurrence_pure(w, u):
    hs = [lucid.ones((), dtype=lucid.float64)]
    for i in range(1, 4):
        hs.append(hs[-1] * w[i] + u[i])
    return lucid.stack(hs)


def of_everything(w, u):
    y = w * u
    y.zero_()
    y += w
    y.copy_(u * y.clone())
    z = lucid.zeros(4, dtype=lucid.float64)
    z.fill_(w[0] * u[0])
    return y + z


def of_everything_pure(w, u):
    return u * w + w[0] * u[0]


PURE = {
    name.removesuffix("_pure"): function
    for name, function in list(globals().items())
    if name.endswith("_pure")
}
PROGRAMS = sorted(PURE)


def scalar(function):
    """A number that depends on every element in its own way, of one argument of eight numbers."""

    def f(z):
        y = function(z[:4] * 1, z[4:] * 1).reshape(-1)
        return (y * y * lucid.arange(1, y.numel() + 1)).sum()

    return f


@pytest.mark.parametrize("name", PROGRAMS)
def test_write_in_place_has_the_value_and_gradients_of_the_pure_program(name):
    w, u, w2, u2 = leaf(), leaf(U), leaf(), leaf(U)
    y, expected = globals()[name](w, u), PURE[name](w2, u2)
    equal(y.detach(), expected.detach())
    weights = lucid.arange(1, y.numel() + 1).reshape(y.shape)
    ((y * y) * weights).sum().backward()
    ((expected * expected) * weights).sum().backward()
    for a, b in ((w, w2), (u, u2)):
        equal(0 if a.grad is None else a.grad, 0 if b.grad is None else b.grad)


TRANSFORMS = {
    "grad": F.grad,
    "jvp": lambda f: lambda z: F.jvp(f, (z,), (z * 2,))[1],
    "jacrev": F.jacrev,
    "jacfwd": F.jacfwd,
    "hessian": F.hessian,
    "grad of grad": lambda f: F.grad(lambda z: (F.grad(f)(z) * z).sum()),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_write_in_place_inside_a_transform_is_the_pure_program(transform, name):
    z = lucid.tensor(np.concatenate([X, U]))
    f, pure = scalar(globals()[name]), scalar(PURE[name])
    equal(transform(f)(z), transform(pure)(z))


@pytest.mark.parametrize("name", PROGRAMS)
def test_write_in_place_inside_vmap_is_the_pure_program(name):
    z = lucid.tensor(np.random.default_rng(0).uniform(0.5, 1.5, (3, 8)))
    f, pure = scalar(globals()[name]), scalar(PURE[name])
    equal(F.vmap(f)(z), F.vmap(pure)(z))
    equal(F.vmap(F.grad(f))(z), F.vmap(F.grad(pure))(z))
    total = F.grad(lambda z: F.vmap(f)(z).sum())(z)
    equal(total, F.grad(lambda z: F.vmap(pure)(z).sum())(z))


# Random programs, against central differences of the same program on plain numbers


def random_program(seed: int):
    """A function of two arrays that takes views and writes through them, always the same."""

    def program(w, u):
        rng = np.random.default_rng(seed)
        buffer = rng.random() < 0.4
        y = lucid.ones(3, 4, dtype=lucid.float64) * 1 if buffer else w * 1
        tensors, loss = [y], 0.0
        for _ in range(int(rng.integers(2, 8))):
            step, i, a = int(rng.integers(0, 10)), int(rng.integers(0, 3)), rng.random()
            t = tensors[int(rng.integers(0, len(tensors)))]
            other = u.reshape(-1)[: t.numel()].reshape(t.shape)
            if step == 0 and t.ndim:
                tensors.append(t[i % t.shape[0]])
            elif step == 1 and t.ndim:
                tensors.append(t[i % t.shape[0] :])
            elif step == 2 and t.ndim == 2:
                tensors.append(t.t())
            elif step == 3:
                tensors.append(t.reshape(-1) if t.is_contiguous() else t)
            elif step == 4 and t.ndim == 2:
                tensors.append(t[:, ::-2])
            elif step == 5:
                loss = loss + (t * t).sum()
            elif step == 6:
                t.mul_(1 + a)
            elif step == 7:
                t.mul_(other)
            elif step == 8 and t.ndim:
                t[i % t.shape[0]] = a * other[0].sum()
            elif step == 9:
                t.sin_()
        for number, t in enumerate(tensors):
            loss = loss + (t * (number + 1)).sum()
        return loss + (y * y).sum() + (w * u).sum()

    return program


@pytest.mark.parametrize("seed", range(150))
def test_random_program_of_views_and_writes_has_the_gradient_of_its_differences(seed):
    rng = np.random.default_rng(seed)
    w, u = rng.uniform(0.5, 1.5, (2, 3, 4))
    program = random_program(seed)
    tw, tu = lucid.tensor(w, requires_grad=True), lucid.tensor(u, requires_grad=True)
    try:
        program(tw, tu).backward()
    except MutationError:
        return
    for k, (values, t) in enumerate(((w, tw), (u, tu))):
        for place in ((0, 0), (1, 2), (2, 3), (2, 1)):
            step = np.zeros_like(values)
            step[place] = 1e-6
            above = [w + step, u] if k == 0 else [w, u + step]
            below = [w - step, u] if k == 0 else [w, u - step]
            difference = program(*map(lucid.tensor, above)) - program(*map(lucid.tensor, below))
            np.testing.assert_allclose(t.grad.numpy()[place], difference.item() / 2e-6, rtol=1e-4)


# What a graph still needs


@pytest.mark.parametrize(
    "program",
    [
        lambda w: (lambda y: (y.add_(1), y)[1])(w.exp()),
        lambda w: (lambda y: (lambda z: (y.add_(1), z)[1])(y * y))(w * 1),
        lambda w: (lambda y: (lambda z: (y[1:].zero_(), z)[1])(y * y))(w * 1),
        lambda w: (lambda y: (lambda z: (y.detach().add_(1), z)[1])(y * y))(w * 1),
        lambda w: (lambda c: (lambda z: (c.add_(1), z)[1])(w * c))(lucid.ones(4).double()),
        lambda w: (lambda c: (lambda z: (c.add_(1), z)[1])(w * c[0:4]))(lucid.ones(5).double()),
        lambda w: (lambda i: (lambda z: (i.add_(1), z)[1])((w * 1)[i]))(lucid.tensor([0, 2])),
        lambda w: (lambda s: (s.indices.add_(-1), s.values)[1])((w * 1).sort()),
        lambda w: (lambda y: (y.__iadd__(w), y)[1])((w - 1).relu()),
    ],
)
def test_overwritten_value_that_backward_needs_is_an_error_that_names_the_line(program):
    w = leaf()
    loss = program(w).sum()
    with pytest.raises(MutationError, match=r"in place \(changed at test_mutation.py:\d+\)"):
        loss.backward()


def test_overwritten_value_that_backward_does_not_need_is_none_of_its_business():
    w = leaf()
    y = w * 1
    z = y + 1
    y.mul_(5.0)
    z.sum().backward()
    equal(w.grad, np.ones(4))


def test_pullback_refuses_when_its_input_or_output_was_overwritten():
    x = lucid.tensor(X)
    out, pull = F.vjp(lambda z: z.exp(), x)
    out.add_(1.0)
    with pytest.raises(MutationError):
        pull(lucid.ones(4, dtype=lucid.float64))
    out, pull = F.vjp(lambda z: z * z, x)
    x.add_(1.0)
    with pytest.raises(MutationError):
        pull(lucid.ones(4, dtype=lucid.float64))


def test_jacobian_refuses_an_overwritten_residual():
    def f(x):
        y = x * 1
        z = y * y
        y.add_(1.0)
        return z

    for jacobian in (F.jacrev, F.jacfwd):
        with pytest.raises(MutationError):
            jacobian(f)(lucid.tensor(X))
    with pytest.raises(MutationError):
        F.hessian(lambda x: f(x).sum())(lucid.tensor(X))


# Leaves, as an optimizer changes them


def test_step_under_no_grad_keeps_the_leaf_and_its_gradient():
    w = leaf()
    (w * w).sum().backward()
    before = w.grad
    with lucid.no_grad():
        w -= 0.1 * w.grad
    assert w.is_leaf and w.requires_grad and w.grad is before
    w.grad = None
    (w * w).sum().backward()
    equal(w.grad, 2 * 0.8 * X)


def test_graph_that_saved_the_old_leaf_is_refused_and_one_that_did_not_works():
    w = leaf()
    square, shift = (w * w).sum(), (w + 1).sum()
    with lucid.no_grad():
        w.sub_(0.5)
    with pytest.raises(MutationError, match="a leaf"):
        square.backward()
    shift.backward()
    equal(w.grad, np.ones(4))


def test_grad_with_respect_to_a_leaf_that_was_changed_since():
    w = leaf()
    loss = (w * 3).sum()
    with lucid.no_grad():
        w.sub_(0.5)
    equal(autograd.grad(loss, w, retain_graph=True), np.full(4, 3.0))
    equal(autograd.grad(loss + (w * w).sum(), w, retain_graph=True), 3 + 2 * (X - 0.5))
    loss.backward(inputs=[w])
    equal(w.grad, np.full(4, 3.0))


def test_items_and_views_of_a_leaf_under_no_grad():
    w = leaf()
    with lucid.no_grad():
        w[0] = 0.0
        w[1:].mul_(2.0)
    assert w.is_leaf and w.requires_grad
    equal(w.detach(), [0, *2 * X[1:]])
    (w**2).sum().backward()
    equal(w.grad, [0, *4 * X[1:]])


def test_step_through_data():
    w = leaf()
    w.data -= 0.5
    w.data.mul_(2.0)
    assert w.is_leaf and w.requires_grad
    (w * w).sum().backward()
    equal(w.grad, 4 * (X - 0.5))


def test_data_can_be_replaced_and_old_graphs_keep_the_old():
    w = leaf()
    loss = (w * w).sum()
    w.data = w.data * 10
    loss.backward()
    equal(w.grad, 2 * X)
    equal(w.detach(), 10 * X)
    with pytest.raises(ShapeError, match="data"):
        w.data = lucid.ones(3)


# Writes that are not recorded


def test_write_under_no_grad_changes_the_value_and_leaves_the_history():
    w = leaf()
    y = w * 2
    with lucid.no_grad():
        y.add_(1.0)
    assert y.requires_grad
    (y * y).sum().backward()
    equal(w.grad, 4 * (2 * X + 1))


def test_write_through_detach_changes_the_value_and_leaves_the_history():
    w, u = leaf(), leaf(U)
    y = w * 2
    d = y.detach()
    d.mul_(u)
    equal(y.detach(), 2 * X * U)
    (y * 3).sum().backward()
    d.sum().backward()
    equal(w.grad, np.full(4, 6.0))
    equal(u.grad, 2 * X)


def test_detach_of_an_untracked_tensor_stays_detached():
    u = leaf(U)
    b = lucid.ones(4, dtype=lucid.float64)
    d = b.detach()
    d.mul_(u)
    assert d.requires_grad and not b.requires_grad
    equal(b, U)


def test_unrecorded_writes_under_vmap_equal_a_loop():
    def f(x):
        y = x * x
        with lucid.no_grad():
            y.mul_(3.0)
        y.detach().add_(1.0)
        return (y * x).sum()

    rows = lucid.tensor(np.stack([X, U]))
    equal(F.vmap(f)(rows), [f(row).item() for row in rows])
    equal(F.vmap(F.grad(f))(rows), [F.grad(f)(row).numpy() for row in rows])


# What is refused


def test_leaf_that_requires_a_gradient_is_refused():
    w = leaf()
    for write in (
        lambda: w.add_(1),
        lambda: w[0:2].add_(1),
        lambda: w.__setitem__(0, 1.0),
        lambda: w.zero_(),
        lambda: w.t().mul_(2),
    ):
        with pytest.raises(GraphError, match=r"leaf.*no_grad\(\).*clone\(\)"):
            write()
    equal(w.detach(), X)


@pytest.mark.parametrize("transform", [F.grad, F.jacrev, F.jacfwd])
def test_argument_of_a_transform_is_refused(transform):
    def f(x):
        x.add_(1.0)
        return x.sum()

    x = lucid.tensor(np.stack([X, U]))
    with pytest.raises(GraphError, match=r"add_: an argument of .* clone\(\)"):
        transform(f)(x)
    equal(x, np.stack([X, U]))


def test_view_of_an_argument_of_a_transform_is_refused():
    x = lucid.tensor(X)
    for write in (lambda x: x[0:2].zero_(), lambda x: x.detach().zero_()):
        with pytest.raises(GraphError, match="argument"):
            F.grad(lambda x: (write(x), x.sum())[1])(x)  # noqa: B023
    equal(x, X)


def test_expanded_tensor_is_refused():
    with pytest.raises(GraphError, match=r"read-only.*clone\(\)"):
        lucid.ones(1).expand(3).add_(1)
    with pytest.raises(GraphError, match="read-only"):
        F.vmap(lambda x: (x * 1).sum().expand(3).add_(1))(lucid.ones(2, 3))


def test_dtype_and_shape_that_do_not_fit_are_refused():
    with pytest.raises(DTypeError, match=r"add_: a result of dtype float32 .* int64"):
        lucid.arange(3).add_(1.5)
    with pytest.raises(DTypeError, match="div_"):
        lucid.arange(3).div_(2)
    with pytest.raises(ShapeError, match=r"add_: .*\(2, 3\).*\(3,\)"):
        lucid.ones(3).add_(lucid.ones(2, 3))
    with pytest.raises(ShapeError, match="setitem"):
        lucid.ones(3)[0:2] = lucid.ones(3)
    with pytest.raises(DTypeError, match="setitem"):
        lucid.ones(3)[0] = 1j
    with pytest.raises(DTypeError, match="300 does not fit into uint8"):
        lucid.zeros(3, dtype=lucid.uint8)[0] = 300
    with pytest.raises(DTypeError, match="-1 does not fit into uint8"):
        lucid.zeros(3, dtype=lucid.uint8).fill_(-1)


def test_view_made_under_no_grad_is_refused_where_gradients_are_recorded():
    y = leaf() * 1
    with lucid.no_grad():
        v = y[0:2]
        v.mul_(2.0)
    with pytest.raises(GraphError, match="made under no_grad"):
        v.add_(1.0)


def test_traced_value_cannot_be_stored_in_a_leaf():
    w = leaf()

    def f(x):
        with lucid.no_grad():
            w.copy_(x)
        return x.sum()

    with pytest.raises(GraphError, match="per-example value"):
        F.vmap(f)(lucid.ones(2, 4, dtype=lucid.float64))
    equal(w.detach(), X)


# Bookkeeping


def test_version_counts_the_writes_of_all_who_share_the_memory():
    a = lucid.zeros(3)
    assert a._version == 0
    a.add_(1)
    a[0] = 2.0
    b = a[1:]
    b.mul_(2.0)
    assert a._version == b._version == 3


def test_write_to_untracked_memory_stays_in_place():
    a = lucid.zeros(4)
    address, alias = a.data_ptr(), a.numpy()
    a.add_(1).mul_(lucid.full((4,), 3.0)).sqrt_()
    a[0] = 7.0
    a += 1
    assert a.data_ptr() == address
    np.testing.assert_allclose(alias, [8, *[1 + 3**0.5] * 3], rtol=1e-6)


def test_retained_gradient_is_that_of_the_value_after_the_write():
    w = leaf()
    y = w * 2
    y.retain_grad()
    y.add_(1)
    (y * y).sum().backward()
    equal(y.grad, 2 * (2 * X + 1))


def test_views_that_are_gone_leave_nothing_behind():
    base = lucid.zeros(10)
    for i in range(1000):
        base[i % 10 :]
    assert len(base.storage.members) < 200


def test_augmented_item_is_written_once():
    y = leaf() * 1
    y[1] += 2.0
    names = [eqn.op.name for eqn in y.graph().equations]
    assert names.count("slice_set") == 1


def test_in_place_operators_return_the_tensor_itself():
    a = lucid.tensor([5.0, 6.0, 7.0])
    same = a
    a **= 2
    a %= 4
    a //= 2
    a -= 1
    a /= 2
    assert a is same and a.tolist() == [-0.5, -0.5, -0.5]
    b = lucid.tensor([5, 6, 7])
    b &= 6
    b |= 1
    b ^= 2
    b <<= 2
    b >>= 1
    assert b.tolist() == [((((n & 6) | 1) ^ 2) << 2) >> 1 for n in (5, 6, 7)]
    m = lucid.eye(2)
    m @= lucid.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert m.tolist() == [[1.0, 2.0], [3.0, 4.0]]


# The tape believes that an operation which is no view has memory of its own.

IDENTITIES = {"alias", "stop_gradient", "watch", "watched"}  # of these no tensor is written


@pytest.mark.parametrize("case", {str(case): case for case in CASES}.values(), ids=str)
def test_result_shares_no_memory_with_an_operand_unless_it_says_so(case):
    if case.op.is_view or case.op.name in IDENTITIES:
        return
    arrays = case.arrays()
    result = case.op.eval(*arrays)
    for y in result if isinstance(result, tuple) else (result,):
        assert not any(np.shares_memory(y, x) for x in arrays), case.op


def test_a_write_to_the_bits_of_a_tensor_is_a_write_to_the_tensor():
    x = lucid.tensor([1.0, 2.0])
    x.view(lucid.int32)[0] = 0
    assert x.tolist() == [0.0, 2.0]


def test_bits_are_written_inside_jit_too():
    def without_sign(x):
        y = x.clone()
        y.view(lucid.int32).bitwise_and_(0x7FFFFFFF)
        return y

    assert compiled(without_sign)(lucid.tensor([-1.5, 2.0])).tolist() == [1.5, 2.0]


def test_the_bits_of_a_transposed_tensor_are_those_of_its_rows():
    x = np.arange(6, dtype="float32").reshape(2, 3)
    assert np.array_equal(lucid.tensor(x).T.view(lucid.int16), x.T.copy().view("int16"))
