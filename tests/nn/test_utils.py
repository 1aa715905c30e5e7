"""nn.utils: clipping, parameters as a vector, parametrizations."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import ArgumentError, LucidError, ModuleError
from lucid.nn.utils import (
    clip_grad_norm_,
    clip_grad_value_,
    fuse_conv_bn_eval,
    fuse_linear_bn_eval,
    get_total_norm,
    parameters_to_vector,
    parametrizations,
    parametrize,
    remove_weight_norm,
    vector_to_parameters,
)

RNG = np.random.default_rng(0)


def with_gradients(*grads):
    params = []
    for g in grads:
        p = nn.Parameter(lucid.zeros(len(g), dtype="float64"))
        p.grad = lucid.tensor(np.array(g, float))
        params.append(p)
    return params


# Clipping


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, float("inf")])
def test_the_norm_is_that_of_all_gradients_together(order):
    params = with_gradients([3.0, -4.0], [12.0])
    expected = np.linalg.norm([3.0, -4.0, 12.0], order)
    np.testing.assert_allclose(clip_grad_norm_(params, 1.0, order).item(), expected)
    clipped = np.concatenate([p.grad.numpy() for p in params])
    np.testing.assert_allclose(np.linalg.norm(clipped, order), 1.0, rtol=1e-5)


def test_short_gradients_stay():
    params = with_gradients([0.3], [-0.4])
    clip_grad_norm_(params, 1.0)
    np.testing.assert_allclose([p.grad.item() for p in params], [0.3, -0.4])


def test_parameters_without_gradients_are_passed_over():
    params = [*with_gradients([3.0, 4.0]), nn.Parameter(lucid.ones(2))]
    assert clip_grad_norm_(params, 10.0).item() == 5.0
    assert clip_grad_norm_([nn.Parameter(lucid.ones(2))], 1.0).item() == 0.0


def test_infinite_norms_are_an_error_where_asked_for():
    params = with_gradients([np.inf])
    with pytest.raises(LucidError, match="inf"):
        clip_grad_norm_(params, 1.0, error_if_nonfinite=True)


def test_values_are_clipped_one_by_one():
    params = with_gradients([3.0, -4.0, 0.5])
    clip_grad_value_(params, 1.0)
    assert params[0].grad.tolist() == [1.0, -1.0, 0.5]


def test_clipping_inside_a_jitted_step_is_one_program_for_all_norms():
    w = nn.Parameter(lucid.ones(2, dtype="float64"))
    w.grad = lucid.zeros(2, dtype="float64")  # as it is at the second call and all later ones

    @lucid.jit
    def step(x):
        w.grad = None
        (w * x).sum().backward()
        return clip_grad_norm_([w], 1.0)

    for x in ([3.0, 4.0], [0.3, 0.4], [30.0, 40.0], [0.0, 0.1]):
        assert step(lucid.tensor(np.array(x))).item() == pytest.approx(np.linalg.norm(x))
        expected = np.array(x) * min(1, 1 / (np.linalg.norm(x) + 1e-6))
        np.testing.assert_allclose(w.grad, expected, rtol=1e-12)
    assert sum(len(paths) for paths in step.paths.values()) == 1
    assert all(not path.guards for paths in step.paths.values() for path in paths)


def test_the_norm_of_nothing_is_zero():
    assert get_total_norm([]).item() == 0.0


# Vectors


def test_parameters_are_a_vector_and_back():
    m = nn.Linear(3, 2)
    vector = parameters_to_vector(m.parameters())
    expected = np.concatenate([m.weight.detach().numpy().ravel(), m.bias.detach().numpy()])
    np.testing.assert_array_equal(vector.detach(), expected)
    vector_to_parameters(lucid.arange(8.0), m.parameters())
    assert m.weight.tolist() == [[0, 1, 2], [3, 4, 5]] and m.bias.tolist() == [6, 7]
    with pytest.raises(LucidError, match="8 elements"):
        vector_to_parameters(lucid.ones(3), m.parameters())


# Fusion


@pytest.mark.parametrize("name", ["Conv2d", "ConvTranspose2d", "Linear"])
@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_and_its_batch_norm_are_one_layer_in_evaluation(name, bias):
    size, kinds = ((3, 4, 2), nn.BatchNorm2d) if name != "Linear" else ((3, 4), nn.BatchNorm1d)
    layer, norm = getattr(nn, name)(*size, bias=bias).double(), kinds(4).double()
    x = lucid.tensor(RNG.normal(size=(5, 3, 4, 4) if name != "Linear" else (5, 3)))
    with lucid.no_grad():
        norm.weight.copy_(RNG.normal(size=4))
        norm.bias.copy_(RNG.normal(size=4))
    norm(layer(x))
    fuse = fuse_linear_bn_eval if name == "Linear" else fuse_conv_bn_eval
    with pytest.raises(ModuleError, match="eval"):
        fuse(layer, norm)
    layer.eval(), norm.eval()
    found = fuse(layer, norm)(x).detach()
    np.testing.assert_allclose(found, norm(layer(x)).detach(), rtol=1e-9, atol=1e-12)


# Parametrizations


class Doubled(nn.Module):
    def forward(self, x):
        return x * 2

    def right_inverse(self, x):
        return x / 2


class Exponential(nn.Module):
    def forward(self, x):
        return x.exp()

    def right_inverse(self, x):
        return x.log()


def positive_linear():
    m = nn.Linear(3, 2).double()
    with lucid.no_grad():
        m.weight.copy_(RNG.uniform(1, 2, (2, 3)))
    return m


def test_a_parametrized_tensor_is_computed_from_its_original():
    m = positive_linear()
    before = m.weight.detach().numpy().copy()
    parametrize.register_parametrization(m, "weight", Exponential())
    assert parametrize.is_parametrized(m) and parametrize.is_parametrized(m, "weight")
    assert not parametrize.is_parametrized(m, "bias")
    assert [name for name, _ in m.named_parameters()] == [
        "bias", "parametrizations.weight.original"
    ]  # fmt: skip
    np.testing.assert_allclose(m.weight.detach(), before, rtol=1e-12)
    np.testing.assert_allclose(m.parametrizations.weight.original.detach(), np.log(before))
    x = RNG.normal(size=(4, 3))
    expected = x @ before.T + m.bias.detach().numpy()
    np.testing.assert_allclose(m(lucid.tensor(x)).detach(), expected, rtol=1e-10)


def test_gradients_go_to_the_original():
    m = parametrize.register_parametrization(positive_linear(), "weight", Exponential())
    x = RNG.normal(size=(4, 3))
    m(lucid.tensor(x)).sum().backward()
    expected = np.broadcast_to(x.sum(0), (2, 3)) * m.weight.detach().numpy()
    np.testing.assert_allclose(m.parametrizations.weight.original.grad, expected, rtol=1e-10)


def test_parametrizations_are_applied_one_after_the_other():
    m = positive_linear()
    before = m.weight.detach().numpy().copy()
    parametrize.register_parametrization(m, "weight", Exponential())
    parametrize.register_parametrization(m, "weight", Doubled())
    np.testing.assert_allclose(m.weight.detach(), before, rtol=1e-12)
    original = m.parametrizations.weight.original.detach().numpy()
    np.testing.assert_allclose(2 * np.exp(original), before, rtol=1e-12)


def test_assigning_the_tensor_changes_its_original():
    m = parametrize.register_parametrization(positive_linear(), "weight", Exponential())
    m.weight = lucid.full((2, 3), np.e, dtype="float64")
    np.testing.assert_allclose(m.parametrizations.weight.original.detach(), np.ones((2, 3)))


def test_a_removed_parametrization_leaves_the_value_or_the_original():
    for leave in (True, False):
        m = parametrize.register_parametrization(positive_linear(), "weight", Exponential())
        value, original = m.weight, m.parametrizations.weight.original
        parametrize.remove_parametrizations(m, "weight", leave)
        expected = value if leave else original
        np.testing.assert_array_equal(m.weight.detach(), expected.detach())
        assert isinstance(m.weight, nn.Parameter) and set(m.state_dict()) == {"weight", "bias"}
        assert not parametrize.is_parametrized(m)


def test_bad_parametrizations_are_refused():
    m = nn.Linear(3, 2)

    class Flat(nn.Module):
        def forward(self, x):
            return x.flatten()

    with pytest.raises(ModuleError, match="no parameter or buffer 'nothing'"):
        parametrize.register_parametrization(m, "nothing", Doubled())
    with pytest.raises(ModuleError, match="is not a Module"):
        parametrize.register_parametrization(m, "weight", lambda x: x)
    with pytest.raises(LucidError, match="unsafe=True"):
        parametrize.register_parametrization(m, "weight", Flat())
    assert m.weight.shape == (2, 3) and isinstance(m.weight, nn.Parameter)
    with pytest.raises(ModuleError, match="no parametrization"):
        parametrize.remove_parametrizations(m, "weight")


@pytest.mark.parametrize(("dim", "axes"), [(0, (1, 2, 3)), (1, (0, 2, 3)), (None, (0, 1, 2, 3))])
def test_weight_norm_keeps_lengths_apart(dim, axes):
    m = nn.Conv2d(3, 4, 2).double()
    before = m.weight.detach().numpy().copy()
    parametrizations.weight_norm(m, dim=dim)
    np.testing.assert_allclose(m.weight.detach(), before, rtol=1e-12)
    chain = m.parametrizations.weight
    with lucid.no_grad():
        chain.original0.fill_(3.0)
        chain.original1.mul_(100.0)
    lengths = np.sqrt((m.weight.detach().numpy() ** 2).sum(axes))
    np.testing.assert_allclose(lengths, np.full(lengths.shape, 3.0), rtol=1e-10)
    remove_weight_norm(m)
    assert set(m.state_dict()) == {"weight", "bias"}


def test_spectral_norm_makes_the_largest_singular_value_one():
    lucid.manual_seed(0)
    m = parametrizations.spectral_norm(nn.Linear(5, 4).double(), n_power_iterations=50)
    w = m.parametrizations.weight.original.detach().numpy()
    for _ in range(4):
        found = m.weight.detach().numpy()
    np.testing.assert_allclose(found, w / np.linalg.svd(w)[1][0], rtol=1e-6)


def test_spectral_norm_rests_in_evaluation():
    m = parametrizations.spectral_norm(nn.Conv2d(2, 3, 2))
    u = m.parametrizations.weight[0]._u
    before = u.numpy().copy()
    m(lucid.ones(1, 2, 4, 4))
    assert not np.array_equal(u, before)
    before = u.numpy().copy()
    m.eval()(lucid.ones(1, 2, 4, 4))
    np.testing.assert_array_equal(u, before)


def test_spectral_norm_of_a_transposed_convolution_takes_the_second_axis():
    m = parametrizations.spectral_norm(nn.ConvTranspose2d(2, 3, 2))
    assert m.parametrizations.weight[0]._u.shape == (3,)


@pytest.mark.parametrize("sizes", [(5, 3), (3, 5), (4, 4)])
@pytest.mark.parametrize("map", ["matrix_exp", "cayley"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal_weights_stay_orthogonal_while_training(sizes, map, trivial):
    lucid.manual_seed(0)
    m = nn.Linear(*sizes).double()
    parametrizations.orthogonal(m, orthogonal_map=map, use_trivialization=trivial)
    x = lucid.tensor(RNG.normal(size=(7, sizes[0])))
    before = m.weight.detach().numpy().copy()
    for _ in range(3):
        m.zero_grad()
        (m(x) ** 3).sum().backward()
        with lucid.no_grad():
            for p in m.parameters():
                p.sub_(p.grad * 0.01)
    w = m.weight.detach().numpy()
    product = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(product, np.eye(min(sizes)), atol=1e-10)
    assert not np.allclose(w, before)


def test_an_orthogonal_weight_stays_what_it_is():
    q = np.linalg.qr(RNG.normal(size=(5, 5)))[0][:, :3]
    m = nn.Linear(3, 5).double()
    with lucid.no_grad():
        m.weight.copy_(q)
    parametrizations.orthogonal(m)
    np.testing.assert_allclose(m.weight.detach(), q, atol=1e-12)


@pytest.mark.parametrize("kind", ["weight_norm", "spectral_norm", "orthogonal"])
def test_parametrized_modules_are_copied_jitted_and_differentiated_whole(kind):
    lucid.manual_seed(0)
    m = getattr(parametrizations, kind)(nn.Linear(3, 2).double()).eval()
    x = lucid.tensor(RNG.normal(size=(4, 3)))
    expected = m(x).detach().numpy()
    np.testing.assert_array_equal(copy.deepcopy(m)(x).detach(), expected)
    jitted = lucid.jit(lambda x: m(x))
    for _ in range(2):
        np.testing.assert_allclose(jitted(x).detach(), expected, rtol=1e-10)
    grads = lucid.func.grad(lambda m: (m(x) ** 2).sum())(m)
    (m(x) ** 2).sum().backward()
    for (name, p), (_, g) in zip(m.named_parameters(), grads.named_parameters()):
        np.testing.assert_allclose(g.detach(), p.grad, rtol=1e-9, atol=1e-12, err_msg=name)


def test_bad_settings_are_refused():
    with pytest.raises(LucidError):
        parametrizations.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)
    with pytest.raises(LucidError):
        parametrizations.orthogonal(nn.Linear(2, 2), "bias")
    with pytest.raises(LucidError):
        parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="x")
    with pytest.raises(LucidError):
        parametrizations.spectral_norm(nn.Linear(2, 2), "nothing")


def test_weights_are_fused_with_the_statistics_of_a_norm():
    rng = np.random.default_rng(3)
    w, b, mean, shift = rng.normal(size=(3, 4)), *rng.normal(size=(3, 3))
    var, factor = rng.uniform(0.5, 2.0, (2, 3))
    x = rng.normal(size=(5, 4))
    expected = (x @ w.T + b - mean) / np.sqrt(var + 1e-3) * factor + shift
    given = [lucid.tensor(v) for v in (w, b, mean, var)]
    weight, bias = nn.utils.fuse_linear_bn_weights(
        *given, 1e-3, lucid.tensor(factor), lucid.tensor(shift)
    )
    np.testing.assert_allclose(x @ weight.detach().numpy().T + bias.detach().numpy(), expected)
    plain, none = nn.utils.fuse_conv_bn_weights(
        lucid.tensor(w[..., None]), None, given[2], given[3], 1e-3, None, None
    )
    scale = 1 / np.sqrt(var + 1e-3)
    np.testing.assert_allclose(plain.detach()[..., 0], w * scale[:, None])
    np.testing.assert_allclose(none.detach(), -mean * scale)


def test_vmap_goes_through_batch_norms_without_statistics():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    assert lucid.func.replace_all_batch_norm_modules_(net) is net
    assert not dict(net.named_buffers()) and not net[1].track_running_stats
    x = lucid.randn(4, 5, 2)
    together = lucid.func.vmap(net)(x)
    np.testing.assert_allclose(
        together.detach(), np.stack([np.asarray(net(part).detach()) for part in x]), rtol=1e-4,
        atol=1e-5,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [(nn.Linear, (3, 2)), (nn.Conv2d, (3, 4, 3)), (nn.Embedding, (5, 3)), (nn.GRUCell, (3, 4))],
)
def test_skip_init_makes_the_module_and_draws_nothing(kind, sizes):
    before = lucid.get_rng_state()
    module = nn.utils.skip_init(kind, *sizes)
    assert type(module) is kind and np.array_equal(before, lucid.get_rng_state())
    shapes = {name: p.shape for name, p in module.named_parameters()}
    assert shapes == {name: p.shape for name, p in kind(*sizes).named_parameters()}
    module.reset_parameters()
    assert not np.array_equal(before, lucid.get_rng_state())


def test_skip_init_takes_classes_of_modules():
    with pytest.raises(ArgumentError, match="not a subclass of Module"):
        nn.utils.skip_init(nn.Linear(3, 2))
