"""Rows of the losses of nn.functional."""

import itertools

import numpy as np
from scipy import special

from lucid.errors import ArgumentError, DTypeError, IndexingError, ShapeError
from tests.cases.case import boolean, complex_, index, real
from tests.table.row import Row, bad, call

F = "nn.functional."
X = real(3, 4)
SIGNS = np.array([[1, -1, 1, -1], [-1, 1, 1, 1], [1, -1, -1, 1]])
OLDER = [(False, None), (None, False), (True, True)]  # PyTorch's older size_average and reduce


def reduced(loss, reduction="mean", size_average=None, reduce=None):
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def weighted(loss, weight, reduction):
    if weight is None:
        return reduced(loss, reduction)
    total = loss * weight
    return total.sum() / weight.sum() if reduction == "mean" else reduced(total, reduction)


def mse_loss(x, t, size_average=None, reduce=None, reduction="mean", weight=None):
    if size_average is not None or reduce is not None:
        return reduced((x - t) ** 2, reduction, size_average, reduce)
    return weighted((x - t) ** 2, weight, reduction)


def l1_loss(x, t, size_average=None, reduce=None, reduction="mean", weight=None):
    if size_average is not None or reduce is not None:
        return reduced(np.abs(x - t), reduction, size_average, reduce)
    return weighted(np.abs(x - t), weight, reduction)


def smooth_l1_loss(x, t, size_average=None, reduce=None, reduction="mean", beta=1.0):
    d = np.abs(x - t)
    loss = d if beta == 0 else special.huber(beta, d) / beta
    return reduced(loss, reduction, size_average, reduce)


def huber_loss(x, t, reduction="mean", delta=1.0, weight=None):
    loss = special.huber(delta, x - t)
    return reduced(loss if weight is None else loss * weight, reduction)


def poisson_nll_loss(
    x,
    t,
    log_input=True,
    full=False,
    size_average=None,
    eps=1e-8,
    reduce=None,
    reduction="mean",
):
    loss = np.exp(x) - t * x if log_input else x - t * np.log(x + eps)
    if full:
        many = np.maximum(t, 1)
        stirling = many * np.log(many) - many + 0.5 * np.log(2 * np.pi * many)
        loss = loss + np.where(t > 1, stirling, 0)
    return reduced(loss, reduction, size_average, reduce)


def gaussian_nll_loss(x, t, var, full=False, eps=1e-6, reduction="mean"):
    var = np.maximum(var, eps)
    if np.ndim(var) and var.shape == x.shape[:-1]:
        var = var[..., None]
    loss = 0.5 * (np.log(var) + (x - t) ** 2 / var)
    return reduced(loss + (0.5 * np.log(2 * np.pi) if full else 0), reduction)


def binary_cross_entropy(p, t, weight=None, size_average=None, reduce=None, reduction="mean"):
    loss = -(special.xlogy(t, p) + special.xlog1py(1 - t, -p))
    return reduced(loss if weight is None else loss * weight, reduction, size_average, reduce)


def bce_with_logits(
    x, t, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    ahead = 1 if pos_weight is None else pos_weight
    loss = -(ahead * t * special.log_expit(x) + (1 - t) * special.log_expit(-x))
    return reduced(loss if weight is None else loss * weight, reduction, size_average, reduce)


def kl_div(x, t, size_average=None, reduce=None, reduction="mean", log_target=False):
    loss = np.exp(t) * (t - x) if log_target else special.xlogy(t, t) - t * x
    if reduction == "batchmean":
        return loss.sum() / x.shape[0]
    return reduced(loss, reduction, size_average, reduce)


def soft_margin_loss(x, t, size_average=None, reduce=None, reduction="mean"):
    return reduced(np.log1p(np.exp(-t * x)), reduction, size_average, reduce)


def hinge_embedding_loss(x, t, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    loss = np.where(t == 1, x, np.maximum(0, margin - x))
    return reduced(loss, reduction, size_average, reduce)


def margin_ranking_loss(a, b, t, margin=0, size_average=None, reduce=None, reduction="mean"):
    return reduced(np.maximum(0, -t * (a - b) + margin), reduction, size_average, reduce)


def multi_margin_loss(
    x,
    t,
    p=1,
    margin=1.0,
    weight=None,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    rows, labels = np.atleast_2d(x), np.atleast_1d(t)
    out = []
    for row, label in zip(rows, labels):
        parts = [
            max(0, margin - row[label] + row[i]) ** p * (1 if weight is None else weight[label])
            for i in range(len(row))
            if i != label
        ]
        out.append(sum(parts) / len(row))
    loss = np.array(out) if x.ndim == 2 else np.array(out[0])
    return reduced(loss, reduction, size_average, reduce)


def multilabel_margin_loss(x, t, size_average=None, reduce=None, reduction="mean"):
    out = []
    for row, labels in zip(np.atleast_2d(x), np.atleast_2d(t)):
        chosen = list(itertools.takewhile(lambda label: label >= 0, labels))
        pairs = [(j, i) for j in chosen for i in range(len(row)) if i not in chosen]
        out.append(sum(max(0, 1 - (row[j] - row[i])) for j, i in pairs) / len(row))
    loss = np.array(out, x.dtype) if x.ndim == 2 else np.array(out[0], x.dtype)
    return reduced(loss, reduction, size_average, reduce)


def multilabel_soft_margin_loss(
    x, t, weight=None, size_average=None, reduce=None, reduction="mean"
):
    loss = -(t * special.log_expit(x) + (1 - t) * special.log_expit(-x))
    loss = loss if weight is None else loss * weight
    return reduced(loss.mean(-1), reduction, size_average, reduce)


def cosine_embedding_loss(a, b, t, margin=0, size_average=None, reduce=None, reduction="mean"):
    cosine = (a * b).sum(-1) / (np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))
    loss = np.where(t == 1, 1 - cosine, np.maximum(0, cosine - margin))
    return reduced(loss, reduction, size_average, reduce)


def triplet_margin_loss(
    a,
    p,
    n,
    margin=1.0,
    p_=2,
    eps=1e-6,
    swap=False,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    def distance(x, y):
        return np.linalg.norm(x - y + eps, p_, -1)

    far = distance(a, n)
    if swap:
        far = np.minimum(far, distance(p, n))
    return reduced(np.maximum(0, margin + distance(a, p) - far), reduction, size_average, reduce)


def triplet_of(a, p, n, **options):
    options["p_"] = options.pop("p", 2)
    return triplet_margin_loss(a, p, n, **options)


def classes_last(x):
    return np.moveaxis(x, 1, -1) if x.ndim > 1 else x


def nll_loss(
    x,
    t,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
):
    rows = classes_last(x)
    weight = np.ones(rows.shape[-1]) if weight is None else weight
    loss, weights = np.zeros(t.shape), np.zeros(t.shape)
    for place in np.ndindex(*t.shape):
        if t[place] != ignore_index:
            weights[place] = weight[t[place]]
            loss[place] = -rows[place][t[place]] * weights[place]
    if size_average is None and reduce is None and reduction == "mean":
        return np.array(loss.sum() / weights.sum())
    return reduced(loss, reduction, size_average, reduce)


def cross_entropy(x, t, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """By probabilities, one-hot where classes are given."""
    rows = classes_last(x)
    count = rows.shape[-1]
    weight = np.ones(count) if weight is None else weight
    if t.dtype.kind == "f":
        weights, share = np.ones(rows.shape[:-1]), classes_last(t)
    else:
        kept = t != ignore_index
        safe = np.where(kept, t, 0)
        weights, share = kept * weight[safe], kept[..., None] * np.eye(count)[safe]
    share = share * (1 - label_smoothing) + label_smoothing / count
    loss = -(weight * share * special.log_softmax(rows, -1)).sum(-1)
    if t.dtype.kind != "f":
        loss = np.where(kept, loss, 0)
    if reduction == "mean":
        return np.array(loss.sum() / weights.sum())
    return reduced(loss, reduction)


def ctc_loss(
    x, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False
):
    """The sum over every path, one by one."""
    many = x if x.ndim == 3 else x[:, None]
    rows = split_targets(targets, np.ravel(target_lengths))
    losses = []
    for n, row in enumerate(rows):
        total = 0.0
        for path in itertools.product(range(many.shape[2]), repeat=int(np.ravel(input_lengths)[n])):
            joined = [c for c, _ in itertools.groupby(path)]
            if [c for c in joined if c != blank] == list(row):
                total += np.exp(sum(many[t, n, c] for t, c in enumerate(path)))
        losses.append(-np.log(total) if total else 0.0 if zero_infinity else np.inf)
    loss = np.array(losses)
    if reduction == "mean":
        loss = loss / np.maximum(np.ravel(target_lengths), 1)
    loss = loss if x.ndim == 3 else loss[0]
    return reduced(loss, reduction)


def split_targets(targets, lengths):
    if targets.ndim == 2:
        return [row[:n] for row, n in zip(targets, lengths)]
    ends = np.cumsum(lengths)
    return [targets[end - n : end] for end, n in zip(ends, lengths)]


def reductions(*args, **kwargs):
    """The call with every reduction."""
    return [call(*args, reduction=r, **kwargs) for r in ("none", "sum", "mean")]


def older(*args):
    return [call(*args, size_average=s, reduce=r) for s, r in OLDER]


UNIT = real(3, 4, low=0.05, high=0.95)
APART = real(3, 4, low=3, high=5)
LABELS = index(3, high=4)

NUMBERS = [
    Row(
        F + "mse_loss",
        mse_loss,
        [
            *reductions(X, X),
            *older(X, X),
            call(X, X, weight=UNIT),
            call(X, X, reduction="sum", weight=UNIT),
            call(real(), real()),
        ],
        [
            bad(ArgumentError, "reduction='max'", X, X, reduction="max"),
            bad(ShapeError, "weight", X, X, weight=real(4)),
            bad(ShapeError, "sizes 4 and 3", X, real(3, 3)),
        ],
    ),
    Row(
        F + "l1_loss",
        l1_loss,
        [
            *reductions(X, APART),
            *older(X, APART),
            call(X, APART, weight=UNIT),
            call(complex_(2, 3), complex_(2, 3)),
        ],
        [bad(ArgumentError, "reduction=None", X, X, reduction=None)],
    ),
    Row(
        F + "smooth_l1_loss",
        smooth_l1_loss,
        [*reductions(X, X), *older(X, X), call(X, X, beta=0.3), call(X, APART, beta=0.0)],
        [bad(ArgumentError, "must not be negative", X, X, beta=-1.0)],
    ),
    Row(
        F + "huber_loss",
        huber_loss,
        [*reductions(X, X), call(X, X, "mean", 0.4), call(X, X, delta=2.0, weight=UNIT)],
        [bad(ArgumentError, "it must be positive", X, X, delta=0)],
    ),
    Row(
        F + "poisson_nll_loss",
        poisson_nll_loss,
        [
            *reductions(X, APART),
            *older(X, APART),
            call(UNIT, APART, log_input=False),
            call(UNIT, real(3, 4, low=0.2, high=3), False, True, eps=0.1),
        ],
        [bad(ArgumentError, "eps", UNIT, X, False, eps="a")],
    ),
    Row(
        F + "gaussian_nll_loss",
        gaussian_nll_loss,
        [
            *reductions(X, X, UNIT),
            call(X, X, real(3, low=0.5, high=2), full=True),
            call(X, X, real(3, 1, low=0.5, high=2), eps=1e-3),
            call(X, X, 0.7),
            call(X, X, UNIT, eps=0.5).but(smooth=False),
        ],
        [
            bad(ShapeError, "var of shape (5,)", X, X, real(5, low=1)),
            bad(ArgumentError, "negative", X, X, -1.0),
        ],
    ),
]

PROBABILITIES = [
    Row(
        F + "binary_cross_entropy",
        binary_cross_entropy,
        [*reductions(UNIT, UNIT), *older(UNIT, UNIT), call(UNIT, UNIT, real(4))],
        [
            bad(ShapeError, "they must be equal", UNIT, real(3)),
            bad(ArgumentError, "sigmoid", APART, UNIT),
        ],
    ),
    Row(
        F + "binary_cross_entropy_with_logits",
        bce_with_logits,
        [
            *reductions(X, UNIT),
            *older(X, UNIT),
            call(X, UNIT, real(4)),
            call(X, UNIT, pos_weight=real(4, low=0.5)),
            call(real(3, 4, low=-80, high=80), UNIT, pos_weight=real(3, 1, low=0.5)),
            call(real(0), real(0), reduction="sum"),
        ],
        [bad(ShapeError, "they must be equal", X, real(3))],
    ),
    Row(
        F + "kl_div",
        kl_div,
        [
            *reductions(X, UNIT),
            *older(X, UNIT),
            call(X, UNIT, reduction="batchmean"),
            call(X, X, log_target=True),
            call(X, X, reduction="batchmean", log_target=True),
        ],
        [bad(ArgumentError, "batchmean", X, UNIT, reduction="max")],
    ),
]

MARGINS = [
    Row(
        F + "soft_margin_loss",
        soft_margin_loss,
        [*reductions(X, SIGNS), *older(X, SIGNS), call(X, X)],
        [bad(ShapeError, "do not broadcast", X, real(3))],
    ),
    Row(
        F + "hinge_embedding_loss",
        hinge_embedding_loss,
        [*reductions(X, SIGNS), *older(X, SIGNS), call(X, SIGNS, 0.3)],
        [bad(ArgumentError, "margin", X, SIGNS, "a")],
    ),
    Row(
        F + "margin_ranking_loss",
        margin_ranking_loss,
        [*reductions(X, X, SIGNS), *older(X, X, SIGNS), call(X, X, SIGNS, 0.7)],
        [bad(ArgumentError, "margin", X, X, SIGNS, "a")],
    ),
    Row(
        F + "multi_margin_loss",
        multi_margin_loss,
        [
            *reductions(X, LABELS),
            *older(X, LABELS),
            call(X, LABELS, 2, 0.5),
            call(X, LABELS, p=2, margin=2.0, weight=real(4, low=0.5)),
            call(real(4), index(high=4)),
        ],
        [
            bad(ArgumentError, "1 or 2", X, LABELS, 3),
            bad(ShapeError, "one target per row", X, index(2, high=4)),
            bad(IndexingError, "4 classes", X, np.array([0, 4, 1])),
            bad(DTypeError, "integers", X, real(3)),
        ],
    ),
    Row(
        F + "multilabel_margin_loss",
        multilabel_margin_loss,
        [
            *reductions(X, np.array([[3, 0, -1, 1], [-1, 2, 0, 1], [1, 2, 0, 3]])),
            *older(X, np.array([[3, 0, -1, 1], [2, -1, 0, 1], [1, 2, 0, -1]])),
            call(real(4), np.array([3, 0, -1, 1])),
        ],
        [
            bad(ShapeError, "they must be equal", X, index(3, high=4)),
            bad(ArgumentError, "4 classes", real(4), np.array([0, 4, 1, 2])),
        ],
    ),
    Row(
        F + "multilabel_soft_margin_loss",
        multilabel_soft_margin_loss,
        [*reductions(X, UNIT), *older(X, UNIT), call(X, UNIT, real(4))],
        [bad(ShapeError, "do not broadcast", X, real(3))],
    ),
    Row(
        F + "cosine_embedding_loss",
        cosine_embedding_loss,
        [
            *reductions(X, X, np.array([1, -1, 1])),
            *older(X, X, np.array([-1, -1, 1])),
            call(X, X, np.array([-1, -1, 1]), 0.1),
            call(real(4), real(4), np.array(1)),
        ],
        [bad(ShapeError, "vectors and a number", X, X, np.array(1))],
    ),
    Row(
        F + "triplet_margin_loss",
        triplet_margin_loss,
        [
            *reductions(X, X, X),
            *older(X, X, X),
            call(X, X, X, 3.0, 1, 0.1).but(
                expected=lambda a, b, c, margin, p, eps: triplet_margin_loss(
                    a, b, c, margin, p, eps
                )
            ),
            call(X, X, X, margin=2.0, swap=True),
            call(real(4), real(4), real(4)),
            call(complex_(2, 4), complex_(2, 4), complex_(2, 4)),
        ],
        [
            bad(ArgumentError, "it must be positive", X, X, X, 0),
            bad(ShapeError, "as many axes", X, X, real(4)),
        ],
    ),
    Row(
        F + "triplet_margin_with_distance_loss",
        lambda a, b, c, **options: triplet_margin_loss(a, b, c, **options),
        [
            *reductions(X, X, X),
            call(X, X, X, margin=2.0, swap=True),
            call(
                X, X, X, distance_function=lambda x, y: ((x - y) * (x - y)).sum(-1), label="own"
            ).but(
                expected=lambda a, b, c, distance_function: np.maximum(
                    0, 1 + ((a - b) ** 2).sum(-1) - ((a - c) ** 2).sum(-1)
                ).mean()
            ),
        ],
        [
            bad(ArgumentError, "it must be positive", X, X, X, margin=-1.0),
            bad(ArgumentError, "distance_function=3", X, X, X, distance_function=3),
        ],
    ),
]

IMAGE, IMAGE_LABELS = real(2, 4, 3), index(2, 3, high=4)
SHARES = real(3, 4, low=0, high=1)

CLASSES = [
    Row(
        F + "nll_loss",
        nll_loss,
        [
            *reductions(X, LABELS),
            *older(X, LABELS),
            call(X, LABELS, real(4, low=0.5)),
            call(X, LABELS, real(4, low=0.5), reduction="sum"),
            call(X, np.array([1, -100, 3])),
            call(X, np.array([1, 2, 3]), real(4, low=0.5), ignore_index=2),
            call(real(4), index(high=4)),
            call(IMAGE, IMAGE_LABELS),
            call(real(2, 3, 2, 2), index(2, 2, 2, high=3), reduction="none"),
        ],
        [
            bad(ShapeError, "classes are axis 1", X, index(4, high=4)),
            bad(IndexingError, "target 4 is out of range", X, np.array([0, 4, 1])),
            bad(IndexingError, "target -1 is out of range", X, np.array([0, -1, 1])),
            bad(DTypeError, "integers", X, real(3)),
            bad(ShapeError, "weight of shape (3,)", X, LABELS, real(3)),
        ],
        differs="the weight has a derivative; PyTorch's jvp leaves it out",
    ),
    Row(
        F + "cross_entropy",
        cross_entropy,
        [
            *reductions(X, LABELS),
            call(X, LABELS, real(4, low=0.5)),
            call(X, LABELS, real(4, low=0.5), reduction="sum", label_smoothing=0.2),
            call(X, LABELS, label_smoothing=0.3),
            call(X, np.array([1, -100, 3])),
            call(X, np.array([1, 2, 3]), real(4, low=0.5), ignore_index=2, label_smoothing=0.1),
            call(real(4), index(high=4)),
            call(IMAGE, IMAGE_LABELS),
            call(real(2, 3, 2, 2), index(2, 2, 2, high=3), reduction="none"),
            *reductions(X, SHARES),
            call(X, SHARES, real(4, low=0.5), label_smoothing=0.1),
            call(IMAGE, real(2, 4, 3, low=0, high=1)),
            call(real(4), real(4, low=0, high=1)),
        ],
        [
            bad(ShapeError, "classes are axis 1", X, index(4, high=4)),
            bad(ShapeError, "probabilities of shape (4,)", X, real(4)),
            bad(IndexingError, "target 4 is out of range", X, np.array([0, 4, 1])),
            bad(DTypeError, "integers", X, boolean(3)),
            bad(ArgumentError, "between 0 and 1", X, LABELS, label_smoothing=2.0),
            bad(ArgumentError, "reduction='max'", X, LABELS, reduction="max"),
        ],
        differs="the weight has a derivative; PyTorch's jvp leaves it out",
    ),
    Row(
        F + "linear_cross_entropy",
        lambda x, w, t, linear_bias=0.0, **options: cross_entropy(
            x @ w.T + linear_bias, t, **options
        ),
        [
            *reductions(real(3, 2), real(4, 2), LABELS),
            call(real(3, 2), real(4, 2), LABELS, linear_bias=real(4), label_smoothing=0.1),
            call(real(3, 2), real(4, 2), np.array([1, 2, 3]), ignore_index=2),
            call(real(3, 2), real(4, 2), SHARES, weight=real(4, low=0.5)),
        ],
        [bad(ShapeError, "agree in the last axis", X, real(4, 2), LABELS)],
    ),
    Row(
        F + "ctc_loss",
        ctc_loss,
        [
            call(real(4, 2, 3), np.array([[1, 2], [2, 2]]), [4, 3], [2, 1], reduction=r)
            for r in ("none", "sum", "mean")
        ]
        + [
            call(real(4, 2, 3), np.array([1, 2, 2]), np.array([4, 4]), np.array([1, 2])),
            call(real(5, 3), np.array([1, 1]), [5], [2], label="single"),
            call(real(4, 1, 3), np.array([[0, 1]]), [4], [2], 2, label="blank"),
            call(real(3, 2, 3), np.array([[1, 2], [2, 2]]), [3, 2], [0, 1], label="nothing"),
            call(
                real(2, 2, 3),
                np.array([[1, 1], [1, 2]]),
                [2, 2],
                [2, 2],
                reduction="none",
                zero_infinity=True,
                label="impossible",
            ),
        ],
        [
            bad(ShapeError, "(time, batch, class)", real(3), np.array([1]), [3], [1]),
            bad(IndexingError, "blank=5", real(4, 1, 3), np.array([[1]]), [4], [1], 5),
            bad(IndexingError, "targets from", real(4, 1, 3), np.array([[7]]), [4], [1]),
            bad(ArgumentError, "input_lengths", real(4, 1, 3), np.array([[1]]), [9], [1]),
            bad(ArgumentError, "length 3", real(4, 1, 3), np.array([[1]]), [4], [3]),
            bad(ShapeError, "2 input_lengths", real(4, 1, 3), np.array([[1]]), [4, 4], [1]),
        ],
        differs="PyTorch's gradient is that of log_softmax followed by the loss",
    ),
]

ROWS = [*NUMBERS, *PROBABILITIES, *MARGINS, *CLASSES]
