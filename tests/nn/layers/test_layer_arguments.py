"""Layers take PyTorch's arguments by PyTorch's names and in its order."""

import pytest

import lucid
from lucid import nn
from lucid.errors import ArgumentError

X, ZERO = lucid.tensor([1.0, 3.0]), lucid.zeros(2)


def test_older_words_for_the_reduction_of_a_loss_are_understood():
    assert nn.MSELoss(size_average=False)(X, ZERO).item() == 10.0
    assert nn.MSELoss(reduce=False)(X, ZERO).tolist() == [1.0, 9.0]
    assert nn.L1Loss(size_average=True)(X, ZERO).item() == 2.0


def test_settings_of_losses_come_in_pytorchs_order():
    assert nn.L1Loss(None, None, "sum")(X, ZERO).item() == 4.0
    assert nn.L1Loss(False)(X, ZERO).item() == 4.0
    loss = nn.CrossEntropyLoss(None, None, 1, None, "sum", 0.1)
    assert (loss.ignore_index, loss.reduction, loss.label_smoothing) == (1, "sum", 0.1)
    loss = nn.TripletMarginLoss(2.0, 1.0, 1e-5, True)
    assert (loss.margin, loss.p, loss.eps, loss.swap) == (2.0, 1.0, 1e-5, True)
    with pytest.raises(ArgumentError, match="MSELoss: takes reduction"):
        nn.MSELoss(None, None, "sum", 3)
    with pytest.raises(ArgumentError, match="ReLU"):
        nn.ReLU(size_average=True)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Linear(2, 3), (4, 2)),
        (nn.Conv1d(2, 3, 1), (1, 2, 5)),
        (nn.ConvTranspose1d(2, 3, 1), (1, 2, 5)),
        (nn.BatchNorm1d(2), (4, 2)),
        (nn.InstanceNorm1d(2), (1, 2, 5)),
        (nn.LayerNorm(2), (4, 2)),
        (nn.RMSNorm(2), (4, 2)),
        (nn.GroupNorm(1, 2), (4, 2)),
        (nn.Dropout(0.5), (4, 2)),
        (nn.ReLU(), (4, 2)),
        (nn.PReLU(), (4, 2)),
        (nn.Softmax(dim=1), (4, 2)),
        (nn.MaxPool1d(2), (1, 2, 4)),
        (nn.ZeroPad1d(1), (1, 2, 4)),
        (nn.Flatten(), (4, 2, 2)),
        (nn.Unflatten(1, (1, 2)), (4, 2)),
        (nn.LSTM(2, 3), (5, 1, 2)),
        (nn.GRUCell(2, 3), (4, 2)),
        (nn.Sequential(nn.Linear(2, 3), nn.Tanh()), (4, 2)),
    ],
    ids=lambda x: type(x).__name__,
)
def test_the_input_of_a_layer_may_be_named(layer, shape):
    assert layer(input=lucid.ones(shape)) is not None


def test_the_inputs_of_a_loss_may_be_named():
    assert nn.MSELoss()(input=X, target=ZERO).item() == 5.0
    assert nn.CrossEntropyLoss()(
        lucid.zeros(1, 2), target=lucid.tensor([0])
    ).item() == pytest.approx(0.6931472)
    assert nn.Bilinear(2, 2, 1)(input1=X, input2=X).shape == (1,)


@pytest.mark.parametrize(
    "make", [nn.BatchNorm1d, lambda n, **kw: nn.InstanceNorm1d(n, affine=True, **kw),
             lambda n, **kw: nn.GroupNorm(1, n, **kw), nn.LayerNorm]
)  # fmt: skip
def test_norms_may_have_a_factor_without_a_summand(make):
    layer = make(4, bias=False)
    assert [name for name, _ in layer.named_parameters()] == ["weight"]
    assert layer(lucid.randn(2, 4, 4)).shape == (2, 4, 4)


@pytest.mark.parametrize(
    "make",
    [
        lambda **kw: nn.Linear(2, 2, **kw),
        lambda **kw: nn.LSTM(2, 2, **kw),
        lambda **kw: nn.GRUCell(2, 2, **kw),
        lambda **kw: nn.Conv2d(1, 1, 1, **kw),
        lambda **kw: nn.BatchNorm1d(2, **kw),
        lambda **kw: nn.Embedding(2, 2, **kw),
        lambda **kw: nn.MultiheadAttention(2, 1, **kw),
        lambda **kw: nn.TransformerEncoderLayer(2, 1, 4, **kw),
        lambda **kw: nn.LazyLinear(2, **kw),
        lambda **kw: nn.LazyBatchNorm1d(**kw),
    ],
)
def test_layers_take_the_device_that_there_is(make):
    assert make(device="cpu", dtype=lucid.float64) is not None
    with pytest.raises(ArgumentError, match="device='cuda'"):
        make(device="cuda")


BY_POSITION = {
    "Linear": (2, 3, True),
    "Bilinear": (2, 3, 4, True),
    "Conv2d": (1, 2, 3, 1, 0, 1, 1, True, "zeros"),
    "LayerNorm": (3, 1e-5, True, True),
    "BatchNorm1d": (3, 1e-5, 0.1, True, True),
    "GRUCell": (2, 3, True),
    "LSTMCell": (2, 3, True),
    "RNNCell": (2, 3, True, "tanh"),
    "PReLU": (1, 0.25),
    "MultiheadAttention": (4, 2, 0.0, True, False, False, None, None, True),
    "TransformerEncoderLayer": (4, 2, 8, 0.1, "relu", 1e-5, True, False, True),
}


@pytest.mark.parametrize("name", BY_POSITION)
def test_device_has_the_position_before_dtype(name):
    layer = getattr(nn, name)
    made = layer(*BY_POSITION[name], "cpu", lucid.float64)
    assert {p.dtype for p in made.parameters()} == {lucid.float64}
    with pytest.raises(ArgumentError, match="device='cuda'"):
        layer(*BY_POSITION[name], "cuda", lucid.float64)


def test_a_module_goes_to_the_processor_and_nowhere_else():
    layer = nn.Linear(2, 2)
    assert layer.to("cpu").to(device="cpu").to("cpu", lucid.float64).weight.dtype == lucid.float64
    for move in (lambda: layer.to("cuda:0"), lambda: layer.to(device="cuda")):
        with pytest.raises(ArgumentError, match="tensors are in CPU memory"):
            move()
