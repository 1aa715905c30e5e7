"""Bundle adjustment: the sparse Jacobian of reprojection errors by cameras, points and weights.

`ba` is the whole Jacobian as a sparse matrix, which Lucid finds by itself; for others it is put
together from `ba-blocks`, the 2 x 15 derivatives of each observation, by vmap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

CAMERAS, POINTS, OBSERVATIONS = 10, 200, 600
CAMERA = 11  # rotation (3), center (3), focal length, principal point (2), radial distortion (2)


def data(rng: np.random.Generator) -> list[Any]:
    """Cameras, points, weights, observed features, and who saw what: (camera, point)."""
    camera = np.array([0.1, -0.2, 0.05, 0.3, 0.1, -5.0, 1.2, 0.1, -0.1, 0.02, 0.001])
    i = np.arange(OBSERVATIONS)
    return [
        camera + 0.05 * rng.normal(size=(CAMERAS, CAMERA)),
        rng.normal(size=(POINTS, 3)),
        1 + 0.1 * rng.normal(size=OBSERVATIONS),
        rng.normal(size=(OBSERVATIONS, 2)),
        np.stack([i % CAMERAS, i % POINTS], 1),
    ]


def cross(lib: Any, a: Any, b: Any) -> Any:
    return lib.stack(
        [
            a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1],
            a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2],
            a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0],
        ],
        -1,
    )


def rotated(lib: Any, axis: Any, point: Any) -> Any:
    """Points turned about axes by their lengths (Rodrigues)."""
    square = (axis * axis).sum(-1)[..., None]
    still = square == 0
    angle = lib.sqrt(lib.where(still, 1.0, square))
    unit = axis / angle
    cosine, sine = lib.cos(angle), lib.sin(angle)
    along = (unit * point).sum(-1)[..., None] * (1 - cosine)
    turned = point * cosine + cross(lib, unit, point) * sine + unit * along
    return lib.where(still, point + cross(lib, axis, point), turned)


def projected(lib: Any, camera: Any, point: Any) -> Any:
    seen = rotated(lib, camera[..., :3], point - camera[..., 3:6])
    flat = seen[..., :2] / seen[..., 2:]
    r = (flat * flat).sum(-1)[..., None]
    distorted = flat * (1 + camera[..., 9:10] * r + camera[..., 10:11] * r * r)
    return distorted * camera[..., 6:7] + camera[..., 7:9]


def objective(lib: Any, cameras: Any, points: Any, weights: Any, features: Any, seen: Any) -> Any:
    """The errors of reprojection (p, 2), and those of the weights (p)."""
    found = projected(lib, cameras[seen[:, 0]], points[seen[:, 1]])
    return weights[:, None] * (found - features), 1 - weights * weights


def sparse(lib: Any) -> Any:
    """The Jacobian as a SciPy matrix: rows are errors, columns cameras, points, weights."""
    found = lib.func.jacobian(
        lambda *args: objective(lib, *args), argnums=(0, 1, 2), sparsity="auto"
    )
    return lib.compiled(found)


def blocks(lib: Any) -> Any:
    """The derivatives of every observation's error by its camera, its point and its weight."""

    def error(camera: Any, point: Any, weight: Any, feature: Any) -> Any:
        return weight * (projected(lib, camera, point) - feature)

    each = lib.vmap(lib.jacrev(error, argnums=(0, 1, 2)))

    def jacobian(cameras: Any, points: Any, weights: Any, features: Any, seen: Any) -> Any:
        rows = each(cameras[seen[:, 0]], points[seen[:, 1]], weights, features)
        return (*rows, -2 * weights)

    return lib.compiled(jacobian)


def assembled(lib: Any) -> Any:
    """What `sparse` gives, from the blocks: for libraries that have no sparse Jacobians."""
    from scipy.sparse import csr_array

    derivatives = blocks(lib)

    def jacobian(cameras: Any, points: Any, weights: Any, features: Any, seen: Any) -> Any:
        found = derivatives(cameras, points, weights, features, seen)
        camera, point, weight, regular = map(np.asarray, found)
        who, what = np.asarray(seen).T
        p, n = len(weight), cameras.shape[0]
        i = np.arange(p)
        start, end = CAMERA * n, CAMERA * n + 3 * points.shape[0]
        columns = np.concatenate(
            [
                CAMERA * who[:, None] + np.arange(CAMERA),
                start + 3 * what[:, None] + np.arange(3),
                end + i[:, None],
            ],
            axis=1,
        )
        values = np.concatenate([camera, point, weight[:, :, None]], axis=2)
        width = columns.shape[1]
        columns = np.repeat(columns[:, None], 2, 1).ravel()
        indices = np.concatenate([columns, end + i])
        starts = np.concatenate([width * np.arange(2 * p), 2 * p * width + np.arange(p + 1)])
        return csr_array(
            (np.concatenate([values.ravel(), regular]), indices, starts), shape=(3 * p, end + p)
        )

    return jacobian


def variants(lib: Any) -> dict[str, Any]:
    whole = sparse(lib) if lib.name == "lucid" else assembled(lib)
    return {"ba-blocks": blocks(lib), "ba": whole}
