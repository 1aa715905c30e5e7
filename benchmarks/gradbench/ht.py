"""Hand tracking: the Jacobian of distances between points and a hand of bones and skin.

`ht-simple` is by the 26 parameters of the pose; `ht` by the places on the triangles too: two more
directions, since each point has a place of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BONES, VERTICES, TRIANGLES, POINTS = 22, 200, 100, 60
POSE = 26  # rotation (3), translation (3), 4 angles for each of 5 fingers


def data(rng: np.random.Generator) -> list[Any]:
    """theta and us, which are differentiated, and the model as arrays."""
    relatives = np.tile(np.eye(4), (BONES, 1, 1))
    relatives[:, :3, :3] = np.linalg.qr(rng.normal(size=(BONES, 3, 3)))[0]
    relatives[:, :3, 3] = rng.normal(size=(BONES, 3)) / 5
    weights = rng.uniform(size=(BONES, VERTICES))
    return [
        rng.normal(size=POSE) / 3,
        rng.uniform(size=(POINTS, 2)) / 2,
        relatives,
        np.linalg.inv(np_absolutes(relatives)),
        np.concatenate([rng.normal(size=(3, VERTICES)), np.ones((1, VERTICES))]),
        weights / weights.sum(0),
        rng.integers(0, VERTICES, size=(POINTS, 3)),
        rng.normal(size=(POINTS, 3)),
    ]


def parent(bone: int) -> int:
    """The wrist is 0; then five fingers of four bones; the forearm is last."""
    return -1 if bone == 0 else 0 if bone % 4 == 1 else bone - 1


def np_absolutes(relatives: np.ndarray) -> np.ndarray:
    found: list[np.ndarray] = []
    for bone, own in enumerate(relatives):
        found.append(own if parent(bone) < 0 else found[parent(bone)] @ own)
    return np.stack(found)


def angles(lib: Any, theta: Any) -> Any:
    """Three angles for every bone: the last three of a finger bend, the first of these sideways."""
    place = np.full((BONES, 3), POSE)
    for finger in range(5):
        first, bone = 6 + 4 * finger, 2 + 4 * finger
        place[bone, :2] = first, first + 1
        place[bone + 1, 0], place[bone + 2, 0] = first + 2, first + 3
    padded = lib.concatenate([theta, lib.zeros((1,), dtype=theta.dtype)])
    return padded[lib.array(place.ravel())].reshape(BONES, 3)


def matrices(lib: Any, rows: list[list[Any]]) -> Any:
    return lib.stack([lib.stack(row, -1) for row in rows], -2)


def euler(lib: Any, xzy: Any) -> Any:
    """Rz Ry Rx for rows of angles, as 4 x 4 matrices."""
    (sx, sz, sy), (cx, cz, cy) = ([f(xzy[:, i]) for i in range(3)] for f in (lib.sin, lib.cos))
    one, zero = lib.ones_like(sx), lib.zeros_like(sx)
    return matrices(
        lib,
        [
            [cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx, zero],
            [sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx, zero],
            [-sy, cy * sx, cy * cx, zero],
            [zero, zero, zero, one],
        ],
    )


def rotation(lib: Any, axis: Any) -> Any:
    """The matrix that turns about an axis by its length."""
    angle = lib.sqrt((axis * axis).sum())
    x, y, z = (axis[i] / angle for i in range(3))
    s, c = lib.sin(angle), lib.cos(angle)
    u = 1 - c
    return matrices(
        lib,
        [
            [x * x * u + c, x * y * u - z * s, x * z * u + y * s],
            [x * y * u + z * s, y * y * u + c, y * z * u - x * s],
            [x * z * u - y * s, y * z * u + x * s, z * z * u + c],
        ],
    )


def skin(lib: Any, theta: Any, relatives: Any, inverses: Any, positions: Any, weights: Any) -> Any:
    """Where the vertices are, (3, n): each goes with its bones by its weights."""
    posed = relatives @ euler(lib, angles(lib, theta))
    absolutes: list[Any] = []
    for bone in range(BONES):
        own = posed[bone]
        absolutes.append(own if parent(bone) < 0 else absolutes[parent(bone)] @ own)
    transforms = lib.stack(absolutes) @ inverses
    moved = ((transforms @ positions)[:, :3] * weights[:, None, :]).sum(0)
    return rotation(lib, theta[:3]) @ moved + theta[3:6][:, None]


def objective(
    lib: Any, theta: Any, us: Any, relatives: Any, inverses: Any, positions: Any, weights: Any,
    corners: Any, points: Any,
) -> Any:  # fmt: skip
    """(points, 3): the measured points less those at `us` on their triangles (None: a corner)."""
    vertices = skin(lib, theta, relatives, inverses, positions, weights).T
    a = vertices[corners[:, 0]]
    if us is None:
        return points - a
    b, c = vertices[corners[:, 1]], vertices[corners[:, 2]]
    u, v = us[:, :1], us[:, 1:]
    return points - (u * a + v * b + (1 - u - v) * c)


def simple(lib: Any) -> Any:
    def jacobian(theta: Any, us: Any, *model: Any) -> Any:
        return lib.jacfwd(lambda t: objective(lib, t, None, *model))(theta)

    return jacobian


def compressed(lib: Any) -> Any:
    """Two columns for `us` (each point's own), then those of theta: (28, points, 3)."""

    def jacobian(theta: Any, us: Any, *model: Any) -> Any:
        def push(t: Any, u: Any) -> Any:
            return lib.jvp(lambda *xs: objective(lib, *xs, *model), (theta, us), (t, u))[1]

        pose = np.concatenate([np.zeros((2, POSE)), np.eye(POSE)])
        places = np.zeros((2 + POSE, POINTS, 2))
        places[0, :, 0] = places[1, :, 1] = 1
        return lib.vmap(push)(lib.array(pose), lib.array(places))

    return jacobian


def variants(lib: Any) -> dict[str, Any]:
    return {"ht-simple": lib.compiled(simple(lib)), "ht": lib.compiled(compressed(lib))}
