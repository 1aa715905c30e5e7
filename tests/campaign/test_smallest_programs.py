"""The smallest programs of the classes of mistakes that were found, each on every path."""

from __future__ import annotations

import _thread
import asyncio
import math
import threading
import warnings

import numpy as np
import pytest
import scipy.signal
import scipy.stats

import lucid
from lucid import nn
from lucid.errors import ArgumentError, DTypeError, GraphError, LucidError, ShapeError
from lucid.func import cond, fori_loop, grad, jacrev, jvp, scan, value_and_grad, vjp, vmap
from tests.campaign.tiers import cold, hot

A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]])
V = np.array([1.0, 2.0, 3.0])


def paths(f, *arrays, compare=None):
    """Hold a function, eager, hot and jitted thrice, to NumPy's values of its results."""

    def run(g, inputs):
        found = g(*[lucid.as_tensor(np.array(x)) for x in inputs])
        return [
            y.detach().numpy().copy() for y in (found if isinstance(found, tuple) else (found,))
        ]

    calls = [arrays, tuple(x * 0.5 + 0.25 for x in arrays), arrays]
    with cold():
        expected = [run(f, xs) for xs in calls]
    if compare is not None:
        want = compare(*arrays)
        for got, e in zip(expected[0], want if isinstance(want, tuple) else (want,), strict=True):
            np.testing.assert_allclose(got, e, rtol=1e-10)
    with hot():
        found = [run(f, xs) for xs in calls]
    jitted = lucid.jit(f)
    for got in (found, [run(jitted, xs) for xs in calls]):
        for xs, es in zip(got, expected, strict=True):
            for x, e in zip(xs, es, strict=True):
                assert x.dtype == e.dtype
                np.testing.assert_allclose(x, e, rtol=1e-12)


def test_a_transposed_operand_in_two_parts_of_a_join():
    def f(x):
        y = x.T
        return lucid.cat([y * y + 1, y], 1) * 2

    def in_numpy(x):
        return np.concatenate([x.T * x.T + 1, x.T], 1) * 2

    paths(f, A, compare=in_numpy)
    paths(vmap(f, in_dims=1), np.stack([A, A + 1], 1), compare=lambda x: np.stack(
        [in_numpy(x[:, 0]), in_numpy(x[:, 1])]))  # fmt: skip


@pytest.mark.parametrize("make", [lambda x: x, nn.Parameter, lambda x: x.requires_grad_(True)])
@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[:]])
def test_keywords_of_writes(make, view):
    with lucid.no_grad():
        x = make(lucid.zeros(3))
        view(x).add_(lucid.ones(3), alpha=-5.0)
        assert x.tolist() == [-5.0] * 3
        y = make(lucid.tensor([5.0, 7.0, -7.0]))
        view(y).div_(lucid.tensor([2.0, 2.0, 2.0]), rounding_mode="floor")
        assert y.tolist() == [2.0, 3.0, -4.0]


def test_jit_that_closes_over_values_computed_from_each_other():
    def f(x):
        y = -x
        return lucid.jit(lambda a: 10 * y + x)(x)

    two = lucid.tensor(2.0)
    for g in (f, lucid.jit(f)):
        for _ in range(3):
            assert [t.item() for t in jvp(g, (two,), (lucid.tensor(1.0),))] == [-18.0, -9.0]
            assert grad(g)(two).item() == -9.0
            assert vmap(g)(lucid.tensor([2.0, 3.0])).tolist() == [-18.0, -27.0]
    x = lucid.tensor(3.0, requires_grad=True)
    y = x * 2
    z = y * 5
    lucid.jit(lambda a: a * y + z)(x).backward()
    assert x.grad.item() == 12.0 + 10.0


@pytest.mark.parametrize("outer", ["vmap", "scan", "cond", "custom_vjp", "custom_jvp"])
def test_jit_inside_of_others_closes_over_traced_values(outer):
    def inner(x, y):
        return lucid.jit(lambda a: a * y + x)(x)

    @lucid.func.custom_vjp
    def by_vjp(x):
        return inner(x, x * 2)

    by_vjp.defvjp(lambda x: (inner(x, x * 2), x), lambda x, ct: (ct * (4 * x + 1),))

    @lucid.func.custom_jvp
    def by_jvp(x):
        return inner(x, x * 2)

    by_jvp.defjvp(lambda xs, ts: (by_jvp(xs[0]), ts[0] * (4 * xs[0] + 1)))
    forms = {
        "vmap": lambda x: vmap(lambda r: inner(r, r * 2))(x[None])[0],
        "scan": lambda x: scan(lambda c, r: (c, inner(r, r * 2)), x, x[None])[1][0],
        "cond": lambda x: cond(x > 0, lambda v: inner(v, v * 2), lambda v: v, x),
        "custom_vjp": lambda x: by_vjp(x),
        "custom_jvp": lambda x: by_jvp(x),
    }
    f = forms[outer]
    for g in (f, lucid.jit(f)):
        for value in (2.0, 3.0, 2.0):
            assert g(lucid.tensor(value)).item() == 2 * value**2 + value
            assert grad(g)(lucid.tensor(value)).item() == 4 * value + 1


@pytest.mark.parametrize("n", [3, 32_768, 40_000])
def test_writes_that_a_recording_must_not_lose(n):
    w, g = nn.Parameter(lucid.zeros(n)), lucid.ones(n)
    step = lucid.jit(lambda: w.data.add_(g))
    for k in range(1, 20):
        step()
        assert w.detach().numpy().min() == w.detach().numpy().max() == k
    x = lucid.zeros(n)
    bump = lucid.jit(lambda x: x.add_(1.0))
    for k in range(1, 5):
        assert bump(x).numpy().max() == k
        assert x.numpy().min() == k
    turned = lucid.jit(lambda x: x.reshape(-1))
    for _ in range(3):
        turned(x).zero_()
        assert x.numpy().min() == 4.0


@pytest.mark.parametrize("jitted", [False, True])
def test_state_that_loops_and_branches_write(jitted):
    n, norm = lucid.zeros(()), nn.BatchNorm1d(2)

    def bump(c, r):
        n.add_(1.0)
        return c + n, norm(r)

    def steps(x):
        return scan(bump, lucid.zeros(()), x)[0]

    def branch(x):
        return cond(x.sum() > 1e3, lambda v: bump(v[0, 0], v)[0], lambda v: v[0, 0], x)

    run, pick = (lucid.jit(steps), lucid.jit(branch)) if jitted else (steps, branch)
    x = lucid.as_tensor(np.arange(12.0, dtype="float32").reshape(2, 3, 2))
    totals = [run(x).item() for _ in range(3)]
    assert totals == [1 + 2, 3 + 4, 5 + 6] and n.item() == 6.0
    assert norm.num_batches_tracked.item() == 6
    for _ in range(3):
        pick(x[0])
    assert n.item() == 6.0 and norm.num_batches_tracked.item() == 6
    for k in range(1, 4):  # the other branch, which writes
        assert pick(x[0] + 1e3).item() == 1e3 + 6 + k
        assert n.item() == 6 + k and norm.num_batches_tracked.item() == 6 + k


@pytest.mark.parametrize("form", ["scan", "map", "fori_loop", "cond", "vmap", "checkpoint"])
def test_every_step_draws_its_own_numbers(form):
    forms = {
        "scan": lambda x: scan(lambda c, r: (c, lucid.rand(()) * r), x[0], x)[1],
        "map": lambda x: lucid.func.map(lambda r: lucid.rand(()) * r, x),
        "fori_loop": lambda x: fori_loop(
            0, 4, lambda i, c: lucid.cat([lucid.rand(1) * x[:1], c[:-1]]), x * 1.0
        ),
        "cond": lambda x: cond(x[0] > 0, lambda v: lucid.rand(4) * v, lambda v: v, x),
        "vmap": lambda x: vmap(lambda r: lucid.rand(()) * r, randomness="different")(x),
        "checkpoint": lambda x: lucid.func.checkpoint(lambda v: lucid.rand(4) * v)(x),
    }
    f, x = forms[form], lucid.ones(4)
    results = []
    for g in (f, lucid.jit(f)):
        lucid.manual_seed(5)
        results.append([g(x).tolist() for _ in range(3)])
        assert len({v for call in results[-1] for v in call}) == 12
        lucid.manual_seed(5)
        slopes = [grad(lambda x: g(x).sum())(x).tolist() for _ in range(2)]  # noqa: B023
        np.testing.assert_allclose(np.sum(slopes, 1), np.sum(results[-1][:2], 1), rtol=1e-6)
        if form != "fori_loop":  # whose steps all scale the first element
            np.testing.assert_allclose(slopes, results[-1][:2], rtol=1e-6)
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


STAYS = {
    "array": lambda x: np.array([x, 2 * x]),
    "mean": lambda x: np.mean([x * x, x]),
    "r_": lambda x: np.r_[x.reshape(1), x.reshape(1)],
    "tensor": lambda x: lucid.tensor([x * 2, x]),
    "stack": lambda x: lucid.stack([x, x * x]),
    "convolve": lambda x: scipy.signal.convolve(lucid.stack([x, x]), np.ones(2)),
    "logpdf": lambda x: scipy.stats.norm.logpdf(x),
    "numpy.mean": lambda x: lucid.numpy.mean([x * x, x]),
    "numpy.array": lambda x: lucid.numpy.array([x, 2 * x]),
}
# NumPy itself shows us no tensors inside of lists, and lets nobody answer for np.array and np.r_.
STAY_ALWAYS = ("tensor", "stack", "numpy.mean", "numpy.array")


@pytest.mark.parametrize("form", STAYS)
def test_a_conversion_keeps_the_gradient_or_raises(form):
    """Differentiate, or refuse: never zero."""
    x = lucid.tensor(1.5, requires_grad=True)

    def f(x):
        y = STAYS[form](x)
        return lucid.sum(y) if isinstance(y, lucid.Tensor) else lucid.tensor(0.0) + np.sum(y)

    step = 1e-3
    try:
        slope = grad(f)(lucid.tensor(1.5)).item()
    except (LucidError, TypeError, ValueError) as error:
        assert isinstance(error, LucidError), error
        assert form not in STAY_ALWAYS, f"{form} can stay on the graph: {error}"
        with pytest.raises(LucidError):
            STAYS[form](x)
        return
    numeric = (float(f(lucid.tensor(1.5 + step))) - float(f(lucid.tensor(1.5 - step)))) / (2 * step)
    assert slope == pytest.approx(numeric, rel=1e-2) and slope != 0


def test_numbers_of_tracked_values_warn():
    def written(x):
        y = np.zeros(2)
        y[0] = x
        return y[0]

    with pytest.raises(ValueError, match="sequence") as caught:  # NumPy's, with ours as its cause
        grad(lambda x: x * written(x))(lucid.tensor(1.0))
    assert isinstance(caught.value.__cause__, GraphError)
    for read in (lambda x: math.sin(x), lambda x: float(x[None][0]) * x):
        with pytest.warns(UserWarning, match="constant"):
            grad(lambda x: x * read(x))(lucid.tensor(1.0))  # noqa: B023
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grad(lambda x: x * x.item() if x > 0 else x)(lucid.tensor(1.0))
        grad(lambda x: x * x.tolist() + float(x.detach().numpy()))(lucid.tensor(1.0))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for _ in range(3):
            grad(lambda x: x * float(x))(lucid.tensor(1.0))
    assert len(seen) == 1  # once a line


ARGUMENTS = {
    "pad": lambda x: np.pad(lucid.ones(2), 1, constant_values=x).sum(),
    "linspace": lambda x: lucid.linspace(0.0, x, 3).sum(),
    "logspace": lambda x: lucid.logspace(0.0, x, 3).sum(),
    "norm": lambda x: lucid.linalg.norm(lucid.tensor([1.0, 2.0]), ord=x),
    "clamp": lambda x: lucid.clamp(lucid.tensor([1.0, 9.0]), max=x).sum(),
}


@pytest.mark.parametrize("form", ARGUMENTS)
def test_a_tensor_for_a_number_is_differentiated_or_refused(form):
    f = ARGUMENTS[form]
    try:
        slope = grad(f)(lucid.tensor(2.0)).item()
    except LucidError:
        return
    above, below = (f(lucid.tensor(2.0 + s)).item() for s in (1e-2, -1e-2))
    assert slope == pytest.approx((above - below) / 2e-2, rel=1e-2) and slope != 0


def test_modes_reach_inward_and_hooks_run_without_grad():
    def f(x):
        with lucid.no_grad():
            return value_and_grad(lambda v: v**3)(x)[0] + vjp(lambda v: v**2, x)[0]

    assert grad(lambda x: f(x) + x)(lucid.tensor(2.0)).item() == 1.0
    assert grad(lambda x: lucid.jit(f)(x) + x)(lucid.tensor(2.0)).item() == 1.0
    w, seen = lucid.tensor(1.0, requires_grad=True), []
    w.register_post_accumulate_grad_hook(lambda p: seen.append((p * 2).requires_grad))
    (w * 3).backward()
    assert seen == [False]

    async def task(off):
        with lucid.no_grad() if off else lucid.enable_grad():
            await asyncio.sleep(0.001)
            return (w * 2).requires_grad

    async def both():
        return await asyncio.gather(task(True), task(False))

    assert asyncio.run(both()) == [False, True]


class Tripled(lucid.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(3)
        return x

    @staticmethod
    def backward(ctx, ct):
        return ct * 3


@pytest.mark.parametrize("reduce", ["amin", "amax", "prod", "mean", "sum"])
def test_in_place_functions_and_reductions(reduce):
    paths(lambda x: Tripled.apply(x * 1.0), V, compare=lambda x: 3 * x)
    paths(grad(lambda x: (Tripled.apply(x * x) ** 2).sum()), V, compare=lambda x: 36 * x**3)
    index = lucid.tensor([0, 0, 1])

    def scattered(x):
        y = (x * 2).clone()
        y.scatter_reduce_(0, index, x * x, reduce)
        return y

    def functional(x):
        return lucid.scatter_reduce(x * 2, 0, index, x * x, reduce)

    with cold():
        want = scattered(lucid.as_tensor(V)).numpy()
        slope = grad(lambda x: (functional(x) ** 2).sum())(lucid.as_tensor(V)).numpy()
    np.testing.assert_allclose(functional(lucid.as_tensor(V)).numpy(), want)
    paths(scattered, V, compare=lambda x: want)
    paths(grad(lambda x: (scattered(x) ** 2).sum()), V, compare=lambda x: slope)
    step = 1e-6
    for i in range(3):
        e = np.eye(3)[i] * step
        above, below = ((scattered(lucid.as_tensor(V + s * e)) ** 2).sum().item() for s in (1, -1))
        assert slope[i] == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-6)
    if reduce != "sum":

        def indexed(x):
            y = (x * 2).clone()
            y.index_reduce_(0, index, x * x, reduce)
            return y

        paths(indexed, V, compare=lambda x: want)  # along one axis the two are the same
        paths(grad(lambda x: (indexed(x) ** 2).sum()), V, compare=lambda x: slope)


@pytest.mark.parametrize("f", [lucid.exp, lucid.tanh, lambda x: x * x, lucid.log])
def test_derivatives_of_jitted_maxima(f):
    def total(x):
        return lucid.amax(f(x), 1).sum() + lucid.amin(f(x), 0).sum()

    def by_hand(x):
        y = np.zeros_like(x)
        y[np.arange(2), x.argmax(1)] += 1
        y[x.argmin(0), np.arange(3)] += 1
        slope = {lucid.exp: np.exp, lucid.tanh: lambda x: 1 - np.tanh(x) ** 2, lucid.log: lambda x:
                 1 / x}.get(f, lambda x: 2 * x)  # fmt: skip
        return y * slope(x)

    paths(grad(total), A, compare=by_hand)
    paths(grad(lucid.jit(total)), A, compare=by_hand)
    paths(vmap(grad(lucid.jit(total))), A[None], compare=lambda x: by_hand(x[0])[None])


VIEWS = {
    "diagonal": lambda x: x[:, :2].T.diagonal(), "unfold": lambda x: x.unfold(1, 3, 1),
    "as_strided": lambda x: lucid.as_strided(x, (2,), (1,)), "slice": lambda x: x[:, ::2],
    "expand": lambda x: x[:1].expand(1, 3), "flip": lambda x: x.flip([0]),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_memory_and_copies_do_not(name):
    def f(x):
        y = x.clone()
        VIEWS[name](y).add_(1.0)
        return y

    def in_numpy(x):
        y = x.copy()
        views = {"diagonal": (np.arange(2), np.arange(2)), "as_strided": (0, slice(2)),
                 "slice": (slice(None), slice(None, None, 2)), "expand": 0,
                 "unfold": ...}  # fmt: skip
        if name in views:
            y[views[name]] += 1
        return y

    paths(f, A, compare=in_numpy)
    paths(vmap(f), np.stack([A, A + 1]), compare=lambda x: np.stack([in_numpy(v) for v in x]))


def test_types_and_settings_are_those_of_each_call():
    f = lucid.jit(lambda x, n: x * n, static_argnums=1)
    assert f(lucid.tensor([3]), 2).dtype == "int64" and f(lucid.tensor([3]), 2.0).dtype == "float32"
    with pytest.raises(ArgumentError, match="twice"):
        grad(lambda x: x**2, argnums=(0, 0))(lucid.tensor(3.0))
    with pytest.raises(LucidError):
        vjp(lambda x: (x, x), lucid.tensor(1.0))[1](lucid.tensor(1.0))
    z = lucid.tensor([1 + 2j])
    np.testing.assert_allclose(jacrev(lambda z: z**2, holomorphic=True)(z).numpy(), [[2 + 4j]])


def test_one_triangle_is_read():
    m = lucid.as_tensor(np.array([[2.0, 99.0], [1.0, 3.0]]))
    full = np.array([[2.0, 1.0], [1.0, 3.0]])
    for g in (lambda f: f, lucid.jit):
        np.testing.assert_allclose(g(lucid.linalg.eigvalsh)(m).numpy(), np.linalg.eigvalsh(full))
        np.testing.assert_allclose(g(lucid.linalg.cholesky)(m).numpy(), np.linalg.cholesky(full))
        slope = jvp(g(lucid.linalg.cholesky), (m,), (lucid.as_tensor(np.eye(2)),))[1].numpy()
        above, below = (np.linalg.cholesky(full + s * np.eye(2)) for s in (1e-6, -1e-6))
        np.testing.assert_allclose(slope, (above - below) / 2e-6, rtol=1e-6)
        for uplo, place in (("L", (1, 0)), ("U", (0, 1))):

            def f(a, g=g, uplo=uplo):
                w, q = g(lambda a: lucid.linalg.eigh(a, UPLO=uplo))(a)
                return (w**3).sum() + (q[0] ** 2 * w).sum()

            found, numeric = grad(f)(m).numpy(), np.zeros((2, 2))
            for i, j in np.ndindex(2, 2):
                e = np.zeros((2, 2))
                e[i, j] = 1e-5
                above, below = (f(m + lucid.as_tensor(s * e)).item() for s in (1, -1))
                numeric[i, j] = (above - below) / 2e-5
            # gradients are symmetric: what an entry moves is in its own place and in its mirror's
            np.testing.assert_allclose(found, found.T, rtol=1e-12)
            assert numeric[place[::-1]] == 0 and numeric[place] != 0
            both = np.diag(np.diag(found))
            both[place] = 2 * found[place]
            np.testing.assert_allclose(both, numeric, rtol=1e-5)


LOSSY = {
    "scatter": lambda: lucid.scatter(
        lucid.zeros(3, dtype="int64"), 0, lucid.tensor([0]), lucid.tensor([1.5])
    ),
    "eps": lambda: nn.BatchNorm1d(3, eps=-1),
    "cov": lambda: lucid.cov(lucid.ones(2, 2), aweights=lucid.tensor([1.0, -1.0])),
    "trace": lambda: lucid.trace(lucid.ones(2, 2, 2)),
    "text": lambda: lucid.ir.parse(
        "graph f(x: f32[]):\n    %0: f32[] = add 'a' x x\n    return %0"
    ),
}


@pytest.mark.parametrize("name", LOSSY)
def test_what_loses_information_is_refused(name):
    with pytest.raises((ArgumentError, DTypeError, ShapeError, LucidError)):
        LOSSY[name]()


def test_threads_that_record_draws_and_writes_of_one_tensor():
    shared, errors = lucid.zeros(3), []

    def work(k):
        try:
            for i in range(6):
                f = lucid.jit(
                    lambda x, c=float(i + k): (shared.add_(x * 0 + 1) * 0 + lucid.rand(3) * c).sum()
                )
                f(lucid.ones(3))
                f(lucid.ones(3))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not errors and shared.tolist() == [48.0] * 3
    assert lucid.jit(lambda x: x + shared)(lucid.ones(3)).tolist() == [49.0] * 3


def test_an_interrupt_while_a_step_compiles(monkeypatch, tmp_path):
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    optimizer = lucid.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    from lucid.compiler.runtime import codegen

    before = [p.detach().clone() for p in model.parameters()]
    state = lucid.get_rng_state()

    compile_object, interrupts = codegen.compile_object, iter([_thread.interrupt_main])

    def interrupted(*args, **kwargs):
        next(interrupts, bool)()  # Ctrl-C, once, while another thread compiles for the main one
        return compile_object(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(codegen, "compile_object", interrupted)
        patch.setenv("LUCID_CACHE_DIR", str(tmp_path / "cache"))
        with pytest.raises(KeyboardInterrupt):
            for scale in range(40):
                lucid.jit(lambda x, s=1.0 + scale: step(x * s) * s)(lucid.ones(1, 2))
    lucid.set_rng_state(state)
    with lucid.no_grad():
        for p, q in zip(model.parameters(), before):
            p.copy_(q)
    jitted = lucid.jit(step)
    found = [jitted(lucid.ones(1, 2)).item() for _ in range(3)]
    other = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    with lucid.no_grad():
        for p, q in zip(other.parameters(), before):
            p.copy_(q)
    model, optimizer = other, lucid.optim.SGD(other.parameters(), lr=0.1, momentum=0.9)
    lucid.set_rng_state(state)
    assert found == pytest.approx([step(lucid.ones(1, 2)).item() for _ in range(3)], rel=1e-5)


def test_the_same_data_take_the_same_path():
    f = lucid.jit(lambda x: x * 2 if float(lucid.exp(lucid.sin(x)).sum()) > 0 else x)
    x = lucid.as_tensor(np.linspace(0, 1, 1000))
    for _ in range(40):
        f(x)
    assert len([p for found in f.paths.values() for p in found]) == 1 and not f.is_uncompiled


def test_smaller_promises():
    f = lucid.jit(lambda x: lucid.sqrt(x * 0.0))
    x = lucid.tensor(1.0, requires_grad=True)
    f(x).backward(), f(x).backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(LucidError), lucid.autograd.detect_anomaly():
            f(x).backward()
    v = lucid.tensor([1.5, 2.5], requires_grad=True)
    assert lucid.autograd.grad(lucid.floor(v).sum(), v).tolist() == [0.0, 0.0]
    loss = (v * v).sum()
    loss.backward()
    for again in (loss.backward, lambda: lucid.autograd.grad(loss, v),
                  lambda: lucid.autograd.backward([loss])):  # fmt: skip
        with pytest.raises(GraphError, match="retain_graph"):
            again()
    for call in (len, iter):
        with pytest.raises(TypeError):
            call(lucid.tensor(1.0))
    kept = lucid.Tensor([1.0, 2.0], requires_grad=True, keep_grad=True)
    part = kept[1:]
    (part * 3).sum().backward()
    assert part.grad.tolist() == [3.0] and kept.grad.tolist() == [0.0, 3.0]

    class OnlyJvp(lucid.autograd.Function):
        @staticmethod
        def forward(x, scale=2.0):
            return x * scale

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.scale = inputs[1] if len(inputs) > 1 else 2.0

        @staticmethod
        def jvp(ctx, t, *_):
            return t * ctx.scale

    assert jvp(OnlyJvp.apply, (lucid.tensor(3.0),), (lucid.tensor(1.0),))[1].item() == 2.0

    @lucid.func.custom_jvp
    def cube(x):
        return x**3

    cube.defjvp(lambda xs, ts: (cube(xs[0]), 3 * xs[0] ** 2 * ts[0]))
    assert grad(grad(cube))(lucid.tensor(2.0)).item() == 12.0

    @lucid.func.custom_vjp
    def wrong(x):
        return x * 2

    wrong.defvjp(lambda x: (x * 2, None), lambda _, ct: (lucid.ones(5),))
    with pytest.raises(ShapeError):
        grad(lambda x: wrong(x).sum())(lucid.ones(3))
    with pytest.raises(MemoryError):
        lucid.zeros(1 << 60)


def test_an_index_out_of_range_raises_though_nothing_is_read():
    """NumPy's `take` does not look at indices whose result is empty; its indexing does."""
    for f in (lambda a: a[..., [5]], lambda a: lucid.index_select(a, -1, lucid.tensor([5]))):
        for call in (f, lucid.jit(f), lucid.jit(f), lambda a, f=f: vmap(f)(lucid.stack([a, a]))):
            with pytest.raises(IndexError):
                call(lucid.zeros(0, 3))
