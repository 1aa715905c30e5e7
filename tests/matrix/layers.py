"""The layers of tests/nn/layer_table.py and layer_keywords.py, those that draw, and their forms."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import lucid
from lucid import nn
from lucid.nn import functional as F
from tests.nn.layer_keywords import BLOCK, all_layers
from tests.nn.layer_table import IMAGE, VOLUME, Layer, causal, layer, map_arrays, mask

Make = Callable[[], Any]
STEPS = ((5, 3, 4),)
# Layers whose draws are those of their function from the same random state.
RANDOM = [
    layer("Dropout"),
    layer("Dropout", p=0.3),
    layer("Dropout1d", p=0.3, inputs=((4, 6, 2),)),
    layer("Dropout2d", p=0.3, inputs=IMAGE),
    layer("Dropout3d", p=0.3, inputs=VOLUME),
    layer("AlphaDropout", p=0.3),
    layer("FeatureAlphaDropout", p=0.3, inputs=IMAGE),
    layer("RReLU", lower=0.2, upper=0.6),
    layer("FractionalMaxPool2d", 2, 2, inputs=IMAGE),
    *[layer(name, 4, 6, 2, dropout=0.4, inputs=STEPS) for name in ("RNN", "LSTM", "GRU")],
    layer("MultiheadAttention", 4, 2, dropout=0.4, inputs=STEPS * 3),
    layer("TransformerEncoderLayer", **(BLOCK | {"dropout": 0.4}), inputs=STEPS),
    layer("TransformerDecoderLayer", **(BLOCK | {"dropout": 0.4}), inputs=STEPS * 2),
]


def encoder(**settings: Any) -> nn.Module:
    lucid.manual_seed(1)
    return nn.TransformerEncoderLayer(**BLOCK, **settings)


def decoder() -> nn.Module:
    lucid.manual_seed(1)
    return nn.TransformerDecoderLayer(**BLOCK)


# Layers of layers: functions in the place of arguments make them anew.
NESTED = [
    layer("TransformerEncoder", encoder, 2, inputs=STEPS),
    layer("TransformerEncoder", encoder, 2, lambda: nn.LayerNorm(4), enable_nested_tensor=False,
          mask_check=False, inputs=STEPS,
          options={"mask": mask(5, 5), "src_key_padding_mask": mask(3, 5)}),
    layer("TransformerEncoder", encoder, 1, inputs=STEPS,
          options={"mask": causal(5), "is_causal": True}),
    layer("TransformerDecoder", decoder, 1, inputs=STEPS * 2,
          options={"tgt_mask": causal(5), "tgt_is_causal": True, "memory_mask": causal(5),
                   "memory_is_causal": True}),
    layer("TransformerDecoder", decoder, 2, lambda: nn.LayerNorm(4), inputs=STEPS * 2,
          options={"tgt_mask": mask(5, 5), "memory_mask": mask(5, 5),
                   "tgt_key_padding_mask": mask(3, 5), "memory_key_padding_mask": mask(3, 5)}),
    layer("Transformer", **BLOCK, custom_encoder=encoder, custom_decoder=decoder,
          inputs=STEPS * 2),
    layer("Sequential", lambda: nn.Linear(6, 3), nn.Tanh, lambda: nn.BatchNorm1d(3)),
]  # fmt: skip


def table() -> list[Layer]:
    return [*all_layers(), *RANDOM, *NESTED]


def ready(value: Any) -> Any:
    """An argument of a class: arrays are tensors, makers of layers make one."""
    if callable(value) and value.__name__ in ("encoder", "decoder", "<lambda>", "Tanh"):
        return value()
    return map_arrays(lucid.tensor, value)


def constructor(made: Layer, words: bool = False, **more: Any) -> Make:
    """A function that makes the layer with the same parameters every time it is called."""
    name, _, parametrization = made.name.partition("+")
    cls = getattr(nn, name)

    def make() -> nn.Module:
        lucid.manual_seed(0)
        args, kwargs = [ready(x) for x in made.args], {k: ready(x) for k, x in made.kwargs.items()}
        if words:
            known = list(inspect.signature(cls).parameters)
            kwargs, args = {**dict(zip(known, args)), **kwargs}, []
        module = cls(*args, **{**more, **kwargs})
        if parametrization:
            getattr(nn.utils.parametrizations, parametrization)(module)
        return module

    return make


# Keywords that change no number, with a value to try.
NEUTRAL = {"device": "cpu", "dtype": "float64", "inplace": True, "sparse": True}


def constructors_of(made: Layer) -> Iterator[tuple[str, frozenset[str], Make]]:
    """Ways to make the same layer: (what, keywords that are passed, how)."""
    known = inspect.signature(getattr(nn, made.name.partition("+")[0])).parameters
    variadic = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in known.values())
    if made.args and not variadic:
        yield "by words", frozenset(), constructor(made, words=True)
    for key, value in NEUTRAL.items():
        if key in known and key not in made.kwargs:
            yield f"{key}={value}", frozenset({key}), constructor(made, **{key: value})
    if made.kwargs.get("reduction") in ("sum", "none") and "size_average" in known:
        older = {"sum": "size_average", "none": "reduce"}[made.kwargs["reduction"]]
        rest = {k: x for k, x in made.kwargs.items() if k != "reduction"}
        as_before = made._replace(kwargs={**rest, older: False})
        yield f"{older}=False", frozenset({older}), constructor(as_before)


FUNCTIONS = {
    "BCELoss": F.binary_cross_entropy, "BCEWithLogitsLoss": F.binary_cross_entropy_with_logits,
    "UpsamplingNearest2d": F.upsample_nearest, "Upsample": F.interpolate,
    "UpsamplingBilinear2d": F.upsample_bilinear, "Flatten": lucid.flatten,
}  # fmt: skip
BY_NAME = {name.replace("_", ""): getattr(F, name) for name in F.__all__ if name[-1] != "_"}
PAD_MODES = {
    "Zero": "constant", "Constant": "constant", "Reflection": "reflect", "Replication": "replicate",
    "Circular": "circular",
}  # fmt: skip


def function_of(name: str) -> Callable[..., Any] | None:
    """The function that a layer is made of, by its name."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    word = name.removeprefix("Lazy").lower()
    return next(
        (BY_NAME[w] for w in (word, word.removesuffix("loss"), word[:-2]) if w in BY_NAME), None
    )


def functional(made: Layer) -> Callable[..., Any] | None:
    """The layer's computation by a function: (module, inputs, options) to the output, or None."""
    name = made.name.removeprefix("Lazy")
    kind, is_padding, _ = name.partition("Pad")
    if is_padding:
        return lambda m, x: F.pad(x, m.padding, PAD_MODES[kind], getattr(m, "value", None))
    if name.startswith("BatchNorm"):
        return batch_norm
    if name == "LinearCrossEntropyLoss":
        return linear_cross_entropy
    if name == "Softmax2d":
        return lambda m, x: F.softmax(x, -3)
    if name == "Unflatten":
        return lambda m, x: lucid.unflatten(x, m.dim, m.unflattened_size)
    if getattr(made, "kwargs", {}).get("padding_mode", "zeros") != "zeros" or made.options:
        return None  # of several functions, or with arguments that the function names otherwise
    found = function_of(name)
    return None if found is None else lambda m, *inputs: by_attributes(found, m, inputs)


def batch_norm(m: Any, x: Any) -> Any:
    own = m.training or m.running_mean is None
    momentum = m.momentum
    if m.num_batches_tracked is not None and m.training:
        m.num_batches_tracked.add_(1)
        momentum = 1.0 / m.num_batches_tracked.item() if momentum is None else momentum
    stats = (m.running_mean, m.running_var)
    return F.batch_norm(x, *stats, m.weight, m.bias, own, momentum or 0.0, m.eps)


def linear_cross_entropy(m: Any, x: Any, target: Any) -> Any:
    ignored = -100 if m.ignore_index is None else m.ignore_index
    y = F.linear(x, m.linear.weight, m.linear.bias)
    return F.cross_entropy(y, target, m.weight, None, ignored, None, m.reduction, m.label_smoothing)


def by_attributes(function: Callable[..., Any], m: Any, inputs: Any) -> Any:
    """The function with every parameter after the inputs that the layer has an attribute for."""
    known = [*inspect.signature(function).parameters][len(inputs) :]
    given = {key: getattr(m, key) for key in known if hasattr(m, key)}
    if type(m).__name__.startswith("InstanceNorm"):
        given["use_input_stats"] = m.training or not m.track_running_stats
    return function(*inputs, **given)
