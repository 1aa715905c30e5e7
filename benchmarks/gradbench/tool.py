"""Lucid as a tool of GradBench: its protocol on stdin and stdout, a line of JSON a message.

    python -m benchmarks.gradbench.tool

An eval sends messages of the kinds start, define, evaluate and analysis, and each is answered under
its id. `define` succeeds for the modules in FUNCTIONS; `evaluate` runs a function on its input at
least `min_runs` times and `min_seconds` long, and answers with the output and the time of each run.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from benchmarks.gradbench import det, gmm, kmeans, llsq, lse, lstm, ode, particle, saddle
from benchmarks.gradbench.libraries import LIBRARIES

Prepared = Callable[[], Any]
Input = dict[str, Any]


def numbers(lib: Any, *values: Any) -> list[Any]:
    return [lib.array(np.asarray(x, np.float64)) for x in values]


def value_or_gradient(
    name: str, arguments: Callable[[Any, Input], list[Any]], argnums: Any = 0
) -> dict[str, Callable[..., Prepared]]:
    """A module's function and its gradient under GradBench's names: `name` is the function's."""
    derivative = {"primal": "gradient", "objective": "jacobian"}[name]

    def prepare(lib: Any, objective: Any, given: Input, differentiates: bool) -> Prepared:
        xs, rest = arguments(lib, given)

        def f(*xs: Any) -> Any:
            return objective(lib, *xs, *rest)

        compiled = lib.compiled(lib.grad(f, argnums=argnums) if differentiates else f)
        return lambda: compiled(*xs)

    return {
        name: lambda lib, objective, given: prepare(lib, objective, given, False),
        derivative: lambda lib, objective, given: prepare(lib, objective, given, True),
    }


def gmm_arguments(lib: Any, given: Input) -> list[Any]:
    xs = numbers(lib, given["alpha"], given["mu"], given["q"], given["l"])
    return [xs, [*numbers(lib, given["x"]), given["gamma"], given["m"]]]


def lstm_arguments(lib: Any, given: Input) -> list[Any]:
    names = ("main_params", "extra_params", "state", "sequence")
    main, extra, state, sequence = numbers(lib, *[given[name] for name in names])
    return [[main, extra], [state, sequence]]


def matrix(lib: Any, given: Input) -> list[Any]:
    n = int(given["ell"])
    return [numbers(lib, np.reshape(given["A"], (n, n))), []]


def last_of_ode(lib: Any, x: Any, steps: int) -> Any:
    return ode.objective(lib, x, steps)[-1]


def direction(lib: Any, given: Input) -> Prepared:
    centers, points = numbers(lib, given["centroids"], given["points"])
    compiled = lib.compiled(kmeans.direction(lib))
    return lambda: compiled(centers, points)


def cost(lib: Any, given: Input) -> Prepared:
    centers, points = numbers(lib, given["centroids"], given["points"])
    compiled = lib.compiled(lambda c, p: kmeans.objective(lib, c, p))
    return lambda: compiled(centers, points)


def descents(module: Any, prefix: str, read: Callable[[Input], Any]) -> dict[str, Any]:
    """The four modes of a descent inside another; `read` gives its start."""

    def prepare(mode: str) -> Callable[[Any, Input], Prepared]:
        def run(lib: Any, given: Input) -> Prepared:
            (start,) = numbers(lib, read(given))
            f = module.variants(lib)[f"{prefix}-{mode}"]
            return lambda: f(start)

        return run

    return {mode: prepare(mode) for mode in ("ff", "fr", "rf", "rr")}


def hello(f: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Prepared]:
    def prepare(lib: Any, given: Any) -> Prepared:
        (x,) = numbers(lib, given)
        compiled = lib.compiled(lambda x: f(lib, x))
        return lambda: compiled(x)

    return prepare


def with_objective(objective: Any, functions: dict[str, Any]) -> dict[str, Any]:
    """Functions of (lib, input), from those that take the objective between the two."""

    def bound(prepare: Any) -> Callable[[Any, Input], Prepared]:
        return lambda lib, given: prepare(lib, objective, given)

    return {name: bound(prepare) for name, prepare in functions.items()}


def functions_of_ode() -> dict[str, Any]:
    def arguments(lib: Any, given: Input) -> list[Any]:
        return [numbers(lib, given["x"]), [int(given["s"])]]

    both = value_or_gradient("primal", arguments)
    return {
        **with_objective(ode.objective, {"primal": both["primal"]}),
        **with_objective(last_of_ode, {"gradient": both["gradient"]}),
    }


FUNCTIONS: dict[str, dict[str, Callable[[Any, Any], Prepared]]] = {
    "hello": {
        "square": hello(lambda lib, x: x * x),
        "double": hello(lambda lib, x: lib.grad(lambda x: x * x)(x)),
    },
    "det": with_objective(det.objective, value_or_gradient("primal", matrix)),
    "gmm": with_objective(
        gmm.objective, value_or_gradient("objective", gmm_arguments, (0, 1, 2, 3))
    ),
    "kmeans": {"cost": cost, "dir": direction},
    "llsq": with_objective(
        llsq.objective,
        value_or_gradient("primal", lambda lib, g: [numbers(lib, g["x"]), [int(g["n"])]]),
    ),
    "lse": with_objective(
        lse.objective, value_or_gradient("primal", lambda lib, g: [numbers(lib, g["x"]), []])
    ),
    "lstm": with_objective(lstm.objective, value_or_gradient("objective", lstm_arguments, (0, 1))),
    "ode": functions_of_ode(),
    "particle": descents(particle, "particle", lambda g: [g["w"]]),
    "saddle": descents(saddle, "saddle", lambda g: g["start"]),
}


def as_json(module: str, function: str, result: Any) -> Any:
    """A result in the form that the eval of a module expects."""
    if isinstance(result, tuple | list):
        parts = [np.asarray(x.numpy()) for x in result]
        if module == "gmm":
            return {name: x.tolist() for name, x in zip(("alpha", "mu", "q", "l"), parts)}
        return np.concatenate([x.ravel() for x in parts]).tolist()
    array = np.asarray(result.numpy())
    if module == "particle":
        return float(array.ravel()[0])
    return array.ravel().tolist() if module == "det" and array.ndim else array.tolist()


def evaluate(lib: Any, message: Input) -> Input:
    module, function, given = message["module"], message["function"], message["input"]
    call = FUNCTIONS[module][function](lib, given)
    limits = given if isinstance(given, dict) else {}
    runs, seconds = limits.get("min_runs", 1), limits.get("min_seconds", 0.0)
    timings, elapsed, result = [], 0, None
    while len(timings) < max(runs, 1) or elapsed < 1e9 * seconds:
        begin = time.perf_counter_ns()
        result = call()
        spent = time.perf_counter_ns() - begin
        elapsed += spent
        timings.append({"name": "evaluate", "nanoseconds": spent})
    return {"success": True, "output": as_json(module, function, result), "timings": timings}


def answer(lib: Any, message: Input) -> Input:
    """The response to a message, without its id."""
    match message["kind"]:
        case "start":
            return {"tool": "lucid"}
        case "define":
            known = message["module"] in FUNCTIONS
            error = f"no module {message['module']!r}; there are {', '.join(FUNCTIONS)}"
            return {"success": True} if known else {"success": False, "error": error}
        case "evaluate":
            try:
                return evaluate(lib, message)
            except Exception as error:
                lines = traceback.format_exception_only(error)
                return {"success": False, "error": "".join(lines).strip()}
    return {}


def serve(source: IO[str], sink: IO[str]) -> None:
    lib = LIBRARIES["lucid"]()
    for line in source:
        message = json.loads(line)
        print(json.dumps({"id": message["id"], **answer(lib, message)}), file=sink, flush=True)


if __name__ == "__main__":
    serve(sys.stdin, sys.stdout)
