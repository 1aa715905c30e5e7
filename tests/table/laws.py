"""The laws of public names, as functions of a Row and a Call: only public interfaces are used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import lucid
from lucid.errors import LucidError
from tests.laws import assert_close, backwards, directional_difference, inner, strided
from tests.table.row import Call, Row, arguments_in, arrays_for, filled

RTOL = {"float64": 1e-9, "float32": 2e-5}
SINGLE = {"float64": "float32", "complex128": "complex64"}
STEP, SLOPE = 1e-4, 1e-6
EXAMPLES = 2


def function_of(row: Row) -> Callable[..., Any]:
    found: Any = lucid
    for part in row.name.split("."):
        found = getattr(found, part)
    return found


def apply(row: Row, c: Call, tensors: Sequence[Any]) -> tuple[Any, ...]:
    args, kwargs = filled(c, tensors)
    return row.seen(function_of(row)(*args, **kwargs))


def tensors_of(arrays: Sequence[np.ndarray]) -> list[Any]:
    return [lucid.tensor(x) for x in arrays]


def run(row: Row, c: Call, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [np.asarray(y) for y in apply(row, c, tensors_of(arrays))]


def rtol_of(row: Row, dtype: str) -> float:
    return row.rtol.get(dtype, RTOL[dtype])


def value_is_expected(row: Row, c: Call, dtype: str) -> None:
    """The value and the dtype, in double and in single precision."""
    arrays = arrays_for(c, dtype)
    wide = [x.astype(x.dtype.char.replace("f", "d").replace("F", "D")) for x in arrays]
    with np.errstate(all="ignore"):
        expected = row.expects(c, *filled(c, [x.copy() for x in wide]))
    tensors = tensors_of(arrays)
    actual = [np.asarray(y) for y in apply(row, c, tensors)]
    assert len(actual) == len(expected), f"{len(actual)} results, expected {len(expected)}"
    floating = any(arg.kind in ("real", "complex") and not arg.dtype for arg in arguments_in(c))
    for i, (a, e) in enumerate(zip(actual, expected)):
        if floating:
            wanted = SINGLE.get(e.dtype.name, e.dtype.name) if dtype == "float32" else e.dtype.name
            assert a.dtype.name == wanted, f"result {i} is {a.dtype}, expected {wanted}"
        assert a.dtype.kind == e.dtype.kind, f"result {i} is {a.dtype}, expected {e.dtype}"
        assert_close(a, e, rtol_of(row, dtype), f"result {i} of {row.name}({c}) in {dtype}")


def layout_is_irrelevant(row: Row, c: Call) -> None:
    """Strides of the arguments do not matter, and the arguments are left as they were."""
    arrays = arrays_for(c)
    expected = run(row, c, arrays)
    for layout in (strided, backwards):
        moved = [lucid.from_numpy(layout(x)) for x in arrays]
        for a, e in zip(apply(row, c, moved), expected, strict=True):
            assert_close(a, e, 1e-11, f"{row.name}({c}) of {layout.__name__} arguments")
        if not row.name.endswith("_"):
            for x, before in zip(moved, arrays):
                np.testing.assert_array_equal(np.asarray(x), before)


class Smooth:
    """A call as a function of its floating arguments alone, with floating results alone."""

    def __init__(self, row: Row, c: Call) -> None:
        self.row, self.call = row, c
        self.arrays = arrays_for(c)
        self.wrt = [i for i, x in enumerate(self.arrays) if x.dtype.kind in "fc"]
        self.primals = [self.arrays[i] for i in self.wrt]
        self.args = [arguments_in(c)[i] for i in self.wrt]
        results = run(row, c, self.arrays)
        self.kept = [i for i, y in enumerate(results) if y.dtype.kind in "fc"]
        self.results = [results[i] for i in self.kept]

    def __bool__(self) -> bool:
        return bool(self.wrt and self.kept)

    def __call__(self, *primals: Any) -> tuple[Any, ...]:
        tensors = tensors_of(self.arrays)
        for i, x in zip(self.wrt, primals):
            tensors[i] = x
        results = apply(self.row, self.call, tensors)
        return tuple(results[i] for i in self.kept)

    def directions(self, tangents: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Tangents of the floating arguments, each a direction that it may move in."""
        return [arg.direction(t) for arg, t in zip(self.args, tangents)]

    def on_arrays(self, primals: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [np.asarray(y) for y in self(*tensors_of(primals))]

    def pull(self, *primals_and_cotangents: Any) -> tuple[Any, ...]:
        n = len(self.wrt)
        _, pullback = lucid.func.vjp(self, *primals_and_cotangents[:n])
        return pullback(tuple(primals_and_cotangents[n:]))

    def pull_arrays(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [np.asarray(g) for g in self.pull(*tensors_of(arrays))]


def random_like(arrays: Sequence[np.ndarray], seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    out = []
    for x in arrays:
        values = rng.uniform(-1, 1, x.shape)
        if x.dtype.kind == "c":
            values = values + 1j * rng.uniform(-1, 1, x.shape)
        out.append(np.asarray(values, x.dtype))
    return out


def jvp_is_the_slope(row: Row, c: Call) -> None:
    f = Smooth(row, c)
    if not f:
        return
    tangents = f.directions(random_like(f.primals, 1))
    _, pushed = lucid.func.jvp(f, tuple(tensors_of(f.primals)), tuple(tensors_of(tangents)))
    slopes = directional_difference(f.on_arrays, f.primals, tangents, STEP)
    for a, e in zip(pushed, slopes, strict=True):
        assert_close(a, e, SLOPE, f"jvp of {row.name}({c})")


def vjp_is_the_adjoint_of_jvp(row: Row, c: Call) -> None:
    """<u, Jv> = <Jᵀu, v>."""
    f = Smooth(row, c)
    if not f:
        return
    tangents, cotangents = random_like(f.primals, 1), random_like(f.results, 2)
    _, pushed = lucid.func.jvp(f, tuple(tensors_of(f.primals)), tuple(tensors_of(tangents)))
    pulled = f.pull_arrays([*f.primals, *cotangents])
    for g, x in zip(pulled, f.primals, strict=True):
        assert g.shape == x.shape and g.dtype == x.dtype
    left = inner(cotangents, [np.asarray(t) for t in pushed])
    right = inner(pulled, tangents)
    size = 1 + sum(float(np.abs(np.asarray(t)).sum()) for t in pushed)
    assert abs(left - right) <= 1e-9 * size, f"<u, Jv> = {left}, <Jᵀu, v> = {right}"


def order_two_is_the_slope_of_vjp(row: Row, c: Call) -> None:
    f = Smooth(row, c)
    if not f:
        return
    values = [*f.primals, *random_like(f.results, 2)]
    tangents = random_like(values, 3)
    tangents[: len(f.wrt)] = f.directions(tangents)
    _, pushed = lucid.func.jvp(f.pull, tuple(tensors_of(values)), tuple(tensors_of(tangents)))
    slopes = directional_difference(f.pull_arrays, values, tangents, STEP)
    for a, e in zip(pushed, slopes, strict=True):
        assert_close(a, e, 10 * SLOPE, f"jvp of vjp of {row.name}({c})")


def vmap_is_the_stack_of_a_loop(row: Row, c: Call) -> None:
    """All arguments batched, and each alone."""
    examples = [arrays_for(c, seed=k) for k in range(EXAMPLES)]
    n = len(examples[0])
    subsets = [[True] * n, *([i == j for j in range(n)] for i in range(n) if n > 1)]
    for batched in subsets:
        rows = [[e[i] if batched[i] else examples[0][i] for i in range(n)] for e in examples]
        columns = [np.stack([r[i] for r in rows]) if batched[i] else rows[0][i] for i in range(n)]
        in_dims = tuple(0 if b else None for b in batched)
        mapped = lucid.func.vmap(lambda *xs: apply(row, c, xs), in_dims=in_dims)
        if row.unmapped:
            refuses(lambda m=mapped, cs=columns: m(*tensors_of(cs)), row)
            continue
        looped = [run(row, c, r) for r in rows]
        for i, y in enumerate(mapped(*tensors_of(columns))):
            expected = np.stack([r[i] for r in looped])
            assert np.asarray(y).dtype == expected.dtype
            assert_close(y, expected, 1e-9, f"vmap of {row.name}({c}), batched: {batched}")


def refuses(run_it: Callable[[], Any], row: Row) -> None:
    try:
        run_it()
    except LucidError:
        return
    raise AssertionError(f"vmap of {row.name} was to be refused ({row.unmapped}) and was not")


def jit_is_eager(row: Row, c: Call) -> None:
    """The value and the gradient, compiled as one program, are those of eager mode."""
    arrays = arrays_for(c)
    f = Smooth(row, c)

    def value_and_pullback(tensors: Any, seeds: Any) -> Any:
        value = apply(row, c, tensors)
        if not (f and row.is_smooth(c)):
            return value
        return value, f.pull(*[tensors[i] for i in f.wrt], *seeds)

    seeds = random_like(f.results, 2)
    given = (tensors_of(arrays), tensors_of(seeds))
    eager = lucid.ir.pytree.flatten(value_and_pullback(*given))[0]
    compiled = lucid.jit(value_and_pullback)
    compiled(*given)  # recorded: an eager run
    jitted = lucid.ir.pytree.flatten(compiled(*given))[0]
    for a, e in zip(jitted, eager, strict=True):
        assert np.asarray(a).dtype == np.asarray(e).dtype
        single = np.asarray(e).dtype in (np.float32, np.complex64)
        rtol = rtol_of(row, "float32" if single else "float64")
        assert_close(a, e, rtol, f"jit of {row.name}({c})")


def refusal_is_clear(row: Row, refused: Any) -> None:
    """Bad input raises the error that the row names, which is Lucid's own."""
    try:
        apply(row, refused.call, tensors_of(arrays_for(refused.call)))
    except LucidError as error:
        assert type(error) is refused.error, f"{type(error).__name__}: {error}"
        for part in refused.parts:
            assert part in str(error), f"{part!r} is not in {str(error)!r}"
    else:
        raise AssertionError(f"{row.name}({refused.call}) was not refused")
