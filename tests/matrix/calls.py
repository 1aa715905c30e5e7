"""Calls of transforms, loops, windows and keyed draws, with what a formula or SciPy gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.signal.windows as scipy_windows

import lucid
from lucid import autograd, func
from lucid.random import fold_in, key, split
from lucid.signal import windows

X = np.array([0.3, -1.2, 2.0])
Y = np.array([1.5, 0.4, -0.7])


class Use(NamedTuple):
    """A call: its public name, the keywords that it passes, the call, and its value by NumPy."""

    name: str
    keywords: tuple[str, ...]
    run: Callable[..., Any]
    expected: Callable[..., Any] | None = None

    def __str__(self) -> str:
        return f"{self.name}({','.join(self.keywords)})"


def f(x: Any, y: Any) -> Any:
    return (lucid.sin(x) * x * y).sum()


def g(x: Any, y: Any) -> Any:
    return lucid.sin(x) * y


def df(x: Any, y: Any) -> Any:
    return (np.cos(x) * x + np.sin(x)) * y


def in_y(x: Any, y: Any) -> Any:
    return np.sin(x) * x


def value(x: Any, y: Any) -> Any:
    return np.sum(np.sin(x) * x * y)


def with_aux(h: Any) -> Any:
    return lambda x, y: (h(x, y), x * 2)


def bend(x: Any, y: Any) -> Any:
    return np.diag((2 * np.cos(x) - x * np.sin(x)) * y)


def slope(x: Any, y: Any) -> Any:
    return np.diag(np.cos(x) * y)


def derivatives() -> list[Use]:
    found = [
        Use("func.grad", (), lambda x, y: func.grad(f)(x, y), df),
        Use("func.grad", ("argnums",), lambda x, y: func.grad(f, argnums=1)(x, y), in_y),
        Use("func.grad", ("has_aux",), lambda x, y: func.grad(with_aux(f), has_aux=True)(x, y),
            lambda x, y: (df(x, y), 2 * x)),
        Use("func.hvp", ("tangents",), lambda x, y: func.hvp(lambda v: f(v, y), (x,), (y,)),
            lambda x, y: bend(x, y) @ y),
        Use("func.jvp", ("tangents",), lambda x, y: func.jvp(f, (x, y), (y, x)),
            lambda x, y: (value(x, y), df(x, y) @ y + in_y(x, y) @ x)),
        Use("func.jvp", ("has_aux",), lambda x, y: func.jvp(with_aux(f), (x, y), (y, x),
                                                            has_aux=True)[1],
            lambda x, y: df(x, y) @ y + in_y(x, y) @ x),
        Use("func.vjp", (), lambda x, y: func.vjp(g, x, y)[1](y),
            lambda x, y: (np.cos(x) * y * y, np.sin(x) * y)),
        Use("func.vjp", ("has_aux",), lambda x, y: func.vjp(with_aux(g), x, y, has_aux=True)[1](y),
            lambda x, y: (np.cos(x) * y * y, np.sin(x) * y)),
        Use("func.linearize", (), lambda x, y: func.linearize(lambda v: g(v, y), x)[1](y),
            lambda x, y: np.cos(x) * y * y),
        Use("func.linearize", ("has_aux",), lambda x, y: func.linearize(
            lambda v: (g(v, y), v), x, has_aux=True)[1](y), lambda x, y: np.cos(x) * y * y),
        Use("func.linear_transpose", (), lambda x, y: func.linear_transpose(
            lambda v: v * y + v.sum(), x)(x), lambda x, y: x * y + x.sum()),
        Use("func.stop_gradient", (), lambda x, y: func.grad(
            lambda v: (func.stop_gradient(v) * v * y).sum())(x), lambda x, y: x * y),
        Use("func.checkpoint", (), lambda x, y: func.grad(func.checkpoint(f))(x, y), df),
        Use("func.checkpoint", ("policy",), lambda x, y: func.grad(func.checkpoint(
            lambda v, w: f(func.checkpoint_name(v, "v"), w), policy=["v"]))(x, y), df),
        Use("func.checkpoint_name", ("name",), lambda x, y: func.checkpoint_name(x, name="n") * y,
            lambda x, y: x * y),
    ]  # fmt: skip
    for name in ("value_and_grad", "grad_and_value"):
        h = getattr(func, name)
        turn = (lambda a, b: (a, b)) if name == "value_and_grad" else (lambda a, b: (b, a))
        found += [
            Use(f"func.{name}", ("argnums",), lambda x, y, h=h: h(f, argnums=1)(x, y),
                lambda x, y, turn=turn: turn(value(x, y), in_y(x, y))),
            Use(f"func.{name}", ("has_aux",), lambda x, y, h=h: h(with_aux(f), has_aux=True)(x, y),
                lambda x, y, turn=turn: turn((value(x, y), 2 * x), df(x, y))
                if turn(0, 1) == (0, 1) else (df(x, y), (value(x, y), 2 * x))),
        ]  # fmt: skip
    for name in ("jacfwd", "jacrev", "jacobian"):
        h = getattr(func, name)
        found += [
            Use(f"func.{name}", ("chunk_size",), lambda x, y, h=h: h(g, chunk_size=2)(x, y), slope),
            Use(f"func.{name}", ("argnums",), lambda x, y, h=h: h(g, argnums=1)(x, y),
                lambda x, y: np.diag(np.sin(x))),
            Use(f"func.{name}", ("has_aux",), lambda x, y, h=h: h(with_aux(g), has_aux=True)(x, y),
                lambda x, y: (slope(x, y), 2 * x)),
        ]  # fmt: skip
    return [
        *found,
        Use("func.hessian", ("chunk_size",), lambda x, y: func.hessian(f, chunk_size=2)(x, y),
            bend),
        Use("func.hessian", ("argnums",), lambda x, y: func.hessian(f, argnums=1)(x, y),
            lambda x, y: np.zeros((3, 3))),
        Use("func.hessian", ("has_aux",), lambda x, y: func.hessian(with_aux(f), has_aux=True)(
            x, y), lambda x, y: (bend(x, y), 2 * x)),
    ]  # fmt: skip


def loops() -> list[Use]:
    def step(c: Any, v: Any) -> Any:
        return c * 0.5 + v, c * v

    def scanned(xs: Any, backward: bool = False) -> Any:
        c, ys = 0.0, []
        for v in xs[::-1] if backward else xs:
            c, out = c * 0.5 + v, c * v
            ys.append(out)
        return c, np.array(ys[::-1] if backward else ys)

    zero = 0.0
    return [
        Use("func.scan", ("unroll",), lambda x, y: func.scan(step, x[0] * zero, x, unroll=2),
            lambda x, y: scanned(x)),
        Use("func.scan", ("reverse",), lambda x, y: func.scan(step, x[0] * zero, x, reverse=True),
            lambda x, y: scanned(x, True)),
        Use("func.scan", ("length",), lambda x, y: func.scan(
            lambda c, _: (c * y, c), x, None, length=3)[0], lambda x, y: x * y**3),
        Use("func.map", ("batch_size",), lambda x, y: func.map(lambda v: v * y, x, batch_size=2),
            lambda x, y: np.outer(x, y)),
        Use("func.fori_loop", (), lambda x, y: func.fori_loop(0, 3, lambda i, c: c * y + i, x),
            lambda x, y: ((x * y) * y + 1) * y + 2),
        Use("func.while_loop", (), lambda x, y: func.while_loop(
            lambda c: c[1] < 4, lambda c: (c[0] * y, c[1] + 1), (x, x.sum() * zero))[0],
            lambda x, y: x * y**4),
        Use("func.cond", (), lambda x, y: func.cond(x[0] > 0, lambda v: v * 2, lambda v: -v, y),
            lambda x, y: y * 2 if x[0] > 0 else -y),
        Use("func.switch", (), lambda x, y: func.switch(
            (x[0] > 0).to("int64"), [lambda v: v * 2, lambda v: -v], y),
            lambda x, y: -y if x[0] > 0 else y * 2),
        Use("func.associative_scan", ("reverse", "axis"), lambda x, y: func.associative_scan(
            lambda a, b: a * b, lucid.stack([x, y]), reverse=True, axis=1),
            lambda x, y: np.cumprod(np.stack([x, y])[:, ::-1], 1)[:, ::-1]),
        Use("func.vmap", ("in_dims", "out_dims", "chunk_size"), lambda x, y: func.vmap(
            lambda v: v * y, in_dims=0, out_dims=1, chunk_size=2)(x),
            lambda x, y: np.outer(x, y).T),
        Use("func.vmap", ("in_axes", "out_axes"), lambda x, y: func.vmap(
            lambda v, w: v * w, in_axes=(0, None), out_axes=1)(x, y),
            lambda x, y: np.outer(x, y).T),
        Use("func.vmap", ("axis_name", "axis_size"), lambda x, y: func.vmap(
            lambda v: v / func.psum(v, "i"), axis_name="i", axis_size=3)(x),
            lambda x, y: x / x.sum()),
        Use("func.vectorize", ("signature",), lambda x, y: func.vectorize(
            lambda v, w: (v * w).sum(), signature="(n),(n)->()")(x, y), lambda x, y: x @ y),
        Use("func.vectorize", ("excluded",), lambda x, y: func.vectorize(
            lambda v, n: v * n, excluded={1})(x, 3.0), lambda x, y: x * 3),
        Use("func.root", ("tol", "max_steps"), lambda x, y: func.root(
            lambda v: v**3 + v - x, x * zero, tol=1e-14, max_steps=60),
            lambda x, y: np.array([np.real(r[np.isreal(r)][0]) for r in
                                   [np.roots([1, 0, 1, -k]) for k in x]])),
        Use("func.linear_solve", ("symmetric", "tol", "max_steps"), lambda x, y: func.linear_solve(
            lambda v: v * (2 + y * y) + v.sum(), x, symmetric=True, tol=1e-13, max_steps=50),
            lambda x, y: np.linalg.solve(np.diag(2 + y * y) + 1, x)),
        Use("func.odeint", ("rtol", "atol", "max_steps"), lambda x, y: func.odeint(
            lambda s, t: -s * 0.5, x, lucid.tensor([0.0, 1.0]), rtol=1e-11, atol=1e-12,
            max_steps=500)[-1],
            lambda x, y: x * np.exp(-0.5)),
    ]  # fmt: skip


def of_autograd() -> list[Use]:
    a = autograd.functional
    more = {"create_graph": True, "strict": False}
    names = tuple(more)
    return [
        Use("autograd.functional.jacobian", (*names, "vectorize"), lambda x, y: a.jacobian(
            lambda v: g(v, y), x, vectorize=True, **more), slope),
        Use("autograd.functional.jacobian", ("vectorize", "strategy"), lambda x, y: a.jacobian(
            lambda v: g(v, y), x, vectorize=True, strategy="forward-mode"), slope),
        Use("autograd.functional.hessian", (*names, "vectorize"), lambda x, y: a.hessian(
            lambda v: f(v, y), x, vectorize=True, **more), bend),
        Use("autograd.functional.hessian", ("vectorize", "outer_jacobian_strategy"),
            lambda x, y: a.hessian(lambda v: f(v, y), x, vectorize=True,
                                   outer_jacobian_strategy="forward-mode"), bend),
        Use("autograd.functional.vjp", ("v", *names), lambda x, y: a.vjp(
            lambda v: g(v, y), x, v=y, **more)[1], lambda x, y: np.cos(x) * y * y),
        Use("autograd.functional.jvp", ("v", *names), lambda x, y: a.jvp(
            lambda v: g(v, y), x, v=y, **more)[1], lambda x, y: np.cos(x) * y * y),
        Use("autograd.functional.hvp", ("v", *names), lambda x, y: a.hvp(
            lambda v: f(v, y), x, v=y, **more)[1], lambda x, y: bend(x, y) @ y),
        Use("autograd.functional.vhp", ("v", *names), lambda x, y: a.vhp(
            lambda v: f(v, y), x, v=y, **more)[1], lambda x, y: bend(x, y) @ y),
    ]  # fmt: skip


WINDOWS: dict[str, dict[str, Any]] = {
    "bartlett": {}, "blackman": {}, "cosine": {}, "hamming": {}, "hann": {}, "nuttall": {},
    "exponential": {"tau": 2.0}, "gaussian": {"std": 1.3}, "general_cosine": {"a": [0.5, 0.3]},
    "general_hamming": {"alpha": 0.6}, "kaiser": {"beta": 9.0},
}  # fmt: skip


def of_signal() -> list[Use]:
    found = []
    for name, more in WINDOWS.items():
        for sym in (True, False):
            given = {**more, "sym": sym}
            if name == "exponential" and not sym:
                given["center"] = 1.0
            theirs = {k: x for k, x in given.items() if k != "center"}
            theirs |= {"center": 1.0} if "center" in given else {}
            own, other = getattr(windows, name), getattr(scipy_windows, name)
            found.append(
                Use(f"signal.windows.{name}", tuple(given),
                    lambda x, y, own=own, given=given: x * own(3, **given, dtype="float64"),
                    lambda x, y, other=other, theirs=theirs: x * other(3, **theirs))
            )  # fmt: skip
    return found


def of_keys() -> list[Use]:
    """Draws of a key: the same ones in every setting."""
    r = lucid.random

    def made(name: str, keywords: tuple[str, ...], draw: Callable[[], Any]) -> Use:
        return Use(f"random.{name}", keywords, lambda x, y: x * draw())

    return [
        made("uniform", ("key", "shape", "low", "high"), lambda: r.uniform(key(3), (3,), 1.0, 2.0)),
        made("keyed_normal", ("key", "shape"), lambda: r.keyed_normal(key(3), (3,))),
        made("keyed_bernoulli", ("key", "p", "shape"), lambda: r.keyed_bernoulli(
            key(3), 0.3, (3,))),
        made("permutation", ("key", "n"), lambda: r.permutation(key(3), 3)),
        made("split", ("key", "n"), lambda: r.uniform(split(key(3), 2)[1], (3,))),
        made("fold_in", ("key", "data"), lambda: r.uniform(fold_in(key(3), 7), (3,))),
        *[
            made(name, (*list(inspect.signature(getattr(r, name)).parameters)[: len(args)], "size",
                        "key"), lambda name=name, args=args: getattr(r, name)(
                *args, size=(3,), key=key(5)))
            for name, args in {
                "beta": (0.7, 1.5), "cauchy": (0.5, 2.0), "exponential": (1.5,),
                "gamma": (0.7, 1.5), "geometric": (0.3,), "gumbel": (0.5, 2.0),
                "laplace": (0.5, 2.0), "log_normal": (0.5, 2.0), "poisson": (3.0,),
                "binomial": (9, 0.3), "truncated_normal": (0.5, 2.0, -1.0, 1.0),
            }.items()
        ],
    ]  # fmt: skip


def table() -> list[Use]:
    return [*derivatives(), *loops(), *of_autograd(), *of_signal(), *of_keys()]
