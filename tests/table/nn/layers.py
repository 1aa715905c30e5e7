"""Rows of linear maps, embeddings, attention and distances of nn.functional."""

import numpy as np
from scipy import special

from lucid.errors import ArgumentError, AxisError, DTypeError, IndexingError, ShapeError
from tests.cases.case import boolean, complex_, index, integer, real
from tests.table.row import Row, bad, call

F = "nn.functional."


def linear(x, weight, bias=None):
    y = np.einsum("...i,oi->...o" if weight.ndim == 2 else "...i,i->...", x, weight)
    return y if bias is None else y + bias


def bilinear(a, b, weight, bias=None):
    y = np.einsum("...i,oij,...j->...o", a, weight, b)
    return y if bias is None else y + bias


def embedding(i, weight, padding_idx=None, scale_grad_by_freq=False):
    return weight[i]


def embedding_bag(
    i,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    if offsets is None:
        rows = list(i)
        samples = None if per_sample_weights is None else list(per_sample_weights)
    else:
        cuts = offsets[1:-1] if include_last_offset else offsets[1:]
        rows = np.split(i, cuts)
        samples = None if per_sample_weights is None else np.split(per_sample_weights, cuts)
    out = np.zeros((len(rows), weight.shape[1]))
    for k, bag in enumerate(rows):
        keep = np.ones(len(bag), bool) if padding_idx is None else bag != padding_idx
        vectors = weight[bag]
        if samples is not None:
            vectors = vectors * samples[k][:, None]
        vectors = vectors[keep]
        if len(vectors):
            out[k] = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode](vectors, 0)
    return out


def one_hot(i, num_classes=-1):
    return np.eye(i.max() + 1 if num_classes == -1 else num_classes, dtype="int64")[i]


def attention(
    q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    if enable_gqa:
        k, v = (np.repeat(x, q.shape[-3] // k.shape[-3], -3) for x in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = np.tri(*scores.shape[-2:], dtype=bool)
    if attn_mask is not None and attn_mask.dtype == bool:
        scores = np.where(attn_mask, scores, -np.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = special.softmax(scores, -1)
    return np.where(np.isneginf(scores).all(-1, keepdims=True), 0, weights) @ v


def pairwise_distance(a, b, p=2.0, eps=1e-6, keepdim=False):
    return np.linalg.norm(a - b + eps, p, -1, keepdims=keepdim)


def cosine_similarity(a, b, dim=1, eps=1e-8):
    a, b = np.broadcast_arrays(a, b)
    sizes = (np.maximum(np.linalg.norm(x, axis=dim), eps) for x in (a, b))
    return (a * b).sum(dim) / np.prod(list(sizes), 0)


Q = real(2, 3, 4)
TABLE = real(5, 3, distinct=True)
OFFSETS = np.array([0, 2, 2, 5])

MAPS = [
    Row(
        F + "linear",
        linear,
        [
            call(real(2, 3), real(4, 3)),
            call(real(2, 3), real(4, 3), real(4)),
            call(real(3), real(4, 3), bias=real(4)),
            call(real(2, 3), real(3)),
            call(real(2, 2, 3), real(4, 3), real(4)),
            call(real(0, 3), real(4, 3)),
        ],
        [
            bad(ShapeError, "agree in the last axis", real(2, 3), real(4, 2)),
            bad(ShapeError, "bias of shape (3,)", real(2, 3), real(4, 3), real(3)),
            bad(ShapeError, "linear", real(), real(4, 3)),
        ],
    ),
    Row(
        F + "bilinear",
        bilinear,
        [
            call(real(2, 3), real(2, 4), real(5, 3, 4)),
            call(real(2, 3), real(2, 4), real(5, 3, 4), real(5)),
            call(real(2, 2, 3), real(2, 2, 4), real(1, 3, 4), bias=real(1)),
        ],
        [
            bad(ShapeError, "(o, i, j)", real(2, 3), real(2, 4), real(5, 4, 3)),
            bad(ShapeError, "bias", real(2, 3), real(2, 4), real(5, 3, 4), real(4)),
        ],
    ),
    Row(
        F + "embedding",
        embedding,
        [
            call(index(4, high=5), TABLE),
            call(index(2, 3, high=5), TABLE),
            call(index(high=5), TABLE),
            call(index(0, high=5), TABLE),
            call(index(6, high=5), TABLE, padding_idx=2).but(smooth=False),
            call(index(6, high=5), TABLE, -1).but(smooth=False),
            call(index(6, high=5), TABLE, scale_grad_by_freq=True).but(smooth=False),
        ],
        [
            bad(DTypeError, "integers", real(3), TABLE),
            bad(ShapeError, "matrix", index(3, high=2), real(3)),
            bad(IndexingError, "5 rows", np.array([0, 5]), TABLE),
            bad(IndexingError, "padding_idx=7", index(3, high=2), TABLE, 7),
        ],
    ),
    Row(
        F + "embedding_bag",
        embedding_bag,
        [
            call(index(3, 4, high=5), TABLE),
            call(index(3, 4, high=5), TABLE, mode="sum"),
            call(index(3, 4, high=5), TABLE, mode="max"),
            call(index(3, 4, high=5), TABLE, mode="sum", per_sample_weights=real(3, 4)),
            call(index(7, high=5), TABLE, OFFSETS),
            call(index(7, high=5), TABLE, OFFSETS, mode="sum"),
            call(index(7, high=5), TABLE, OFFSETS, mode="max"),
            call(index(5, high=5), TABLE, OFFSETS, mode="sum", include_last_offset=True),
            call(index(7, high=5), TABLE, OFFSETS, mode="sum", per_sample_weights=real(7)),
            call(index(7, high=5), TABLE, OFFSETS, mode="mean", padding_idx=1),
            call(index(7, high=5), TABLE, OFFSETS, mode="max", padding_idx=1),
            call(index(3, 4, high=5), TABLE, mode="max", padding_idx=-2).but(
                expected=lambda *a, padding_idx, **k: embedding_bag(*a, padding_idx=3, **k)
            ),
        ],
        [
            bad(ArgumentError, "mode='min'", index(3, high=5), TABLE, OFFSETS, mode="min"),
            bad(ArgumentError, "needs offsets", index(3, high=5), TABLE),
            bad(ArgumentError, "start at 0", index(7, high=5), TABLE, np.array([1, 2])),
            bad(ArgumentError, "offsets cannot be given", index(3, 2, high=5), TABLE, OFFSETS),
            bad(ArgumentError, "'sum'", index(3, 2, high=5), TABLE, per_sample_weights=real(3, 2)),
        ],
    ),
    Row(
        F + "one_hot",
        one_hot,
        [
            call(index(4, high=5), 5),
            call(index(2, 3, high=3), num_classes=4),
            call(index(high=3), 3),
            call(index(0, high=3), 3),
        ],
        [
            bad(DTypeError, "integers", real(3)),
            bad(IndexingError, "2 classes", np.array([0, 2]), 2),
            bad(IndexingError, "from -1", np.array([0, -1])),
            bad(ArgumentError, "needs num_classes", np.zeros(0, "int64")),
        ],
        smooth=False,
    ),
    Row(
        F + "scaled_dot_product_attention",
        attention,
        [
            call(Q, Q, Q),
            call(real(3, 4), real(5, 4), real(5, 2)),
            call(Q, real(2, 5, 4), real(2, 5, 3), boolean(3, 5)),
            call(Q, real(2, 5, 4), real(2, 5, 3), attn_mask=real(2, 3, 5)),
            call(Q, Q, Q, is_causal=True),
            call(real(2, 2, 5, 4), real(2, 2, 3, 4), real(2, 2, 3, 4), None, 0.0, True),
            call(Q, Q, Q, scale=0.3),
            call(real(2, 4, 3, 2), real(2, 2, 5, 2), real(2, 2, 5, 3), enable_gqa=True),
            call(
                real(1, 4, 3, 2),
                real(1, 2, 5, 2),
                real(1, 2, 5, 3),
                boolean(3, 5),
                enable_gqa=True,
            ),
        ],
        [
            bad(ShapeError, "last axis", Q, real(2, 3, 5), Q),
            bad(ShapeError, "axis -2", Q, Q, real(2, 4, 4)),
            bad(ShapeError, "attn_mask of shape (4,)", Q, Q, Q, boolean(4)),
            bad(DTypeError, "attn_mask", Q, Q, Q, integer(3, 3)),
            bad(ArgumentError, "not both", Q, Q, Q, boolean(3, 3), is_causal=True),
            bad(ArgumentError, "between 0 and 1", Q, Q, Q, dropout_p=2.0),
            bad(ShapeError, "multiple of the key and", Q, Q, real(3, 3, 4), enable_gqa=True),
        ],
    ),
]

DISTANCES = [
    Row(
        F + "cosine_similarity",
        cosine_similarity,
        [
            call(real(3, 4), real(3, 4)),
            call(real(2, 3, 4), real(3, 4), dim=-1),
            call(real(4), real(4), 0),
            call(real(3, 4), real(1, 4), 1, 10.0),
        ],
        [bad(AxisError, "axis 2", real(3, 4), real(3, 4), 2)],
        differs="a norm below eps is eps and has no gradient; PyTorch gives it that of the norm",
    ),
    Row(
        F + "pairwise_distance",
        pairwise_distance,
        [
            call(real(3, 4), real(3, 4)),
            call(real(3, 4), real(4), 1.0),
            call(real(4), real(4), p=3.0, eps=0.1),
            call(real(3, 4), real(3, 4), 2.0, 1e-3, True),
            call(complex_(3, 4), complex_(3, 4)),
        ],
        [bad(ShapeError, "(3, 4) and (3, 5)", real(3, 4), real(3, 5))],
    ),
]

ROWS = [*MAPS, *DISTANCES]
