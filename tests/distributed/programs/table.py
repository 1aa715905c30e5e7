"""Every collective, on this number of ranks, against the same function of one process.

A collective on ranks is a function of all their operands: `one` computes it for the operands
stacked along axis 0, and returns the results stacked the same way.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import lucid
import lucid.distributed as dist
from lucid.func import grad, jvp, vjp, vmap

R, N = dist.rank(), dist.world_size()


class Row(NamedTuple):
    name: str
    ranks: Callable[[Any], Any]  # the operand of this rank -> its result
    one: Callable[[Any], Any]  # the operands of all ranks -> all results
    shape: tuple[int, ...] = (3, 2)
    complex: bool = True


def every(y: Any) -> Any:
    """The same result on every rank."""
    return y.expand((N, *y.shape))


def only(y: Any, root: int) -> Any:
    """The result on one rank, zeros on the others."""
    return lucid.stack([y if r == root else y * 0 for r in range(N)])


def shifted(x: Any, by: int) -> Any:
    return lucid.stack([x[(r - by) % N] for r in range(N)])


def border(x: Any) -> Any:
    return lucid.stack([x[r - 1] if r else x[0] * 0 for r in range(N)])


def pair(x: Any) -> Any:
    """A message from rank 0 to the last rank; others keep what they have."""
    if R == 0:
        return x + dist.send(x * 2, N - 1)
    return dist.recv(x, 0) if R == N - 1 else x


def pair_one(x: Any) -> Any:
    return lucid.stack([*[x[r] for r in range(N - 1)], x[0] * 2])


HALF = N // 2
LOW, HIGH = dist.new_group(range(HALF)), dist.new_group(range(HALF, N))
MINE = LOW if HALF > R else HIGH


def halves(x: Any) -> Any:
    low, high = x[:HALF].sum(dim=0), x[HALF:].sum(dim=0)
    return lucid.stack([low if r < HALF else high for r in range(N)])


LAST = N - 1
ROWS = [
    Row("all_reduce sum", dist.all_reduce, lambda x: every(x.sum(dim=0))),
    Row("all_reduce mean", lambda x: dist.all_reduce(x, "mean"), lambda x: every(x.mean(dim=0))),
    Row("all_reduce max", lambda x: dist.all_reduce(x, "max"), lambda x: every(x.amax(dim=0)),
        complex=False),
    Row("all_reduce min", lambda x: dist.all_reduce(x, "min"), lambda x: every(x.amin(dim=0)),
        complex=False),
    Row("all_reduce prod", lambda x: dist.all_reduce(x, "prod"), lambda x: every(x.prod(dim=0))),
    Row("all_gather", dist.all_gather, every),
    Row("all_gather tiled", lambda x: dist.all_gather(x, 1, tiled=True),
        lambda x: every(lucid.cat([x[r] for r in range(N)], dim=1))),
    Row("reduce_scatter", dist.reduce_scatter, lambda x: x.sum(dim=0), (N, 2)),
    Row("reduce_scatter mean tiled", lambda x: dist.reduce_scatter(x, "mean", 1, tiled=True),
        lambda x: lucid.stack(list(x.mean(dim=0).chunk(N, dim=1))), (2, 2 * N)),
    Row("reduce_scatter max", lambda x: dist.reduce_scatter(x, "max"),
        lambda x: x.amax(dim=0), (N, 2), False),
    Row("reduce_scatter prod", lambda x: dist.reduce_scatter(x, "prod"),
        lambda x: x.prod(dim=0), (N, 2)),
    Row("all_to_all", dist.all_to_all, lambda x: x.transpose(0, 1), (N, 2)),
    Row("broadcast", lambda x: dist.broadcast(x, LAST), lambda x: every(x[LAST])),
    Row("scatter", lambda x: dist.scatter(x, LAST), lambda x: x[LAST], (N, 2)),
    Row("gather", lambda x: dist.gather(x, LAST), lambda x: only(x, LAST)),
    Row("reduce", lambda x: dist.reduce(x, LAST), lambda x: only(x.sum(dim=0), LAST)),
    Row("sendrecv ring", lambda x: dist.sendrecv(x, (R + 1) % N, (R - 1) % N),
        lambda x: shifted(x, 1)),
    Row("sendrecv border", lambda x: dist.sendrecv(x, R + 1 if R < LAST else None,
                                                   R - 1 if R else None), border),
    Row("send and recv", pair, pair_one),
    Row("group", lambda x: dist.all_reduce(x, group=MINE), halves),
]  # fmt: skip
DTYPES = ["float64", "float32", "float16", "complex128", "complex64", "int32", "int64", "uint8"]
REPEAT = 3 if N == 2 else 0  # compiled programs have the rules that two ranks have tested
COMPILED = ["float32", "complex128", "int32"] if N == 2 else ["float64"]
TOLERANCE = {"float16": 4e-3, "float32": 1e-5, "complex64": 1e-5}
rng = np.random.default_rng(7)  # the same numbers on every rank


def operands(shape: tuple[int, ...], dtype: str) -> Any:
    if dtype == "bool":
        return rng.random((N, *shape)) < 0.5
    if np.dtype(dtype).kind in "iu":
        return rng.integers(1, 4, (N, *shape)).astype(dtype)
    x = rng.uniform(0.5, 1.5, (N, *shape))
    return (x + 1j * rng.uniform(-1, 1, x.shape) if "complex" in dtype else x).astype(dtype)


def same(what: str, found: Any, wanted: Any, tolerance: float = 1e-12) -> None:
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape, f"rank {R}: {what}: {found.shape}, not {wanted.shape}"
    assert found.dtype == wanted.dtype, f"rank {R}: {what}: {found.dtype}, not {wanted.dtype}"
    if found.dtype.kind in "biu":
        assert (found == wanted).all(), f"rank {R}: {what}: {found}, not {wanted}"
    else:
        np.testing.assert_allclose(found, wanted, tolerance, tolerance, err_msg=f"{R}: {what}")


def check_values(row: Row) -> None:
    for dtype in [*DTYPES, "bool"]:
        if ("complex" in dtype and not row.complex) or row.name == "send and recv":
            if dtype != "float64":
                continue
        x = operands(row.shape, dtype)
        mine = lucid.tensor(x[R])
        # the sum of float16 is taken in float32, as in NumPy
        wide = lucid.tensor(x.astype("float64") if dtype == "float16" else x)
        wanted = np.asarray(row.one(wide)[R])
        if dtype == "float16":
            wanted = wanted.astype("float16")
        if dtype == "bool" and ("max" in row.name or "min" in row.name):
            continue  # any, all: checked by themselves
        if np.dtype(dtype).kind in "biu" and np.asarray(row.ranks(mine)).dtype != wanted.dtype:
            wanted = wanted.astype(np.asarray(row.ranks(mine)).dtype)
        tolerance = TOLERANCE.get(dtype, 1e-12)
        same(f"{row.name} {dtype}", row.ranks(mine), wanted, tolerance)
        strided = lucid.tensor(np.repeat(x[R], 2, axis=-1))[..., ::2]
        same(f"{row.name} {dtype} strided", row.ranks(strided), wanted, tolerance)
        if dtype in COMPILED:
            f = lucid.jit(row.ranks)
            for _ in range(3):
                same(f"{row.name} {dtype} jit", f(mine), wanted, tolerance)


def check_derivatives(row: Row, dtype: str) -> None:
    x, t, u = operands(row.shape, dtype), operands(row.shape, dtype), None
    y = row.one(lucid.tensor(x))
    u = operands(tuple(y.shape[1:]), dtype)
    mine = [lucid.tensor(v[R]) for v in (x, t, u)]
    whole = [lucid.tensor(v) for v in (x, t, u)]
    _, wanted_t = jvp(row.one, (whole[0],), (whole[1],))
    wanted_ct = vjp(row.one, whole[0])[1](whole[2])
    wanted_ct = wanted_ct[0] if isinstance(wanted_ct, tuple) else wanted_ct

    def forward(x: Any, t: Any) -> Any:
        return jvp(row.ranks, (x,), (t,))[1]

    def backward(x: Any, ct: Any) -> Any:
        found = vjp(row.ranks, x)[1](ct)
        return found[0] if isinstance(found, tuple) else found

    same(f"jvp of {row.name}", forward(mine[0], mine[1]), wanted_t[R])
    same(f"vjp of {row.name}", backward(mine[0], mine[2]), wanted_ct[R])
    for f, given, wanted in ((forward, mine[1], wanted_t), (backward, mine[2], wanted_ct)):
        jitted = lucid.jit(f)
        for _ in range(REPEAT):
            same(f"jit of {f.__name__} of {row.name}", jitted(mine[0], given), wanted[R])
    law(row.name, forward(mine[0], mine[1]), backward(mine[0], mine[2]), mine[1], mine[2])


def law(name: str, jv: Any, jtu: Any, v: Any, u: Any) -> None:
    """<u, Jv> = <Jᵀu, v>, where the inner product is the sum over all ranks."""
    parts = [np.vdot(np.asarray(u), np.asarray(jv)), np.vdot(np.asarray(jtu), np.asarray(v))]
    left, right = (complex(dist.all_reduce(lucid.tensor(p)).item()).real for p in parts)
    assert abs(left - right) <= 1e-11 * max(abs(left), 1), f"{name}: {left} and {right}"


def check_batches(row: Row) -> None:
    x = np.stack([operands(row.shape, "float64") for _ in range(3)])
    wanted = np.stack([np.asarray(row.one(lucid.tensor(xi)))[R] for xi in x])
    mine = lucid.tensor(x[:, R])
    same(f"vmap of {row.name}", vmap(row.ranks)(mine), wanted)
    f = lucid.jit(vmap(row.ranks))
    for _ in range(REPEAT):
        same(f"jit of vmap of {row.name}", f(mine), wanted)
    inner = vmap(lambda x: (row.ranks(x) ** 2).sum())
    found = grad(lambda x: inner(x).sum())(mine)
    wanted = np.stack([grad(lambda v: (row.one(v) ** 2).sum())(lucid.tensor(xi))[R] for xi in x])
    same(f"grad of vmap of {row.name}", found, wanted)


def check_second_order(row: Row) -> None:
    x, t = operands(row.shape, "float64"), operands(row.shape, "float64")
    whole, mine = [lucid.tensor(v) for v in (x, t)], [lucid.tensor(v[R]) for v in (x, t)]
    wave = lambda y: lucid.sin(y * 1.3).sum()  # noqa: E731
    wanted = jvp(grad(lambda x: wave(row.one(x))), (whole[0],), (whole[1],))[1][R]

    def product(x: Any, t: Any) -> Any:
        return jvp(grad(lambda x: wave(row.ranks(x))), (x,), (t,))[1]

    same(f"order two of {row.name}", product(*mine), wanted)
    jitted = lucid.jit(product)
    for _ in range(REPEAT):
        same(f"jit of order two of {row.name}", jitted(*mine), wanted)
    leaf = lucid.tensor(x[R], requires_grad=True)
    wave(row.ranks(leaf)).backward()
    same(f"backward of {row.name}", leaf.grad, grad(lambda x: wave(row.one(x)))(whole[0])[R])


def check_booleans() -> None:
    x = operands((5,), "bool")
    same("any", dist.all_reduce(x[R], "max"), x.any(axis=0))
    same("all", dist.all_reduce(x[R], "min"), x.all(axis=0))
    same("count", dist.all_reduce(x[R]), x.sum(axis=0))


def check_ties_and_nans() -> None:
    x = lucid.tensor([1.0, float(R), 3.0])
    found = grad(lambda x: dist.all_reduce(x, "max").sum())(x)  # of the sum over all ranks
    same("ties", found, np.float32([1.0, N if R == LAST else 0.0, 1.0]))
    broken = lucid.tensor([float("nan") if R == 0 else 1.0])
    assert np.isnan(dist.all_reduce(broken, "max").item())


chosen = [row for row in ROWS if not sys.argv[1:] or row.name in sys.argv[1:]]
for row in chosen:
    check_values(row)
    check_derivatives(row, "float64")
    if row.complex and row.name != "send and recv":
        check_derivatives(row, "complex128")
    check_batches(row)
    check_second_order(row)
check_booleans()
check_ties_and_nans()
empty = dist.all_reduce(lucid.zeros(0, 3))
assert empty.shape == (0, 3)
print(f"done {R}\n", end="", flush=True)
