"""Layers with a short formula, each against NumPy; and what holds for all layers."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import ArgumentError, LucidError, ShapeError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 6))
Y = RNG.normal(size=(4, 6))
P = RNG.uniform(0.05, 0.95, (4, 6))
Q = RNG.uniform(0.05, 0.95, (4, 6))
CLASSES = np.array([1, 5, 0, 2])
SIGNS = np.sign(Y)
IMAGES = RNG.normal(size=(2, 4, 6, 6))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis):
    return np.exp(x) / np.exp(x).sum(axis, keepdims=True)


def phi(x):
    return np.vectorize(lambda v: (1 + math.erf(v / math.sqrt(2))) / 2)(x)


def picked(x):
    return x[np.arange(4), CLASSES]


def normalized(x, axes, eps=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def windows(x):
    """The 2x2 blocks of images in the last axis."""
    n, c, h, w = x.shape
    blocks = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5)
    return blocks.reshape(n, c, h // 2, w // 2, 4)


def padded(mode, **options):
    return lambda x: np.pad(x, [(0, 0), (0, 0), (2, 1), (1, 2)], mode, **options)


ENDS = (1, 2, 2, 1)
S, A = 1.0507009873554805, 1.6732632423543772
FORMULAS = [
    (nn.ReLU(), lambda x: np.maximum(x, 0), [X]),
    (nn.ReLU6(), lambda x: np.clip(x, 0, 6), [X * 5]),
    (nn.LeakyReLU(0.2), lambda x: np.where(x > 0, x, 0.2 * x), [X]),
    (nn.ELU(0.7), lambda x: np.where(x > 0, x, 0.7 * np.expm1(x)), [X]),
    (nn.CELU(0.7), lambda x: np.where(x > 0, x, 0.7 * np.expm1(x / 0.7)), [X]),
    (nn.SELU(), lambda x: S * np.where(x > 0, x, A * np.expm1(x)), [X]),
    (nn.GELU(), lambda x: x * phi(x), [X]),
    (nn.SiLU(), lambda x: x * sigmoid(x), [X]),
    (nn.Mish(), lambda x: x * np.tanh(np.log1p(np.exp(x))), [X]),
    (nn.GLU(), lambda x: x[:, :3] * sigmoid(x[:, 3:]), [X]),
    (nn.Hardswish(), lambda x: x * np.clip(x + 3, 0, 6) / 6, [X]),
    (nn.Hardsigmoid(), lambda x: np.clip(x + 3, 0, 6) / 6, [X]),
    (nn.Hardtanh(-0.5, 0.7), lambda x: np.clip(x, -0.5, 0.7), [X]),
    (nn.Hardshrink(0.3), lambda x: np.where(abs(x) > 0.3, x, 0), [X]),
    (nn.Softshrink(0.3), lambda x: np.sign(x) * np.maximum(abs(x) - 0.3, 0), [X]),
    (nn.Tanhshrink(), lambda x: x - np.tanh(x), [X]),
    (nn.Softplus(2.0), lambda x: np.log1p(np.exp(2 * x)) / 2, [X]),
    (nn.Softsign(), lambda x: x / (1 + abs(x)), [X]),
    (nn.LogSigmoid(), lambda x: np.log(sigmoid(x)), [X]),
    (nn.Sigmoid(), sigmoid, [X]),
    (nn.Tanh(), np.tanh, [X]),
    (nn.Threshold(0.1, 7.0), lambda x: np.where(x > 0.1, x, 7.0), [X]),
    (nn.PReLU(), lambda x: np.where(x > 0, x, 0.25 * x), [X]),
    (nn.Softmax(1), lambda x: softmax(x, 1), [X]),
    (nn.Softmin(0), lambda x: softmax(-x, 0), [X]),
    (nn.LogSoftmax(1), lambda x: np.log(softmax(x, 1)), [X]),
    (nn.Softmax2d(), lambda x: softmax(x, 1), [IMAGES]),
    (nn.Identity(), lambda x: x, [X]),
    (nn.Flatten(), lambda x: x.reshape(2, -1), [IMAGES]),
    (nn.Unflatten(1, (2, 3)), lambda x: x.reshape(4, 2, 3), [X]),
    (nn.LayerNorm(6), lambda x: normalized(x, (3,)), [IMAGES]),
    (nn.GroupNorm(1, 4), lambda x: normalized(x, (1, 2, 3)), [IMAGES]),
    (nn.InstanceNorm2d(4), lambda x: normalized(x, (2, 3)), [IMAGES]),
    (nn.BatchNorm2d(4), lambda x: normalized(x, (0, 2, 3)), [IMAGES]),
    (nn.RMSNorm(6, eps=0.1), lambda x: x / np.sqrt((x**2).mean(-1, keepdims=True) + 0.1), [X]),
    (nn.MaxPool2d(2), lambda x: windows(x).max(-1), [IMAGES]),
    (nn.AvgPool2d(2), lambda x: windows(x).mean(-1), [IMAGES]),
    (nn.LPPool2d(2, 2), lambda x: np.sqrt((windows(x) ** 2).sum(-1)), [IMAGES]),
    (nn.AdaptiveAvgPool2d(3), lambda x: windows(x).mean(-1), [IMAGES]),
    (nn.AdaptiveMaxPool2d(3), lambda x: windows(x).max(-1), [IMAGES]),
    (nn.ZeroPad2d(ENDS), padded("constant"), [IMAGES]),
    (nn.ConstantPad2d(ENDS, 3.5), padded("constant", constant_values=3.5), [IMAGES]),
    (nn.ReflectionPad2d(ENDS), padded("reflect"), [IMAGES]),
    (nn.ReplicationPad2d(ENDS), padded("edge"), [IMAGES]),
    (nn.CircularPad2d(ENDS), padded("wrap"), [IMAGES]),
    (nn.Upsample(scale_factor=2), lambda x: x.repeat(2, 2).repeat(2, 3), [IMAGES]),
    (nn.UpsamplingNearest2d(scale_factor=2), lambda x: x.repeat(2, 2).repeat(2, 3), [IMAGES]),
    (nn.ChannelShuffle(2), lambda x: x[:, [0, 2, 1, 3]], [IMAGES]),
    (nn.Unfold(2, stride=2),
     lambda x: windows(x).transpose(0, 1, 4, 2, 3).reshape(2, 16, 9), [IMAGES]),
    (nn.Fold((6, 6), 2, stride=2), lambda y: IMAGES,
     [windows(IMAGES).transpose(0, 1, 4, 2, 3).reshape(2, 16, 9)]),
    (nn.PixelShuffle(2),
     lambda x: x.reshape(2, 2, 2, 6, 6).transpose(0, 3, 1, 4, 2).reshape(2, 1, 12, 12), [IMAGES]),
    (nn.PixelUnshuffle(2),
     lambda x: windows(x).transpose(0, 1, 4, 2, 3).reshape(2, 16, 3, 3), [IMAGES]),
    (nn.MSELoss(), lambda x, y: ((x - y) ** 2).mean(), [X, Y]),
    (nn.L1Loss(reduction="sum"), lambda x, y: abs(x - y).sum(), [X, Y]),
    (nn.HuberLoss(delta=0.5), lambda x, y: np.where(
        abs(x - y) < 0.5, (x - y) ** 2 / 2, 0.5 * (abs(x - y) - 0.25)).mean(), [X, Y]),
    (nn.SmoothL1Loss(beta=0.5), lambda x, y: np.where(
        abs(x - y) < 0.5, (x - y) ** 2, abs(x - y) - 0.25).mean(), [X, Y]),
    (nn.KLDivLoss(reduction="batchmean"), lambda x, p: (p * (np.log(p) - x)).sum() / 4, [X, P]),
    (nn.BCELoss(), lambda q, p: -(p * np.log(q) + (1 - p) * np.log(1 - q)).mean(), [Q, P]),
    (nn.BCEWithLogitsLoss(), lambda x, p: -(
        p * np.log(sigmoid(x)) + (1 - p) * np.log(1 - sigmoid(x))).mean(), [X, P]),
    (nn.CrossEntropyLoss(), lambda x, y: -picked(np.log(softmax(x, 1))).mean(), [X, CLASSES]),
    (nn.NLLLoss(), lambda x, y: -picked(x).mean(), [X, CLASSES]),
    (nn.PoissonNLLLoss(), lambda x, p: (np.exp(x) - p * x).mean(), [X, P]),
    (nn.GaussianNLLLoss(), lambda x, y, v: (np.log(v) + (x - y) ** 2 / v).mean() / 2, [X, Y, P]),
    (nn.SoftMarginLoss(), lambda x, s: np.log1p(np.exp(-s * x)).mean(), [X, SIGNS]),
    (nn.HingeEmbeddingLoss(), lambda x, s: np.where(
        s > 0, x, np.maximum(0, 1 - x)).mean(), [X, SIGNS]),
    (nn.MarginRankingLoss(0.2), lambda x, y, s: np.maximum(
        0, -s * (x - y) + 0.2).mean(), [X, Y, SIGNS]),
    (nn.TripletMarginLoss(eps=0.0), lambda a, p, n: np.maximum(0, np.linalg.norm(a - p, axis=1)
        - np.linalg.norm(a - n, axis=1) + 1).mean(), [X, Y, P]),
    (nn.CosineSimilarity(), lambda x, y: (x * y).sum(1) / np.linalg.norm(x, axis=1)
        / np.linalg.norm(y, axis=1), [X, Y]),
    (nn.PairwiseDistance(eps=0.0), lambda x, y: np.linalg.norm(x - y, axis=1), [X, Y]),
]  # fmt: skip


NAMES = [repr(layer) for layer, _, _ in FORMULAS]


@pytest.mark.parametrize(("layer", "formula", "inputs"), FORMULAS, ids=NAMES)
def test_a_layer_is_its_formula_eager_and_jitted(layer, formula, inputs):
    layer.double()
    given = [lucid.tensor(x) for x in inputs]
    expected = formula(*inputs)
    np.testing.assert_allclose(layer(*given).detach(), expected, rtol=1e-9, atol=1e-12)
    jitted = lucid.jit(lambda *xs: layer(*xs))
    for _ in range(2):
        np.testing.assert_allclose(jitted(*given).detach(), expected, rtol=1e-9, atol=1e-12)


def test_linear_and_bilinear():
    a, b = nn.Linear(6, 3).double(), nn.Bilinear(6, 6, 3).double()
    w, v = a.weight.detach().numpy(), b.weight.detach().numpy()
    x, y = lucid.tensor(X), lucid.tensor(Y)
    np.testing.assert_allclose(a(x).detach(), X @ w.T + a.bias.detach().numpy(), rtol=1e-10)
    expected = np.einsum("ni,oij,nj->no", X, v, Y) + b.bias.detach().numpy()
    np.testing.assert_allclose(b(x, y).detach(), expected, rtol=1e-10)


def test_embeddings_are_rows_whose_padding_learns_nothing():
    layer = nn.Embedding(5, 3, padding_idx=2)
    assert layer.weight[2].detach().tolist() == [0, 0, 0]
    index = lucid.tensor([[0, 2], [2, 4]])
    np.testing.assert_array_equal(
        layer(index).detach(), layer.weight.detach().numpy()[[[0, 2], [2, 4]]]
    )
    layer(index).sum().backward()
    assert layer.weight.grad.sum(1).tolist() == [3, 0, 0, 0, 3]
    bag = nn.EmbeddingBag(5, 3, mode="mean")
    expected = bag.weight.detach().numpy()[[[0, 2], [2, 4]]].mean(1)
    np.testing.assert_allclose(bag(index).detach(), expected, rtol=1e-6)


def test_a_convolution_is_a_sum_over_windows():
    layer = nn.Conv2d(4, 3, (2, 3), stride=(1, 2), padding=(1, 0)).double()
    w, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    x = np.pad(IMAGES, [(0, 0), (0, 0), (1, 1), (0, 0)])
    expected = np.zeros((2, 3, 7, 2)) + b[:, None, None]
    for i in range(7):
        for j in range(2):
            part = x[:, :, i : i + 2, 2 * j : 2 * j + 3]
            expected[:, :, i, j] += np.einsum("nchw,ochw->no", part, w)
    np.testing.assert_allclose(layer(lucid.tensor(IMAGES)).detach(), expected, rtol=1e-10)


def test_a_transposed_convolution_is_the_adjoint_of_the_convolution():
    there, back = (
        nn.Conv2d(4, 3, 3, 2, 1, bias=False),
        nn.ConvTranspose2d(3, 4, 3, 2, 1, bias=False),
    )
    back.load_state_dict(there.state_dict())
    there, back = there.double(), back.double()
    x = lucid.tensor(IMAGES)
    y = there(x)
    z = lucid.tensor(RNG.normal(size=y.shape))
    transposed = back(z, output_size=(6, 6))
    np.testing.assert_allclose((y * z).sum().item(), (x * transposed).sum().item(), rtol=1e-9)


def test_max_unpool_puts_maxima_back():
    pool, unpool = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)
    y, where = pool(lucid.tensor(IMAGES))
    back = unpool(y, where).numpy()
    np.testing.assert_array_equal(
        windows(back).max(-1) + windows(back).min(-1), windows(back).sum(-1)
    )
    assert np.count_nonzero(back) == y.numel()


# Chance


@pytest.mark.parametrize("name", ["Dropout", "AlphaDropout", "Dropout1d", "Dropout2d", "Dropout3d",
                                  "FeatureAlphaDropout"])  # fmt: skip
def test_dropout_keeps_the_mean_and_is_nothing_in_evaluation(name):
    lucid.manual_seed(0)
    shapes = {"Dropout1d": (400, 30, 4), "Dropout3d": (400, 30, 2, 2, 2)}
    layer, x = getattr(nn, name)(0.3), lucid.ones(shapes.get(name, (400, 30, 2, 2)))
    y = layer(x)
    assert len(set(y.numpy().ravel().tolist())) == 2
    if "Alpha" not in name:
        assert abs(y.mean().item() - 1) < 0.05
    assert layer.eval()(x) is x


def test_random_slopes_are_fixed_in_evaluation():
    layer, x = nn.RReLU(0.1, 0.3), -lucid.ones(100)
    y = layer(x).numpy()
    assert -0.3 <= y.min() < y.max() <= -0.1
    np.testing.assert_allclose(layer.eval()(x), -0.2 * np.ones(100), rtol=1e-6)


# Running statistics


@pytest.mark.parametrize("momentum", [0.3, None])
def test_batch_norm_learns_the_statistics_it_evaluates_with(momentum):
    layer, batches = nn.BatchNorm1d(6, momentum=momentum).double(), RNG.normal(2, 3, (3, 8, 6))
    mean, var = np.zeros(6), np.ones(6)
    for i, x in enumerate(batches):
        layer(lucid.tensor(x))
        m = 1 / (i + 1) if momentum is None else momentum
        mean, var = mean + m * (x.mean(0) - mean), var + m * (x.var(0, ddof=1) - var)
    np.testing.assert_allclose(layer.running_mean, mean, rtol=1e-10)
    np.testing.assert_allclose(layer.running_var, var, rtol=1e-10)
    assert layer.num_batches_tracked.item() == 3
    found = layer.eval()(lucid.tensor(batches[0])).detach()
    np.testing.assert_allclose(found, (batches[0] - mean) / np.sqrt(var + 1e-5), rtol=1e-9)


def test_batch_norm_that_no_longer_tracks_statistics_leaves_those_it_has():
    layer, x = nn.BatchNorm1d(6, affine=False).double(), RNG.normal(2, 3, (8, 6))
    layer(lucid.tensor(x))
    before = [b.numpy().copy() for b in layer.buffers()]
    layer.track_running_stats = False
    np.testing.assert_allclose(layer(lucid.tensor(x * 2)).numpy(), normalized(x * 2, (0,)))
    for b, kept in zip(layer.buffers(), before):
        np.testing.assert_array_equal(b.numpy(), kept)
    layer.eval()
    y = (x - before[0]) / np.sqrt(before[1] + 1e-5)
    np.testing.assert_allclose(layer(lucid.tensor(x)).numpy(), y)


def test_batch_norm_gives_its_statistics_back_from_a_transform_of_the_module():
    layer, x = nn.BatchNorm1d(6).double(), lucid.tensor(X)

    def loss(layer):
        return (layer(x) ** 3).sum(), dict(layer.named_buffers())

    for f in (lucid.func.grad(loss, has_aux=True), lucid.jit(lucid.func.grad(loss, has_aux=True))):
        grads, buffers = f(layer)
        np.testing.assert_allclose(buffers["running_mean"], 0.1 * X.mean(0), rtol=1e-10)
        assert buffers["num_batches_tracked"].item() == 1
        assert layer.running_mean.tolist() == [0] * 6 and grads.weight.shape == (6,)


def test_batch_norms_of_an_ensemble_train_under_vmap():
    models = [nn.BatchNorm1d(6).double() for _ in range(2)]
    params, buffers = lucid.func.stack_module_state(models)

    def run(params, buffers, x):
        return lucid.func.functional_call(models[0], (params, buffers), (x,))

    found = lucid.func.vmap(run)(params, buffers, lucid.tensor(np.stack([X, Y])))
    expected = [normalized(X, (0,)), normalized(Y, (0,))]
    np.testing.assert_allclose(found.detach(), expected, rtol=1e-9)


# What holds for all layers

LAYERS = [
    name
    for name in nn.__all__
    if inspect.isclass(getattr(nn, name)) and issubclass(getattr(nn, name), nn.Module)
]


@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_has_a_docstring(name):
    cls = getattr(nn, name)
    assert cls.__doc__ and cls.__doc__.split("\n")[0].rstrip()[-1] in ".:;"


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: nn.ReLU(nothing=1), ArgumentError),
        (lambda: nn.Threshold(1.0), ArgumentError),
        (lambda: nn.Conv2d(3, 4, 2, groups=2), ArgumentError),
        (lambda: nn.Conv2d(3, 4, 2, padding_mode="x"), ArgumentError),
        (lambda: nn.Conv2d(3, 4, 2, 2, padding="same"), ArgumentError),
        (lambda: nn.ConvTranspose2d(3, 4, 2, padding_mode="circular"), ArgumentError),
        (lambda: nn.GroupNorm(3, 4), ArgumentError),
        (lambda: nn.Embedding(3, 4, padding_idx=5), ArgumentError),
        (lambda: nn.ZeroPad2d((1, 2, 3)), ArgumentError),
        (lambda: nn.BatchNorm2d(3)(lucid.ones(2, 3)), ShapeError),
        (lambda: nn.Linear(3, 4)(lucid.ones(2, 5)), ShapeError),
        (lambda: nn.Conv2d(3, 4, 2)(lucid.ones(2, 5, 4, 4)), LucidError),
    ],
)
def test_what_does_not_fit_is_refused(make, error):
    with pytest.raises(error):
        make()


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (nn.ReLU(), "ReLU()"),
        (nn.LeakyReLU(), "LeakyReLU(negative_slope=0.01)"),
        (
            nn.Conv2d(3, 4, 2, padding=1),
            "Conv2d(3, 4, kernel_size=(2, 2), stride=(1, 1), padding=(1, 1))",
        ),
        (nn.LayerNorm(4), "LayerNorm((4,), eps=1e-05, elementwise_affine=True)"),
        (nn.Embedding(3, 4), "Embedding(3, 4)"),
        (nn.ZeroPad2d(1), "ZeroPad2d((1, 1, 1, 1))"),
        (nn.Upsample(scale_factor=2), "Upsample(scale_factor=2, mode='nearest')"),
        (nn.MSELoss(), "MSELoss()"),
    ],
    ids=lambda x: type(x).__name__,
)
def test_reprs(layer, text):
    assert repr(layer) == text
