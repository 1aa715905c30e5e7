"""linear_cross_entropy: cross entropy of the scores of a linear layer, whole or in chunks of rows.

In chunks, only the scores of one chunk exist at a time: the derivative computes them again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lucid.errors import ArgumentError
from lucid.func.checkpointing import checkpoint
from lucid.nn.functional.arguments import reduce_loss
from lucid.nn.functional.linear_maps import linear
from lucid.nn.functional.losses.classes import cross_entropy
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor
from lucid.ops.elementwise.conditional import where
from lucid.ops.shape.joining import cat
from lucid.public.declare import public

POLICIES = ("auto", "accurate", "balanced", "compact")
IGNORED = -100


@public("nn")
@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """How `linear_cross_entropy` splits the rows of its input into chunks, to save memory.

    batch_chunk_size    rows of a chunk
    chunking_method     a rule for it: "aspect_ratio:N" lets the scores of a chunk have 1 / N of
                        the size of the input; "auto" is "aspect_ratio:2"

    The other options choose kernels in PyTorch and change nothing here: derivatives of any order
    and `retain_graph` always work, and sums are taken in the dtype of the input.

    >>> import lucid
    >>> x, w, t = lucid.randn(6, 4), lucid.randn(9, 4), lucid.arange(6)
    >>> options = lucid.nn.LinearCrossEntropyOptions(batch_chunk_size=2, chunking_method=None)
    >>> chunked = lucid.nn.functional.linear_cross_entropy(x, w, t, options=options)
    >>> bool(lucid.allclose(chunked, lucid.nn.functional.linear_cross_entropy(x, w, t)))
    True
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        name, size = "LinearCrossEntropyOptions", self.batch_chunk_size
        if not isinstance(self.acc_policy, str) or self.acc_policy not in POLICIES:
            raise ArgumentError(f"{name}: acc_policy is {self.acc_policy!r}, not of {POLICIES}")
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ArgumentError(f"{name}: batch_chunk_size is {size!r}, not a positive integer")
        if self.chunking_method is not None and str(self.chunking_method) != "auto":
            rule, _, factor = str(self.chunking_method).partition(":")
            if rule != "aspect_ratio" or not (factor or "1").isdigit() or factor == "0":
                raise ArgumentError(f"{name}: chunking_method is {self.chunking_method!r}")

    def rows(self, n: int, in_features: int, num_classes: int) -> int:
        """Return the rows of a chunk, for `n` rows in all."""
        if self.batch_chunk_size is not None or self.chunking_method is None:
            return self.batch_chunk_size or max(n, 1)
        rule = "aspect_ratio:2" if self.chunking_method == "auto" else self.chunking_method
        factor = int(rule.partition(":")[2] or 1)
        least = -(-n // max(1, -(-num_classes // max(in_features, 1))))
        return max(1, (1 << max(least - 1, 0).bit_length()) // factor)


@public_function("nn.functional")
def linear_cross_entropy(
    input: Any,
    linear_weight: Any,
    target: Any,
    *,
    linear_bias: Any = None,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: Any = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Any:
    """`cross_entropy(linear(input, linear_weight, linear_bias), target, ...)`.

    A weight of shape (classes, d1, ..., features) is for targets of shape (rows, d1, ...).

    options    a `nn.LinearCrossEntropyOptions`: in chunks of rows, which changes no result
    """
    ignored = IGNORED if ignore_index is None else ignore_index
    x, w, t = as_tensor(input), as_tensor(linear_weight), as_tensor(target)

    def loss(x: Any, t: Any, w: Any, bias: Any, reduction: str) -> Any:
        if w.ndim > 2:  # classes at several places
            flat = None if bias is None else as_tensor(bias).flatten()
            scores = linear(x, w.flatten(0, -2), flat).reshape((*x.shape[:-1], *w.shape[:-1]))
        else:
            scores = linear(x, w, bias)
        return cross_entropy(
            scores, t, weight, ignore_index=ignored, reduction=reduction,
            label_smoothing=label_smoothing,
        )  # fmt: skip

    if options is None or x.ndim != 2 or t.ndim != 1 or t.dtype.kind not in "iu":
        return loss(x, t, w, linear_bias, reduction)
    if not isinstance(options, LinearCrossEntropyOptions):
        facts = f"options is a {type(options).__name__}"
        raise ArgumentError(f"linear_cross_entropy: {facts}, not a LinearCrossEntropyOptions")
    rows = options.rows(x.shape[0], x.shape[1], w.shape[0])
    if rows >= x.shape[0]:
        return loss(x, t, w, linear_bias, reduction)
    part = checkpoint(lambda x, t, w, bias: loss(x, t, w, bias, "none"))
    starts = range(0, x.shape[0], rows)
    losses = cat([part(x[i : i + rows], t[i : i + rows], w, linear_bias) for i in starts])
    if reduction != "mean":
        return reduce_loss(losses, reduction)
    kept = t != ignored
    if weight is None:
        return losses.sum() / kept.sum()
    return losses.sum() / (as_tensor(weight)[where(kept, t, 0)] * kept).sum()
