"""Optimizers: every rule against NumPy, groups, settings that change, saving, jit, and errors."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError
from lucid.optim import LBFGS, SGD, Adam, AdamW, Muon, RMSprop, lr_scheduler
from tests.optim import references
from tests.optim.settings import COMPLEX, OPTIMIZERS

STEPS = 9


def ids(case):
    return f"{case[0]}-{','.join(case[1])}"


def parameter(rng, *shape, kind="float64"):
    x = rng.normal(size=shape)
    x = x + 1j * rng.normal(size=shape) if kind.startswith("complex") else x
    return lucid.tensor(x.astype(kind), requires_grad=True)


def gradients(rng, p, steps=STEPS):
    """Gradients that are as large as 1, small, and in part exactly 0."""
    made = [rng.normal(size=p.shape) * 10.0 ** -(i % 3) for i in range(steps)]
    if p.dtype.kind == "c":
        made = [g + 1j * rng.normal(size=p.shape) for g in made]
    for g in made:
        g.reshape(-1)[:1] = 0.0
    return made


def walk(optimizer, p, grads):
    found = []
    for g in grads:
        p.grad = lucid.tensor(g.astype(p.dtype))
        optimizer.step()
        found.append(p.detach().numpy().copy())
    return found


SHAPES = [
    (case, shape)
    for case in OPTIMIZERS
    for shape in [(4, 3), (3, 5), (6,), ()]
    if len(shape) == 2 or case[0] != "Muon"
]


@pytest.mark.parametrize(("case", "shape"), SHAPES, ids=str)
def test_rule_follows_its_formula(case, shape, rng):
    name, settings = case
    p = parameter(rng, *shape)
    grads = gradients(rng, p)
    if name == "Muon":  # singular values that are 0 have no vectors of their own
        grads = [rng.normal(size=shape) for _ in grads]
    expected = references.trajectory(name, settings, p.detach().numpy().copy(), grads)
    for mine, theirs in zip(walk(getattr(lucid.optim, name)([p], **settings), p, grads), expected):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("case", COMPLEX, ids=ids)
def test_complex_parameter_is_a_pair_of_real_ones(case, rng):
    name, settings = case
    p = parameter(rng, 3, kind="complex128")
    grads = gradients(rng, p)
    expected = references.trajectory(name, settings, p.detach().numpy().copy(), grads)
    found = walk(getattr(lucid.optim, name)([p], **settings), p, grads)
    for mine, theirs in zip(found, expected):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("case", OPTIMIZERS, ids=ids)
def test_single_precision_keeps_its_dtype_and_stays_near(case, rng):
    name, settings = case
    p = parameter(rng, 4, 3, kind="float32")
    grads = [rng.normal(size=p.shape) for _ in range(STEPS)]
    start = p.detach().numpy().astype("float64")
    if name == "Adafactor":  # its first eps is that of the dtype
        settings = {"eps": (float(np.finfo("float32").eps), 1e-3), **settings}
    expected = references.trajectory(name, settings, start, grads)
    found = walk(getattr(lucid.optim, name)([p], **settings), p, grads)
    assert p.dtype == lucid.float32
    np.testing.assert_allclose(found[-1], expected[-1], rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("case", OPTIMIZERS, ids=ids)
def test_a_step_inside_jit_is_the_step_outside(case, rng):
    name, settings = case
    target = rng.normal(size=(4, 3))

    def train(compiled):
        p = lucid.tensor(np.ones((4, 3)), requires_grad=True)
        optimizer = getattr(lucid.optim, name)([p], **settings)

        def step(x):
            optimizer.zero_grad()
            loss = ((p - x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        run = lucid.jit(step) if compiled else step
        losses = [run(lucid.tensor(target * (1 + i))).item() for i in range(STEPS)]
        return losses, p.detach().numpy()

    (eager, p), (jitted, q) = train(False), train(True)
    np.testing.assert_allclose(jitted, eager, rtol=1e-10)
    np.testing.assert_allclose(q, p, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("case", OPTIMIZERS, ids=ids)
@pytest.mark.parametrize("through_file", [False, True])
def test_training_goes_on_bitwise_from_a_state_dict(case, through_file, rng, tmp_path):
    name, settings = case
    p = parameter(rng, 4, 3)
    grads = [rng.normal(size=p.shape) for _ in range(8)]
    optimizer = getattr(lucid.optim, name)([p], **settings)
    walk(optimizer, p, grads[:4])
    state = {"p": p.detach().clone(), "optimizer": optimizer.state_dict()}
    lucid.save(state, tmp_path / "state.safetensors")
    if through_file:
        state = lucid.load(tmp_path / "state.safetensors")
    q = state["p"].clone().requires_grad_()
    other = getattr(lucid.optim, name)([q])
    other.load_state_dict(state["optimizer"])
    assert other.param_groups[0]["lr"] == optimizer.param_groups[0]["lr"]
    np.testing.assert_array_equal(walk(other, q, grads[4:]), walk(optimizer, p, grads[4:]))


def test_a_jitted_step_goes_on_from_a_loaded_state(rng):
    start, x = rng.normal(size=5), lucid.tensor(rng.normal(size=5))

    def fresh():
        p = lucid.tensor(start.copy(), requires_grad=True)
        optimizer = Adam([p], lr=0.1)

        @lucid.jit
        def step():
            optimizer.zero_grad()
            ((p - x) ** 2).sum().backward()
            optimizer.step()

        return p, optimizer, step

    p, optimizer, step = fresh()
    for _ in range(3):
        step()
    q, other, other_step = fresh()
    for _ in range(5):
        other_step()
    with lucid.no_grad():
        q.copy_(p)
    other.load_state_dict(optimizer.state_dict())
    for _ in range(4):
        step()
        other_step()
    np.testing.assert_array_equal(q.detach().numpy(), p.detach().numpy())


def test_groups_have_settings_of_their_own(rng):
    p, q = parameter(rng, 3), parameter(rng, 2)
    grads = [(rng.normal(size=3), rng.normal(size=2)) for _ in range(STEPS)]
    groups = [{"params": [p], "lr": 1, "momentum": 0.5}, {"params": q}]
    optimizer = SGD(groups, lr=0.1, weight_decay=0.2)
    start = p.detach().numpy().copy(), q.detach().numpy().copy()
    for g, h in grads:
        p.grad, q.grad = lucid.tensor(g), lucid.tensor(h)
        optimizer.step()
    first = {"lr": 1.0, "momentum": 0.5, "weight_decay": 0.2}
    expected = references.trajectory("SGD", first, start[0], [g for g, _ in grads])[-1]
    np.testing.assert_allclose(p.detach().numpy(), expected, rtol=1e-10)
    second = {"lr": 0.1, "weight_decay": 0.2}
    expected = references.trajectory("SGD", second, start[1], [h for _, h in grads])[-1]
    np.testing.assert_allclose(q.detach().numpy(), expected, rtol=1e-10)


def test_a_group_added_later_is_updated_from_then_on(rng):
    p, q = parameter(rng, 3), parameter(rng, 2)
    optimizer = Adam([p], lr=0.1)
    p.grad, q.grad = lucid.ones(3, dtype="float64"), lucid.ones(2, dtype="float64")
    before = q.detach().numpy().copy()
    optimizer.step()
    np.testing.assert_array_equal(q.detach().numpy(), before)
    optimizer.add_param_group({"params": [q], "lr": 0.5})
    optimizer.step()
    np.testing.assert_allclose(q.detach().numpy(), before - 0.5, rtol=1e-6)


def test_parameters_without_gradients_stay_and_have_no_state(rng):
    p, q = parameter(rng, 3), parameter(rng, 3)
    optimizer = AdamW([p, q], lr=0.1, weight_decay=0.5)
    before = q.detach().numpy().copy()
    p.grad = lucid.ones(3, dtype="float64")
    optimizer.step()
    np.testing.assert_array_equal(q.detach().numpy(), before)
    assert q not in optimizer.state and optimizer.state[p]["step"].item() == 1
    q.grad = lucid.ones(3, dtype="float64")
    optimizer.step()
    assert [optimizer.state[x]["step"].item() for x in (p, q)] == [2, 1]


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
def test_a_new_rate_compiles_nothing_and_counts_at_once(name, rng, new_kernels):
    p = parameter(rng, 40)
    optimizer = getattr(lucid.optim, name)([p], lr=0.1, weight_decay=0.1)
    grads = [np.ones(40)] * 6
    walk(optimizer, p, grads)
    before = p.detach().numpy().copy()
    kernels = len(new_kernels)
    assert kernels
    for rate in (0.0, 0.7, 1e-3):
        optimizer.param_groups[0]["lr"] = rate
        after = walk(optimizer, p, grads[:1])[0]
        assert np.array_equal(after, before) == (rate == 0.0)
        before = after
    assert len(new_kernels) == kernels


def test_a_momentum_given_later_starts_from_nothing(rng):
    p = parameter(rng, 3)
    optimizer = SGD([p], lr=0.5)
    start = walk(optimizer, p, [np.ones(3)])[0]
    optimizer.param_groups[0]["momentum"] = 0.5
    found = walk(optimizer, p, [np.ones(3)] * 2)
    np.testing.assert_allclose(found, [start - 0.5, start - 0.5 - 0.75])


def test_a_parameter_changed_from_outside_goes_on_from_there(rng):
    p = parameter(rng, 3)
    optimizer = SGD([p], lr=1.0)
    walk(optimizer, p, [np.ones(3)] * 3)
    with lucid.no_grad():
        p.copy_(lucid.zeros(3, dtype="float64"))
    np.testing.assert_array_equal(walk(optimizer, p, [np.ones(3)])[0], -np.ones(3))


def test_step_gives_the_loss_of_its_closure(rng):
    p = parameter(rng, 3)
    optimizer = SGD([p], lr=0.1)
    start = p.detach().numpy().copy()

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with lucid.no_grad():
        loss = optimizer.step(closure)
    np.testing.assert_allclose(loss.item(), (start**2).sum())
    np.testing.assert_allclose(p.detach().numpy(), 0.8 * start)


def test_zero_grad_forgets_or_fills(rng):
    p = parameter(rng, 3)
    optimizer = SGD([p])
    p.grad = lucid.ones(3, dtype="float64")
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0, 0.0, 0.0]
    optimizer.zero_grad()
    assert p.grad is None


def test_hooks_run_around_every_step_until_removed(rng):
    p, calls = parameter(rng, 1), []
    optimizer = SGD([p])
    handle = optimizer.register_step_pre_hook(lambda o, *_: calls.append("before"))
    optimizer.register_step_post_hook(lambda o, *_: calls.append("after"))
    walk(optimizer, p, [np.ones(1)])
    handle.remove()
    walk(optimizer, p, [np.ones(1)])
    assert calls == ["before", "after", "after"]


def test_named_parameters_are_taken_with_their_names(rng):
    p, q = parameter(rng, 3), parameter(rng, 2)
    optimizer = SGD(iter([("w", p), ("b", q)]), lr=0.1)
    assert optimizer.param_groups[0]["params"] == [p, q]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["w", "b"]


@pytest.mark.parametrize("name", sorted({name for name, _ in OPTIMIZERS} | {"LBFGS"}))
def test_pytorchs_words_for_the_manner_of_updates_are_taken(name):
    make = getattr(lucid.optim, name)
    optimizer = make([lucid.ones(2, 2)], foreach=True, fused=True, capturable=False)
    assert "fused" not in optimizer.param_groups[0]


def test_repr_names_settings():
    w = lucid.ones(2, requires_grad=True)
    assert "lr: 0.5" in repr(SGD([w], lr=0.5)) and repr(SGD([w])).startswith("SGD (")


W = lucid.ones(2, requires_grad=True)


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: SGD([]), "no parameters"),
        (lambda: SGD([1.0]), "tensors, not float"),
        (lambda: SGD(3), "not int"),
        (lambda: SGD({W}), "not set"),
        (lambda: SGD([W * 2]), "result of mul"),
        (lambda: SGD([W, W]), "is given twice"),
        (lambda: SGD([lucid.ones(2, dtype="int64")]), "int64"),
        (lambda: SGD([W], lr=-1.0), "lr cannot be -1"),
        (lambda: SGD([W], lr=float("nan")), "lr cannot be nan"),
        (lambda: SGD([W], lr="fast"), "lr='fast' is not a real number"),
        (lambda: SGD([W], nesterov=True), "nesterov needs"),
        (lambda: SGD([{"lr": 1.0}]), "with 'params'"),
        (lambda: SGD([{"params": [W], "weigth_decay": 1.0}]), "did you mean weight_decay?"),
        (lambda: SGD([W], rate=1.0), "unknown setting rate"),
        (lambda: Adam([W], differentiable=True), "optim.functional"),
        (lambda: Adam([W], betas=(0.9, 1.0)), "betas cannot be"),
        (lambda: Adam([W], betas=0.9), "betas cannot be 0.9"),
        (lambda: Adam([W], betas=(0.9,)), "betas cannot be"),
        (lambda: lucid.optim.Rprop([W], etas=(1.5, 2.0)), "one number below 1"),
        (lambda: Muon([W]), "not a matrix"),
        (lambda: Muon([lucid.ones(2, 2)], adjust_lr_fn="x"), "adjust_lr_fn"),
        (lambda: lucid.optim.Adafactor([W.to("complex64").detach()]), "complex64"),
        (lambda: LBFGS([W], line_search_fn="x"), "strong_wolfe"),
        (lambda: LBFGS([{"params": [W]}, {"params": [lucid.ones(1)]}]), "one parameter group"),
        (lambda: LBFGS([W]).step(), "closure"),
        (lambda: SGD([W]).load_state_dict({}), "param_groups"),
        (lambda: SGD([W]).load_state_dict(Adam([W, lucid.ones(1)]).state_dict()), "groups of [2]"),
        (lambda: lr_scheduler.StepLR(3, 1), "expected an Optimizer"),
    ],
)  # fmt: skip
def test_misuse_is_told(make, part):
    with pytest.raises(ArgumentError, match=r".*") as caught:
        make()
    assert part in str(caught.value)


def test_a_state_of_other_shapes_is_refused(rng):
    p, q = parameter(rng, 3), parameter(rng, 4)
    optimizer = RMSprop([p])
    walk(optimizer, p, [np.ones(3)])
    with pytest.raises(ArgumentError, match=r"square_avg of shape \(3,\)"):
        RMSprop([q]).load_state_dict(optimizer.state_dict())
