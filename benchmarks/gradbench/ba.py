"""Bundle adjustment: the sparse Jacobian of reprojection errors by cameras, points and weights.

`ba` is the whole Jacobian as a sparse matrix, which Lucid finds by itself; `ba-blocks` is what
others make it from: the 2 x 15 derivatives of each observation, by vmap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

CAMERAS, POINTS, OBSERVATIONS = 10, 200, 600
CAMERA = 11  # rotation (3), centre (3), focal length, principal point (2), radial distortion (2)


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
    return lib.arrays.func.jacobian(
        lambda *args: objective(lib, *args), argnums=(0, 1, 2), sparsity="auto"
    )


def blocks(lib: Any) -> Any:
    """The derivatives of every observation's error by its camera, its point and its weight."""

    def error(camera: Any, point: Any, weight: Any, feature: Any) -> Any:
        return weight * (projected(lib, camera, point) - feature)

    each = lib.vmap(lib.jacrev(error, argnums=(0, 1, 2)))

    def jacobian(cameras: Any, points: Any, weights: Any, features: Any, seen: Any) -> Any:
        rows = each(cameras[seen[:, 0]], points[seen[:, 1]], weights, features)
        return (*rows, -2 * weights)

    return jacobian


def variants(lib: Any) -> dict[str, Any]:
    return {"ba-blocks": blocks(lib)}
