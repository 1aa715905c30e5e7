"""Rows of images taken apart, put together and read at other places."""

import numpy as np
from scipy import ndimage

from lucid.errors import ArgumentError, DTypeError, ShapeError
from tests.cases.case import integer, real
from tests.table.nn.convolution import each
from tests.table.row import Row, bad, call

NUMPY_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def padded(x, widths, mode="constant", value=None):
    pairs = [(0, 0)] * (x.ndim - len(widths) // 2)
    pairs += [tuple(widths[i : i + 2]) for i in range(len(widths) - 2, -1, -2)]
    cut = tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pairs, x.shape))
    pairs = [(max(a, 0), max(b, 0)) for a, b in pairs]
    if mode == "constant":
        return np.pad(x[cut], pairs, constant_values=value or 0)
    return np.pad(x[cut], pairs, NUMPY_MODES[mode])


def unfolded(x, window, dilation=1, padding=0, stride=1):
    window, dilation, padding, stride = (each(v, 2) for v in (window, dilation, padding, stride))
    lead = x.shape[:-2]
    x = np.pad(x, [(0, 0)] * len(lead) + [(p, p) for p in padding])
    counts = [
        (n - (k - 1) * d - 1) // s + 1 for n, k, d, s in zip(x.shape[-2:], window, dilation, stride)
    ]
    columns = []
    for q in np.ndindex(*counts):
        box = tuple(
            slice(i * s, i * s + (k - 1) * d + 1, d)
            for i, s, k, d in zip(q, stride, window, dilation)
        )
        columns.append(x[(..., *box)].reshape(*lead[:-1], -1))
    return np.stack(columns, -1)


def folded(y, size, window, dilation=1, padding=0, stride=1):
    """The transpose of unfold's matrix, which comes from the images of all unit vectors."""
    size, taps = each(size, 2), np.prod(each(window, 2))
    channels = y.shape[-2] // taps
    units = np.eye(np.prod(size)).reshape(-1, 1, *size)
    matrix = unfolded(units, window, dilation, padding, stride)  # (pixels, taps, windows)
    y = y.reshape(*y.shape[:-2], channels, taps, -1)
    return np.einsum("...tl,ptl->...p", y, matrix).reshape(*y.shape[:-2], *size)


def shuffled(x, r):
    *outer, c, h, w = x.shape
    out = np.zeros((*outer, c // r**2, h * r, w * r), x.dtype)
    for k in range(c):
        channel, i, j = k // r**2, k // r % r, k % r
        out[..., channel, i::r, j::r] = x[..., k, :, :]
    return out


def unshuffled(x, r):
    *outer, c, h, w = x.shape
    out = [x[..., k, i::r, j::r] for k in range(c) for i in range(r) for j in range(r)]
    return np.stack(out, -3) if out else x.reshape(*outer, 0, h // r, w // r)


def dealt(x, g):
    order = [i * (x.shape[1] // g) + j for j in range(x.shape[1] // g) for i in range(g)]
    return x[:, order]


def keys(t, a=-0.75):
    """Keys' cubic convolution, by its definition."""
    t = abs(t)
    near = (a + 2) * t**3 - (a + 3) * t**2 + 1
    far = a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


def axis_weights(n, m, scale, mode, corners):
    """The matrix (m, n) by which one axis is resampled."""
    out = np.zeros((m, n))
    for i in range(m):
        at = i * (n - 1) / max(m - 1, 1) if corners else (i + 0.5) * scale - 0.5
        if mode == "nearest":
            out[i, min(int(i * scale), n - 1)] = 1
        elif mode == "nearest-exact":
            out[i, min(int((i + 0.5) * scale), n - 1)] = 1
        elif mode == "bicubic":
            for k in range(int(np.floor(at)) - 1, int(np.floor(at)) + 3):
                out[i, np.clip(k, 0, n - 1)] += keys(at - k)
        else:
            at = max(at, 0)
            for k in range(int(at), int(at) + 2):
                out[i, min(k, n - 1)] += max(0, 1 - abs(at - k))
    return out


def smoothed(n, m, scale, mode, corners):
    """The matrix (m, n) of a filter whose window is stretched by the scale, where that is over 1.

    Pillow's: a window that reaches past the edge is cut there, and weights sum to 1. Of
    align_corners PyTorch takes the scale alone, so corners do not fall on corners.
    """
    scale = (n - 1) / max(m - 1, 1) if corners else scale
    wide = max(scale, 1.0)
    reach = wide * (2 if mode == "bicubic" else 1)
    out = np.zeros((m, n))
    for i in range(m):
        center = scale * (i + 0.5)
        for k in range(max(int(center - reach + 0.5), 0), min(int(center + reach + 0.5), n)):
            t = (k + 0.5 - center) / wide
            out[i, k] = keys(t, -0.5) if mode == "bicubic" else max(0, 1 - abs(t))
    return out / out.sum(1, keepdims=True)


def resized(
    x,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    axes = x.ndim - 2
    if size is None:
        factors = each(scale_factor, axes)
        size = [int(n * f) for n, f in zip(x.shape[2:], factors)]
        scales = [1 / f for f in factors]
        if recompute_scale_factor:
            scales = [n / m for n, m in zip(x.shape[2:], size)]
    else:
        size = each(size, axes)
        scales = [n / m for n, m in zip(x.shape[2:], size)]
    for axis, (m, scale) in enumerate(zip(size, scales), 2):
        n = x.shape[axis]
        if mode == "area":
            weights = np.zeros((m, n))
            for i in range(m):
                start, stop = i * n // m, -((-(i + 1) * n) // m)
                weights[i, start:stop] = 1 / (stop - start)
        else:
            weights = (smoothed if antialias else axis_weights)(n, m, scale, mode, align_corners)
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ weights.T, -1, axis)
    return x


def sampled(x, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """SciPy's map_coordinates for what it has; the rest element by element."""
    sizes = x.shape[2:]
    at = [
        (grid[..., len(sizes) - 1 - i] + 1) * (n - 1) / 2
        if align_corners
        else ((grid[..., len(sizes) - 1 - i] + 1) * n - 1) / 2
        for i, n in enumerate(sizes)
    ]
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    for b, c in np.ndindex(*x.shape[:2]):
        places = np.stack([a[b] for a in at])
        if mode == "bicubic":
            out[b, c] = cubic_sample(x[b, c], places, padding_mode, align_corners)
            continue
        if padding_mode == "reflection":
            places = np.stack([folded_in(a, n, align_corners) for a, n in zip(places, sizes)])
        image, order = x[b, c], int(mode == "bilinear")
        if padding_mode == "zeros":
            image = np.pad(image, 8)
            places = places + 8
        places = np.round(places) if order == 0 else places
        out[b, c] = ndimage.map_coordinates(image, places, order=order, mode="nearest")
    return out


def folded_in(a, n, corners):
    low, high = (0, n - 1) if corners else (-0.5, n - 0.5)
    if high == low:
        return np.zeros_like(a)
    a = np.abs((a - low + (high - low)) % (2 * (high - low)) - (high - low)) + low
    return np.clip(a, 0, n - 1)


def cubic_sample(image, places, padding_mode, corners):
    out = np.zeros(places.shape[1:])
    for q in np.ndindex(*out.shape):
        y, x = places[(slice(None), *q)]
        for i in range(int(np.floor(y)) - 1, int(np.floor(y)) + 3):
            for j in range(int(np.floor(x)) - 1, int(np.floor(x)) + 3):
                a, b = i, j
                if padding_mode == "border":
                    a, b = np.clip(i, 0, image.shape[0] - 1), np.clip(j, 0, image.shape[1] - 1)
                elif padding_mode == "reflection":
                    a, b = (
                        int(folded_in(np.float64(k), n, corners))
                        for k, n in zip((i, j), image.shape)
                    )
                if 0 <= a < image.shape[0] and 0 <= b < image.shape[1]:
                    out[q] += keys(y - i) * keys(x - j) * image[a, b]
    return out


def mapped(theta, size, align_corners=None):
    def ends(n):
        return (
            np.zeros(1) if n == 1 else np.linspace(-1, 1, n) * (1 if align_corners else (n - 1) / n)
        )

    out = np.zeros((size[0], *size[2:], len(size) - 2))
    for q in np.ndindex(*size[2:]):
        point = [ends(n)[i] for n, i in zip(size[2:], q)][::-1]
        out[(slice(None), *q)] = theta @ np.array([*point, 1.0])
    return out


def coordinates(*shape):
    """Away from the places where a bilinear weight has a kink."""
    return real(*shape, low=-0.93, high=0.91)


ROWS = [
    Row(
        "nn.functional.pad",
        padded,
        [
            call(real(2, 3), (1, 2)),
            call(real(2, 3), (1, -1, 0, 2), value=1.5),
            call(real(2, 2, 4), (2, 3), mode="reflect"),
            call(real(1, 2, 3, 4), (1, 2, 2, 0), "replicate"),
            call(real(1, 2, 3, 4), (2, 1, 3, 0), "circular"),
            call(real(2, 3), (), label="nothing"),
        ],
        refused=[
            bad(ArgumentError, "mode", real(2, 3), (1, 1), "mirror"),
            bad(ShapeError, ("reflect", "at most 2"), real(1, 2, 3), (3, 0), "reflect"),
            bad(ShapeError, "3 widths", real(2, 3), (1, 1, 1)),
        ],
    ),
    Row(
        "nn.functional.unfold",
        unfolded,
        [
            call(real(2, 2, 4, 5), 2),
            call(real(1, 3, 6, 5), (3, 2), (2, 1), (1, 2), (2, 1)),
            call(real(2, 4, 4), 3, padding=1),
        ],
        refused=[bad(ShapeError, "do not fit", real(1, 1, 2, 2), 3)],
    ),
    Row(
        "nn.functional.fold",
        folded,
        [
            call(real(2, 8, 12), (4, 5), 2),
            call(real(1, 6, 10), (5, 4), (3, 2), (2, 1), (1, 1), (2, 1)),
            call(real(9, 16), 4, 3, padding=1),
        ],
        refused=[bad(ShapeError, "windows of 4 elements", real(1, 6, 12), (4, 5), 2)],
    ),
    Row(
        "nn.functional.pixel_shuffle",
        shuffled,
        [call(real(2, 8, 2, 3), 2), call(real(9, 1, 2), 3)],
        refused=[bad(ShapeError, "not a multiple of 4", real(1, 6, 2, 2), 2)],
    ),
    Row(
        "nn.functional.pixel_unshuffle",
        unshuffled,
        [call(real(2, 2, 4, 6), 2), call(real(1, 3, 6), 3)],
        refused=[bad(ShapeError, "blocks of (2, 2)", real(1, 6, 3, 2), 2)],
    ),
    Row(
        "nn.functional.channel_shuffle",
        dealt,
        [call(real(2, 6, 2, 2), 3), call(real(1, 4, 3), 2)],
        refused=[
            bad(ShapeError, "groups", real(1, 4, 2, 2), 3),
            bad(ArgumentError, "groups", real(1, 4, 2), 0),
        ],
        torch=lambda torch, x, groups: torch.channel_shuffle(x, groups),
    ),
    Row(
        "nn.functional.interpolate",
        resized,
        [
            call(real(1, 2, 5), 3),
            call(real(2, 1, 3, 4), (5, 7)),
            call(real(1, 2, 4, 4), scale_factor=(0.5, 2), mode="nearest-exact"),
            call(real(1, 2, 5), 9, mode="linear"),
            call(real(1, 2, 5), 3, mode="linear", align_corners=True),
            call(real(1, 2, 3, 4), scale_factor=1.7, mode="bilinear"),
            call(real(1, 2, 3, 4), scale_factor=1.7, mode="bilinear", recompute_scale_factor=True),
            call(real(1, 2, 5, 4), (2, 7), mode="bicubic"),
            call(real(1, 1, 4, 5), (6, 3), mode="bicubic", align_corners=True),
            call(real(1, 1, 2, 3, 3), (3, 4, 2), mode="trilinear"),
            call(real(1, 2, 5, 4), (2, 3), mode="area"),
            call(real(1, 2, 7, 8), (3, 5), mode="bilinear", antialias=True),
            call(real(1, 1, 4, 9), (6, 2), mode="bilinear", align_corners=True, antialias=True),
            call(real(1, 2, 9, 5), (4, 8), mode="bicubic", antialias=True),
            call(real(1, 1, 8, 9), scale_factor=0.4, mode="bicubic", antialias=True),
        ],
        refused=[
            bad(ArgumentError, "mode", real(1, 2, 3), 4, mode="cubic"),
            bad(ArgumentError, "exactly one of", real(1, 2, 3), 4, 2.0),
            bad(ShapeError, "needs 2 spatial axes", real(1, 2, 3), 4, mode="bilinear"),
            bad(ArgumentError, "align_corners", real(1, 2, 3), 4, align_corners=True),
            bad(DTypeError, "int64", integer(1, 2, 3), 4, mode="linear"),
            bad(ArgumentError, "antialias", real(1, 2, 3), 4, mode="linear", antialias=True),
        ],
    ),
    Row(
        "nn.functional.upsample",
        resized,
        [call(real(1, 2, 3), 5), call(real(1, 2, 3, 2), None, 2, "bilinear", True)],
        refused=[bad(ArgumentError, "exactly one of", real(1, 2, 3))],
    ),
    Row(
        "nn.functional.upsample_nearest",
        resized,
        [call(real(1, 2, 3), 5), call(real(1, 2, 3, 2), scale_factor=2)],
        refused=[bad(ShapeError, "for 1 axes", real(1, 2, 3), (1, 2, 3))],
    ),
    Row(
        "nn.functional.upsample_bilinear",
        lambda x, size=None, scale_factor=None: resized(x, size, scale_factor, "bilinear", True),
        [call(real(1, 2, 3, 4), (5, 3)), call(real(1, 2, 3, 2), scale_factor=2)],
        refused=[bad(ShapeError, "needs 2 spatial axes", real(1, 2, 3), 5)],
    ),
    Row(
        "nn.functional.affine_grid",
        mapped,
        [
            call(real(2, 2, 3), (2, 1, 3, 4)),
            call(real(1, 2, 3), (1, 3, 1, 4), align_corners=True),
            call(real(1, 3, 4), (1, 2, 2, 3, 2)),
        ],
        refused=[bad(ShapeError, "theta of shape (2, 2, 2)", real(2, 2, 2), (2, 1, 3, 4))],
    ),
    Row(
        "nn.functional.grid_sample",
        sampled,
        [
            call(real(2, 2, 4, 5), coordinates(2, 3, 2, 2)),
            call(real(1, 2, 4, 5), real(1, 3, 2, 2, low=-1.7, high=1.7), padding_mode="border"),
            call(real(1, 2, 4, 5), real(1, 3, 2, 2, low=-2.9, high=2.9), padding_mode="reflection"),
            call(real(1, 2, 4, 5), real(1, 3, 2, 2), align_corners=True),
            call(
                real(1, 2, 4, 3),
                real(1, 3, 2, 2, low=-2.7, high=2.7),
                "bilinear",
                "reflection",
                True,
            ),
            call(real(1, 2, 4, 5), real(1, 3, 2, 2), mode="nearest"),
            call(real(1, 2, 4, 5), real(1, 3, 2, 2, low=-1.5, high=1.5), mode="bicubic"),
            call(real(1, 2, 4, 5), real(1, 2, 2, 2), "bicubic", "border"),
            call(real(1, 2, 4, 5), real(1, 2, 2, 2), "bicubic", "reflection", True),
            call(real(1, 2, 3, 4, 2), coordinates(1, 2, 2, 1, 3)),
        ],
        refused=[
            bad(ArgumentError, "mode", real(1, 2, 4, 5), real(1, 3, 2, 2), "cubic"),
            bad(ShapeError, "a grid of (1, 3, 2, 3)", real(1, 2, 4, 5), real(1, 3, 2, 3)),
            bad(DTypeError, "the same floating dtype", real(1, 2, 4, 5), integer(1, 3, 2, 2)),
        ],
    ),
]
