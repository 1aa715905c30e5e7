"""Layers with the keywords that layer_table.py leaves at their defaults."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import numpy as np

import lucid
from tests.nn.layer_table import IMAGE, RNG, WIDE, Layer, causal, classes, layer, mask, variable
from tests.nn.layer_table import table as usual_layers

BLOCK = {"d_model": 4, "nhead": 2, "dim_feedforward": 8, "dropout": 0.0}
PAIR, STEPS = ((4, 6), (4, 6)), ((5, 3, 4),)
SIGNS = np.sign(RNG.normal(size=(4, 6)))
UNIT = RNG.random((4, 6))


def activations() -> list[Layer]:
    return [
        layer("CELU", alpha=0.7),
        layer("ELU", alpha=0.7),
        layer("GELU", approximate="tanh"),
        layer("GLU", dim=0),
        layer("Hardshrink", lambd=0.2),
        layer("Softshrink", lambd=0.2),
        layer("Hardtanh", min_val=-0.3, max_val=0.6),
        layer("LeakyReLU", negative_slope=0.3),
        layer("PReLU", num_parameters=6, init=0.4),
        layer("Softplus", beta=2.0, threshold=1.0),
        layer("CosineSimilarity", dim=0, eps=0.5, inputs=PAIR),
        layer("PairwiseDistance", p=3.0, eps=0.1, keepdim=True, inputs=PAIR),
        layer("Flatten", start_dim=2, end_dim=3, inputs=((2, 4, 3, 2, 2),)),
        layer("Bilinear", 6, 5, 3, bias=False, inputs=((4, 6), (4, 5))),
        layer("LazyLinear", 3),
        layer("LazyLinear", 3, bias=False),
        layer("ReflectionPad1d", (2, 1), inputs=WIDE[1]),
    ]


def of_every_rank(n: int, shape: Any) -> list[Layer]:
    made = partial(layer, inputs=shape)
    out = [
        made(f"Conv{n}d", 4, 6, 2, dilation=2),
        made(f"ConvTranspose{n}d", 4, 6, 2, bias=False, dilation=2),
        made(f"ConvTranspose{n}d", 4, 6, 2, stride=2,
             options={"output_size": [2 * k + 1 for k in shape[0][2:]]}),
        made(f"LazyConv{n}d", 6, 2, stride=2),
        made(f"LazyConvTranspose{n}d", 6, 2, stride=2),
        made(f"LazyConvTranspose{n}d", 6, 2, stride=2,
             options={"output_size": [2 * k + 1 for k in shape[0][2:]]}),
        *[
            made(f"Lazy{kind}Norm{n}d", **more)
            for kind in ("Batch", "Instance")
            for more in (
                {}, {"eps": 0.1, "momentum": 0.3, "track_running_stats": False},
                {"affine": False}, {"bias": False},
            )
        ],
        made(f"BatchNorm{n}d", 4, eps=0.1, momentum=0.3),
        made(f"BatchNorm{n}d", 4, track_running_stats=False, bias=False),
        made(f"InstanceNorm{n}d", 4, eps=0.1, affine=True, bias=False),
        made(f"InstanceNorm{n}d", 4, momentum=0.3, track_running_stats=True),
        made(f"MaxPool{n}d", 2, stride=1, padding=1, return_indices=True),
        made(f"MaxPool{n}d", 2, dilation=2, stride=2, ceil_mode=True),
        made(f"AvgPool{n}d", 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False),
        made(f"LPPool{n}d", 3, 2, stride=2, ceil_mode=True),
        made(f"AdaptiveMaxPool{n}d", 2, return_indices=True),
        *unpooling(n),
    ]  # fmt: skip
    if n > 1:
        samples = RNG.random((2, 4, n))
        out += [
            made(f"AvgPool{n}d", 2, divisor_override=3),
            made(f"FractionalMaxPool{n}d", 2, 1, _random_samples=samples, return_indices=True),
            made(f"FractionalMaxPool{n}d", 2, output_ratio=0.6, _random_samples=samples),
        ]
    return out


def unpooling(n: int) -> list[Layer]:
    """The places that a window of 2 has its largest element in: the first, and the last."""
    small, wide = (3, 2, 2)[:n], (6, 4, 4)[:n]
    at = [2 * k + 1 for k in np.indices(small)]
    spread = np.broadcast_to(np.ravel_multi_index(at, wide), (2, 4, *small)).copy()
    name, inputs = f"MaxUnpool{n}d", ((2, 4, *small), spread)
    wider = [k + 1 for k in wide]
    return [
        layer(name, 2, inputs=inputs),
        layer(name, 2, stride=2, inputs=inputs, options={"output_size": wider}),
        layer(name, 4, stride=2, padding=1, inputs=inputs),
    ]


def images() -> list[Layer]:
    made = partial(layer, inputs=IMAGE)
    return [
        *[found for n, shape in WIDE.items() for found in of_every_rank(n, shape)],
        made("GroupNorm", 2, 4, eps=0.1, affine=False),
        made("GroupNorm", 2, 4, bias=False),
        made("LayerNorm", 5, eps=0.1, elementwise_affine=False),
        made("RMSNorm", 5, eps=0.1, elementwise_affine=False),
        made("LocalResponseNorm", 2, alpha=0.3, beta=0.5, k=2.0),
        made("Unfold", 2, dilation=2, stride=2),
        layer("Fold", (4, 5), 2, dilation=2, padding=1, stride=2, inputs=((2, 12, 6),)),
        made("Upsample", scale_factor=1.6, mode="bilinear", recompute_scale_factor=True),
        made("UpsamplingNearest2d", size=(4, 7)),
        made("UpsamplingBilinear2d", size=(4, 7)),
    ]


def sequences() -> list[Layer]:
    out = []
    for name in ("RNN", "LSTM", "GRU"):
        state: Any = ((3, 6), (3, 6)) if name == "LSTM" else (3, 6)
        out.append(layer(f"{name}Cell", 4, 6, inputs=((3, 4), state)))
    made = partial(layer, **BLOCK)
    memory = ((5, 3, 4), (7, 3, 4))
    return [
        *out,
        layer("RNNCell", 4, 6, nonlinearity="relu", inputs=((3, 4),)),
        made("TransformerEncoderLayer", layer_norm_eps=0.1, inputs=STEPS,
             options={"src_key_padding_mask": mask(3, 5)}),
        made("TransformerDecoderLayer", layer_norm_eps=0.1, activation="gelu", bias=False,
             inputs=memory, options={
                 "memory_mask": mask(5, 7), "tgt_key_padding_mask": mask(3, 5)}),
        made("TransformerDecoderLayer", inputs=((5, 3, 4), (5, 3, 4)), options={
            "tgt_mask": causal(5), "tgt_is_causal": True, "memory_mask": causal(5),
            "memory_is_causal": True}),
        layer("Transformer", **BLOCK, num_encoder_layers=1, num_decoder_layers=1,
              activation="gelu", layer_norm_eps=0.1, batch_first=True, norm_first=True, bias=False,
              inputs=((3, 7, 4), (3, 5, 4)),
              options={"src_mask": mask(7, 7), "memory_mask": mask(5, 7),
                       "src_key_padding_mask": mask(3, 7), "tgt_key_padding_mask": mask(3, 5),
                       "memory_key_padding_mask": mask(3, 7)}),
        layer("Transformer", **BLOCK, num_encoder_layers=1, num_decoder_layers=1,
              inputs=((5, 3, 4), (5, 3, 4)),
              options={"src_mask": causal(5), "tgt_mask": causal(5), "memory_mask": causal(5),
                       "src_is_causal": True, "tgt_is_causal": True, "memory_is_causal": True}),
        layer("Embedding", 9, 4, max_norm=0.8, norm_type=1.0, inputs=(classes(9, 3, 5),)),
        layer("Embedding", 9, 4, scale_grad_by_freq=True, inputs=(classes(9, 3, 5),)),
        layer("Embedding", 9, 4, _weight=RNG.normal(size=(9, 4)), inputs=(classes(9, 3, 5),)),
        layer("EmbeddingBag", 9, 4, max_norm=0.8, norm_type=1.0, inputs=(classes(9, 3, 5),)),
        layer("EmbeddingBag", 9, 4, padding_idx=2, mode="max", inputs=(classes(9, 3, 5),)),
        # every row twice: PyTorch divides by the frequencies of other rows
        layer("EmbeddingBag", 9, 4, scale_grad_by_freq=True,
              inputs=(RNG.permutation(np.arange(18) % 9).reshape(3, 6),)),
        layer("EmbeddingBag", 9, 4, _weight=RNG.normal(size=(9, 4)), mode="sum",
              inputs=(classes(9, 3, 5),), options={"per_sample_weights": RNG.normal(size=(3, 5))}),
        layer("EmbeddingBag", 9, 4, include_last_offset=True, inputs=(classes(9, 7),),
              options={"offsets": np.array([0, 3, 7])}),
    ]  # fmt: skip


def losses() -> list[Layer]:
    three, rows = ((4, 6),) * 3, np.array([1, -1, 1, -1])
    weight = RNG.random(6) + 0.5
    lengths = (np.array([4, 3]), np.array([3, 2]))
    spoken = (np.log(variable(0.1, 0.9))[:, None, :] * np.ones((4, 2, 1)), classes(5, 2, 3) + 1)
    return [
        layer("BCELoss", weight=weight, inputs=(variable(0.05, 0.95), UNIT)),
        layer("BCEWithLogitsLoss", weight=weight, pos_weight=weight[::-1].copy(),
              inputs=((4, 6), UNIT)),
        layer("CrossEntropyLoss", weight=weight, ignore_index=2,
              inputs=((4, 6), np.array([2, 4, 0, 1]))),
        layer("NLLLoss", weight=weight, ignore_index=2,
              inputs=((4, 6), np.array([2, 4, 0, 1]))),
        layer("CosineEmbeddingLoss", margin=0.3, inputs=(*PAIR, rows)),
        layer("GaussianNLLLoss", full=True, eps=0.5, inputs=(*PAIR, UNIT + 0.1)),
        layer("HingeEmbeddingLoss", margin=0.4, inputs=((4, 6), SIGNS)),
        layer("KLDivLoss", log_target=True, inputs=((4, 6), np.log(UNIT))),
        layer("MarginRankingLoss", margin=0.3, inputs=(*PAIR, SIGNS)),
        layer("MultiLabelSoftMarginLoss", weight=weight,
              inputs=((4, 6), classes(2, 4, 6).astype(float))),
        layer("MultiMarginLoss", p=2, margin=0.7, weight=weight, inputs=((4, 6), classes(6, 4))),
        layer("PoissonNLLLoss", log_input=False, full=True, eps=0.1,
              inputs=(variable(0.1, 2.0), UNIT * 4)),
        layer("TripletMarginLoss", margin=0.5, p=3.0, eps=0.1, swap=True, inputs=three),
        layer("TripletMarginWithDistanceLoss", margin=0.5, swap=True, inputs=three),
        layer("TripletMarginWithDistanceLoss", distance_function=manhattan, inputs=three),
        layer("LinearCrossEntropyLoss", 6, 5, weight=weight[:5], inputs=(
            (4, 6), np.array([2, 4, 0, 1]))),
        layer("CTCLoss", inputs=(*spoken, *lengths)),
        layer("CTCLoss", blank=5, zero_infinity=True, inputs=(
            spoken[0], spoken[1] - 1, *lengths)),
    ]  # fmt: skip


def manhattan(x: Any, y: Any) -> Any:
    return abs(x - y).sum(-1)


def more_layers() -> list[Layer]:
    """The rest of the keywords, and losses by every reduction."""
    found = [*activations(), *images(), *sequences(), *losses()]
    reduced = []
    for made in [*usual_layers(), *found]:
        known = inspect.signature(getattr(lucid.nn, made.name.partition("+")[0])).parameters
        if "reduction" in known and "reduction" not in made.kwargs:
            reduced += [
                made._replace(kwargs={**made.kwargs, "reduction": how}) for how in ("sum", "none")
            ]
    return [*found, *reduced]


def all_layers() -> list[Layer]:
    return [*usual_layers(), *more_layers()]
