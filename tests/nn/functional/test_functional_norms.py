"""Norms and dropout as users call them: running statistics, accuracy, chance."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
import lucid.nn.functional as F

RNG = np.random.default_rng(0)


def statistics(channels=3):
    return lucid.zeros(channels), lucid.ones(channels)


# Running statistics


def test_training_moves_running_statistics_towards_those_of_the_batch():
    x = RNG.normal(2, 3, (8, 3, 5)).astype("float32")
    mean, var = statistics()
    F.batch_norm(lucid.tensor(x), mean, var, training=True, momentum=0.25)
    np.testing.assert_allclose(mean.numpy(), 0.25 * x.mean((0, 2)), rtol=1e-5)
    expected = 0.75 + 0.25 * x.transpose(1, 0, 2).reshape(3, -1).var(1, ddof=1)
    np.testing.assert_allclose(var.numpy(), expected, rtol=1e-5)


def test_evaluation_leaves_running_statistics_alone():
    mean, var = statistics()
    F.batch_norm(lucid.tensor(RNG.normal(size=(8, 3))), mean, var)
    assert mean.tolist() == [0, 0, 0] and var.tolist() == [1, 1, 1]


def test_momentum_none_leaves_running_statistics_alone():
    mean, var = statistics()
    F.batch_norm(lucid.tensor([[1.0], [3.0]]), mean[:1], var[:1], training=True, momentum=None)
    assert mean.tolist() == [0, 0, 0] and var.tolist() == [1, 1, 1]


def test_momentum_may_be_a_tensor_so_that_averages_can_be_cumulative_when_compiled():
    mean, var, count = lucid.zeros(1), lucid.ones(1), lucid.tensor(0.0)

    @lucid.jit
    def step(x):
        count.add_(1.0)
        return F.batch_norm(x, mean, var, training=True, momentum=1 / count)

    for k in range(1, 4):
        step(lucid.tensor([[1.0 * k], [3.0 * k]]))
    assert count.item() == 3.0
    np.testing.assert_allclose(mean.numpy(), [np.mean([2.0, 4.0, 6.0])], rtol=1e-6)


def test_running_statistics_move_inside_a_compiled_gradient():
    x = RNG.normal(2, 3, (8, 3)).astype("float32")
    mean, var = statistics()
    weight = lucid.ones(3)

    def loss(weight):
        return (F.batch_norm(lucid.tensor(x), mean, var, weight, training=True) ** 2).sum()

    plain = lucid.func.grad(loss)(weight).numpy()
    np.testing.assert_allclose(mean.numpy(), 0.1 * x.mean(0), rtol=1e-5)
    step = lucid.jit(lucid.func.grad(loss))
    for _ in range(2):
        np.testing.assert_allclose(step(weight).numpy(), plain, rtol=1e-5)
    np.testing.assert_allclose(mean.numpy(), (1 - 0.9**3) * x.mean(0), rtol=1e-5)


def test_running_statistics_carry_no_gradient():
    mean, var = statistics()
    x = lucid.tensor(RNG.normal(size=(8, 3)), requires_grad=True)
    F.batch_norm(x, mean, var, training=True).sum().backward()
    assert not mean.requires_grad and not var.requires_grad


def test_instance_norm_follows_the_mean_over_the_batch():
    x = RNG.normal(1, 2, (4, 3, 6)).astype("float32")
    mean, var = statistics()
    F.instance_norm(lucid.tensor(x), mean, var, momentum=0.5)
    np.testing.assert_allclose(mean.numpy(), 0.5 * x.mean((0, 2)), rtol=1e-5)
    np.testing.assert_allclose(var.numpy(), 0.5 + 0.5 * x.var(2, ddof=1).mean(0), rtol=1e-5)


# Accuracy


def test_a_large_mean_costs_no_accuracy():
    """E[x²] - E[x]² would have no digit left: 1e4² has 8, float32 has 7."""
    x = np.array([[1e4 - 1, 1e4, 1e4 + 1]], "float32")
    y = F.layer_norm(lucid.tensor(x), (3,), eps=0.0).numpy()
    np.testing.assert_allclose(y, [[-np.sqrt(1.5), 0, np.sqrt(1.5)]], rtol=1e-6, atol=1e-6)


def test_a_constant_row_gives_zeros_and_finite_gradients():
    x = lucid.ones(2, 4, requires_grad=True)
    F.layer_norm(x, (4,)).sum().backward()
    assert (F.layer_norm(x, (4,)) == 0).all() and np.isfinite(x.grad.numpy()).all()


def test_normalize_of_zeros_is_zero_with_a_finite_gradient():
    x = lucid.zeros(2, 3, requires_grad=True)
    y = F.normalize(x)
    y.sum().backward()
    assert (y == 0).all() and np.isfinite(x.grad.numpy()).all()


def test_normalized_shape_may_be_one_number():
    x = lucid.tensor(RNG.normal(size=(2, 4)))
    np.testing.assert_array_equal(F.layer_norm(x, 4).numpy(), F.layer_norm(x, (4,)).numpy())
    np.testing.assert_array_equal(F.rms_norm(x, 4).numpy(), F.rms_norm(x, [4]).numpy())


# Compiled


def value_and_gradients(layer):
    def both(ct, *args):
        y, pull = lucid.func.vjp(layer, *args)
        return y, pull(ct)

    return lucid.jit(both)


def test_layer_norm_forward_is_one_kernel_over_rows():
    x, w = lucid.ones(8, 16), lucid.ones(16)
    assert len(lucid.jit(lambda x, w: F.layer_norm(x, (16,), w, w)).kernels(x, w)) == 1
    assert len(lucid.jit(lambda x, w: F.rms_norm(x, (16,), w)).kernels(x, w)) == 1


def test_layer_norm_with_its_gradients_is_three_kernels():
    x, w = lucid.ones(8, 16), lucid.ones(16)
    both = value_and_gradients(lambda x, w, b: F.layer_norm(x, (16,), w, b))
    assert len(both.kernels(x, x, w, w)) <= 3


# Dropout


def test_dropout_keeps_the_mean():
    lucid.manual_seed(0)
    y = F.dropout(lucid.ones(20000), 0.3).numpy()
    assert set(np.unique(y)) == {0.0, np.float32(1 / 0.7)}
    assert abs(y.mean() - 1) < 0.02


def test_dropout_of_everything_is_zero_also_of_inf():
    x = lucid.tensor([1.0, np.inf], requires_grad=True)
    y = F.dropout(x, 1.0)
    y.sum().backward()
    assert y.tolist() == [0, 0] and x.grad.tolist() == [0, 0]


def test_the_gradient_of_dropout_is_its_mask():
    x = lucid.ones(100, requires_grad=True)
    y = F.dropout(x, 0.4)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.numpy())


def test_dropout_in_place_writes_into_its_operand():
    x = lucid.ones(50)
    y = F.dropout(x, 0.5, inplace=True)
    assert y is x and set(np.unique(x.numpy())) == {0.0, 2.0}


def test_compiled_dropout_draws_anew_at_every_call():
    drop = lucid.jit(lambda x: F.dropout(x, 0.5))
    x = lucid.ones(64)
    first, second, third = (drop(x).numpy() for _ in range(3))
    assert (first != second).any() and (second != third).any()


def test_the_stream_of_dropout_is_the_same_compiled_and_not():
    x = lucid.ones(64)
    drop = lucid.jit(lambda x: F.dropout(x, 0.5))
    lucid.manual_seed(7)
    eager = [F.dropout(x, 0.5).numpy() for _ in range(2)]
    lucid.manual_seed(7)
    compiled = [drop(x).numpy() for _ in range(2)]
    np.testing.assert_array_equal(eager, compiled)


@pytest.mark.parametrize(
    ("drop", "shape", "inner"),
    [
        (F.dropout1d, (20, 30, 4), (2,)),
        (F.dropout1d, (600, 4), (1,)),
        (F.dropout2d, (20, 30, 2, 3), (2, 3)),
        (F.dropout2d, (20, 30, 4), (2,)),
        (F.dropout3d, (20, 30, 2, 2, 2), (2, 3, 4)),
        (F.dropout3d, (600, 2, 2, 2), (1, 2, 3)),
    ],
)
def test_channels_are_dropped_whole(drop, shape, inner):
    lucid.manual_seed(1)
    y = drop(lucid.ones(*shape), 0.5).numpy()
    low, high = y.min(inner), y.max(inner)
    np.testing.assert_array_equal(low, high)
    assert set(np.unique(low)) == {0.0, 2.0} and abs(low.mean() - 1) < 0.15


def test_alpha_dropout_keeps_mean_and_variance():
    lucid.manual_seed(0)
    x = lucid.randn(100000)
    y = F.alpha_dropout(x, 0.3, training=True).numpy()
    assert abs(y.mean()) < 0.02 and abs(y.std() - 1) < 0.02
    z = F.feature_alpha_dropout(lucid.ones(50, 40, 3), 0.5, training=True).numpy()
    np.testing.assert_array_equal(z.min(2), z.max(2))
    assert len(np.unique(z)) == 2


def test_dropout_inside_vmap_is_as_its_randomness_says():
    x = lucid.ones(4, 100)
    same = lucid.func.vmap(F.dropout, randomness="same")(x).numpy()
    different = lucid.func.vmap(F.dropout, randomness="different")(x).numpy()
    assert (same == same[0]).all() and (different != different[0]).any()
