"""The table of layers: what every class of lucid.nn is made with, and what it is called with.

`parity.py` beside it compares them with PyTorch; tests/matrix compares all ways to call them.
The rest of the keywords is in layer_keywords.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

RNG = np.random.default_rng(0)


class Layer(NamedTuple):
    """A layer: its class, what it is made with, and the shapes or arrays it is called with.

    Arrays are no leaves of the gradient, unless they are a Variable; an array among the arguments
    of the class is given as a tensor.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    inputs: tuple[Any, ...]
    options: dict[str, Any]

    def __str__(self) -> str:
        given = [*map(repr, self.args), *[f"{k}={v!r}" for k, v in self.kwargs.items()]]
        return f"{self.name}({', '.join(given)})"


def layer(name: str, *args: Any, inputs: Any = ((4, 6),), options: Any = None, **kwargs: Any):
    return Layer(name, args, kwargs, tuple(inputs), options or {})


class Variable(np.ndarray):
    """Numbers in which the output is differentiated."""


def variable(low: float, high: float) -> Variable:
    return RNG.uniform(low, high, (4, 6)).view(Variable)


def mask(*shape: int) -> np.ndarray:
    """True here and there, but not in a whole row."""
    found = RNG.random(shape) < 0.3
    found[..., 0] = False
    return found


def causal(n: int) -> np.ndarray:
    return np.where(np.tri(n, dtype=bool), 0.0, -np.inf)


def classes(n: int, *shape: int) -> np.ndarray:
    return RNG.integers(0, n, shape)


UNARY = (
    "ReLU ReLU6 LeakyReLU ELU SELU CELU GELU SiLU Mish Hardswish Hardsigmoid Hardtanh Hardshrink "
    "Softshrink Tanhshrink Softplus Softsign LogSigmoid Sigmoid Tanh PReLU Identity GLU"
).split()
IMAGE = ((2, 4, 6, 5),)
SEQUENCE = ((2, 4, 7),)
VOLUME = ((2, 4, 4, 3, 5),)
WIDE = {1: SEQUENCE, 2: IMAGE, 3: VOLUME}


def layers_of_images() -> list[Layer]:
    out = []
    for n, shape in WIDE.items():
        out += [
            layer(f"Conv{n}d", 4, 6, 3, inputs=shape),
            layer(f"Conv{n}d", 4, 6, 3, 2, 1, groups=2, bias=False, inputs=shape),
            layer(f"Conv{n}d", 4, 4, 2, padding="same", padding_mode="circular", inputs=shape),
            layer(f"Conv{n}d", 4, 4, 3, padding=1, padding_mode="reflect", inputs=shape),
            layer(f"ConvTranspose{n}d", 4, 6, 3, 2, 1, 1, groups=2, inputs=shape),
            layer(f"BatchNorm{n}d", 4, inputs=shape),
            layer(f"BatchNorm{n}d", 4, momentum=None, affine=False, inputs=shape),
            layer(f"InstanceNorm{n}d", 4, affine=True, track_running_stats=True, inputs=shape),
            layer(f"MaxPool{n}d", 2, inputs=shape),
            layer(f"AvgPool{n}d", 2, 1, inputs=shape),
            layer(f"LPPool{n}d", 2, 2, inputs=shape),
            layer(f"AdaptiveAvgPool{n}d", 2, inputs=shape),
            layer(f"AdaptiveMaxPool{n}d", 2, inputs=shape),
            layer(f"ZeroPad{n}d", 2, inputs=shape),
            layer(f"ConstantPad{n}d", 1, 3.5, inputs=shape),
            layer(f"ReflectionPad{n}d", 1, inputs=shape),
            layer(f"ReplicationPad{n}d", 2, inputs=shape),
            layer(f"CircularPad{n}d", 1, inputs=shape),
        ]
    return [
        *out,
        layer("GroupNorm", 2, 4, inputs=IMAGE),
        layer("LayerNorm", (6, 5), inputs=IMAGE),
        layer("LayerNorm", 5, elementwise_affine=True, bias=False, inputs=IMAGE),
        layer("RMSNorm", 5, inputs=IMAGE),
        layer("LocalResponseNorm", 2, inputs=IMAGE),
        layer("Softmax2d", inputs=IMAGE),
        layer("PixelShuffle", 2, inputs=IMAGE),
        layer("PixelUnshuffle", 2, inputs=((2, 3, 4, 6),)),
        layer("ChannelShuffle", 2, inputs=IMAGE),
        layer("Unfold", 2, padding=1, inputs=IMAGE),
        layer("Fold", (4, 5), 2, inputs=((2, 12, 12),)),
        layer("Upsample", scale_factor=2, inputs=IMAGE),
        layer("Upsample", (7, 4), mode="bilinear", align_corners=True, inputs=IMAGE),
        layer("UpsamplingNearest2d", scale_factor=2, inputs=IMAGE),
        layer("UpsamplingBilinear2d", scale_factor=2, inputs=IMAGE),
        layer("Flatten", inputs=IMAGE),
        layer("Unflatten", 1, (2, 2), inputs=IMAGE),
    ]


def layers_of_sequences() -> list[Layer]:
    out, steps = [], ((5, 3, 4),)
    for name in ("RNN", "LSTM", "GRU"):
        states = ((4, 3, 6),) if name != "LSTM" else (((4, 3, 6), (4, 3, 6)),)
        out += [
            layer(name, 4, 6, inputs=steps),
            layer(name, 4, 6, bias=False, batch_first=True, inputs=steps),
            layer(name, 4, 6, 2, bidirectional=True, inputs=steps),
            layer(name, 4, 6, 2, bidirectional=True, inputs=(*steps, *states)),
            layer(name, 4, 6, inputs=((5, 4),)),
            layer(f"{name}Cell", 4, 6, inputs=((3, 4),)),
            layer(f"{name}Cell", 4, 6, bias=False, inputs=((4,),)),
        ]
    many = {"num_heads": 2, "batch_first": True}
    qkv = ((3, 5, 4), (3, 7, 4), (3, 7, 4))
    block = {"d_model": 4, "nhead": 2, "dim_feedforward": 8, "dropout": 0.0}
    return [
        *out,
        layer("RNN", 4, 6, nonlinearity="relu", inputs=steps),
        layer("LSTM", 4, 6, 2, proj_size=3, bidirectional=True, inputs=steps),
        layer("LSTM", 4, 6, proj_size=3, inputs=(*steps, ((1, 3, 3), (1, 3, 6)))),
        layer("MultiheadAttention", 4, 2, inputs=((5, 3, 4), (7, 3, 4), (7, 3, 4))),
        layer("MultiheadAttention", 4, 2, bias=False, inputs=((5, 4), (7, 4), (7, 4))),
        layer("MultiheadAttention", 4, **many, inputs=qkv, options={"need_weights": False}),
        layer("MultiheadAttention", 4, **many, inputs=qkv, options={"average_attn_weights": False}),
        layer("MultiheadAttention", 4, kdim=5, vdim=6, **many,
              inputs=((3, 5, 4), (3, 7, 5), (3, 7, 6))),
        layer("MultiheadAttention", 4, add_bias_kv=True, add_zero_attn=True, **many, inputs=qkv,
              options={"key_padding_mask": mask(3, 7), "attn_mask": mask(5, 7)}),
        layer("MultiheadAttention", 4, **many, inputs=qkv,
              options={"key_padding_mask": mask(3, 7), "need_weights": False}),
        layer("MultiheadAttention", 4, **many, inputs=((3, 5, 4),) * 3,
              options={"attn_mask": causal(5), "is_causal": True, "need_weights": False}),
        layer("MultiheadAttention", 4, **many, inputs=qkv,
              options={"attn_mask": RNG.normal(size=(6, 5, 7))}),
        layer("TransformerEncoderLayer", **block, inputs=((5, 3, 4),)),
        layer("TransformerEncoderLayer", **block, activation="gelu", norm_first=True,
              batch_first=True, bias=False, inputs=((3, 5, 4),),
              options={"src_mask": causal(5), "is_causal": True}),
        layer("TransformerDecoderLayer", **block, norm_first=True, inputs=((5, 3, 4), (7, 3, 4)),
              options={"memory_key_padding_mask": mask(3, 7)}),
        layer("TransformerDecoderLayer", **block, batch_first=True,
              inputs=((3, 5, 4), (3, 7, 4)), options={"tgt_mask": causal(5)}),
        layer("Transformer", 4, 2, 2, 2, 8, 0.0, inputs=((7, 3, 4), (5, 3, 4)),
              options={"tgt_mask": causal(5)}),
        layer("Embedding", 9, 4, inputs=(classes(9, 3, 5),)),
        layer("Embedding", 9, 4, padding_idx=2, inputs=(classes(9, 3, 5),)),
        layer("EmbeddingBag", 9, 4, mode="sum", inputs=(classes(9, 3, 5),)),
    ]  # fmt: skip


def losses() -> list[Layer]:
    pair, probability = ((4, 6), (4, 6)), RNG.random((4, 6))
    return [
        layer("MSELoss", inputs=pair),
        layer("L1Loss", inputs=pair),
        layer("SmoothL1Loss", beta=0.5, inputs=pair),
        layer("HuberLoss", delta=0.7, inputs=pair),
        layer("KLDivLoss", reduction="batchmean", inputs=((4, 6), probability)),
        layer("BCELoss", inputs=(variable(0.05, 0.95), probability)),
        layer("BCEWithLogitsLoss", inputs=((4, 6), probability)),
        layer("CrossEntropyLoss", label_smoothing=0.1, inputs=((4, 6), classes(6, 4))),
        layer("NLLLoss", inputs=((4, 6), classes(6, 4))),
        layer("PoissonNLLLoss", inputs=((4, 6), probability)),
        layer("GaussianNLLLoss", inputs=((4, 6), (4, 6), probability + 0.1)),
        layer("SoftMarginLoss", inputs=((4, 6), np.sign(RNG.normal(size=(4, 6))))),
        layer("HingeEmbeddingLoss", inputs=((4, 6), np.sign(RNG.normal(size=(4, 6))))),
        layer("MarginRankingLoss", inputs=((5,), (5,), np.sign(RNG.normal(size=5)))),
        layer("MultiMarginLoss", inputs=((4, 6), classes(6, 4))),
        layer("MultiLabelMarginLoss", inputs=((4, 6), classes(6, 4, 6))),
        layer("MultiLabelSoftMarginLoss", inputs=((4, 6), classes(2, 4, 6).astype(float))),
        layer("CosineEmbeddingLoss", inputs=((4, 6), (4, 6), np.array([1, -1, 1, -1]))),
        layer("TripletMarginLoss", inputs=((4, 6),) * 3),
        layer("LinearCrossEntropyLoss", 6, 5, bias=True, label_smoothing=0.1,
              inputs=((4, 6), np.array([2, 4, 0, 1]))),
        layer("LinearCrossEntropyLoss", 6, 5, reduction="sum", ignore_index=4,
              inputs=((4, 6), np.array([2, 4, 0, 1]))),
        layer("AdaptiveLogSoftmaxWithLoss", 6, 20, [4, 9], 2.0, True,
              inputs=((4, 6), np.array([2, 4, 19, 11]))),
        layer("CosineSimilarity", inputs=pair),
        layer("PairwiseDistance", inputs=pair),
    ]  # fmt: skip


def table() -> list[Layer]:
    dense = [
        layer("Linear", 6, 3),
        layer("Linear", 6, 3, bias=False, inputs=((2, 4, 6),)),
        layer("Bilinear", 6, 5, 3, inputs=((4, 6), (4, 5))),
        layer("Softmax", 1),
        layer("LogSoftmax", 1),
        layer("Softmin", 0),
        layer("Threshold", 0.1, 20.0),
        layer("BatchNorm1d", 6),
        layer("Linear+weight_norm", 6, 3),
        layer("Linear+spectral_norm", 6, 3),
        layer("Conv2d+weight_norm", 4, 6, 3, inputs=IMAGE),
        layer("ConvTranspose2d+spectral_norm", 4, 6, 3, inputs=IMAGE),
    ]
    return [
        *[layer(name) for name in UNARY], *dense, *layers_of_images(), *layers_of_sequences(),
        *losses(),
    ]  # fmt: skip


def arrays_of(shape: Any) -> Any:
    """Numbers for a shape; a tuple of shapes gives a tuple, an array is itself."""
    if isinstance(shape, np.ndarray):
        return shape
    if shape and isinstance(shape[0], tuple):
        return tuple([arrays_of(part) for part in shape])
    return RNG.normal(size=shape).view(Variable)


def map_arrays(make: Callable[[np.ndarray], Any], x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple([map_arrays(make, part) for part in x])
    if isinstance(x, dict):
        return {name: map_arrays(make, part) for name, part in x.items()}
    return make(x) if isinstance(x, np.ndarray) else x


def flat(x: Any) -> list[Any]:
    if isinstance(x, (tuple, list)):
        return [part for item in x for part in flat(item)]
    return [] if x is None else [x]
