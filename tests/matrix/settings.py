"""The settings of a call: where its tensors come from, and what runs it.

A setting is a function of a form and of arrays that returns the results, or several of them: one
for each set of arrays. A form that writes gets a tensor that may be written; the settings check
that the write is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import lucid
from lucid.nn import Parameter
from tests.matrix.forms import Form
from tests.table.row import Call, Row, arrays_for, parts_of

Arrays = Sequence[np.ndarray]


def values(row: Row, result: Any) -> list[np.ndarray]:
    """The parts of a result that are compared, as arrays that no later write changes."""
    parts = [y.detach() if isinstance(y, lucid.Tensor) else y for y in row.seen(result)]
    return [np.array(y) for y in parts]


def run(form: Form, tensors: Sequence[Any]) -> Any:
    """Run a form from the same random state, and hold a write to what it promises."""
    lucid.manual_seed(0)
    result = form.run(tensors)
    if form.writes:
        assert result is tensors[0], f"{form.name} does not return the tensor that it writes"
    return result


def is_float(x: np.ndarray) -> bool:
    return x.dtype.kind in "fc"


def plain(row: Row, form: Form, arrays: Arrays) -> list[np.ndarray]:
    return values(row, run(form, [lucid.tensor(x) for x in arrays]))


def leaves(arrays: Arrays) -> list[Any]:
    return [lucid.tensor(x, requires_grad=is_float(x)) for x in arrays]


def parameters(arrays: Arrays) -> list[Any]:
    return [Parameter(lucid.tensor(x)) if is_float(x) else lucid.tensor(x) for x in arrays]


def under_no_grad(row: Row, form: Form, tensors: Sequence[Any]) -> list[np.ndarray]:
    """Leaves may be written, and results have no history unless they are the leaves themselves."""
    with lucid.no_grad():
        result = run(form, tensors)
    for y in parts_of(result):
        if isinstance(y, lucid.Tensor) and y.requires_grad:
            assert any(y is x for x in tensors) or "requires_grad" in form.keywords
    return values(row, result)


def no_grad(row: Row, form: Form, arrays: Arrays) -> list[np.ndarray]:
    return under_no_grad(row, form, leaves(arrays))


def parameter(row: Row, form: Form, arrays: Arrays) -> list[np.ndarray]:
    """Parameters: written under no_grad as an optimizer does it, else as they are."""
    if form.writes:
        return under_no_grad(row, form, parameters(arrays))
    return values(row, run(form, parameters(arrays)))


def view(row: Row, form: Form, arrays: Arrays) -> list[np.ndarray]:
    """Every tensor is a part of a larger one, which sees writes to it and nothing else."""
    bases = [lucid.tensor(np.stack([x, x, x], -1)) for x in arrays]
    result = run(form, [base[..., 1] for base in bases])
    for i, (base, x) in enumerate(zip(bases, arrays)):
        inner = result if form.writes and i == 0 else x
        np.testing.assert_array_equal(base[..., 1], inner)
        np.testing.assert_array_equal(base[..., 0], x)
    return values(row, result)


def gradients(row: Row, form: Form, arrays: Arrays) -> list[np.ndarray]:
    """The results, and the gradients of a weighted sum of them, tracked by leaves."""
    tensors = leaves(arrays)
    given = [x * 1 if x.requires_grad and form.writes else x for x in tensors]
    result = run(form, given)
    total: Any = 0.0
    for i, part in enumerate(parts_of(result)):
        if isinstance(part, lucid.Tensor) and part.requires_grad and part.numel():
            part = part.real + 2 * part.imag if part.dtype.kind == "c" else part
            weights = np.cos(np.arange(part.numel()) + i).reshape(part.shape)
            total = total + (part * lucid.tensor(weights)).sum()
    if isinstance(total, lucid.Tensor):
        total.backward()
    slopes = [np.zeros_like(x) if t.grad is None else t.grad.numpy().copy()
              for t, x in zip(tensors, arrays) if is_float(x)]  # fmt: skip
    return [*values(row, result), *slopes]


def jitted(row: Row, forms: Sequence[Form], examples: Sequence[Arrays]) -> list[list[Any]]:
    """All forms as one program, called with each set of arrays: results by call and form."""

    def program(*tensors: Any) -> list[Any]:
        return [run(f, [x.clone() for x in tensors] if f.writes else tensors) for f in forms]

    compiled = lucid.jit(program)
    return [
        [values(row, y) for y in compiled(*[lucid.tensor(x) for x in arrays])]
        for arrays in examples
    ]


def mapped(row: Row, form: Form, examples: Sequence[Arrays]) -> list[np.ndarray]:
    """The results of all examples, batched."""

    def f(*tensors: Any) -> tuple[Any, ...]:
        given = [x.clone() for x in tensors] if form.writes else tensors
        return row.seen(run(form, given))

    stacked = [lucid.tensor(np.stack(xs)) for xs in zip(*examples)]
    return [np.asarray(y.detach()) for y in lucid.func.vmap(f)(*stacked)]


EAGER: dict[str, Callable[..., list[np.ndarray]]] = {
    "plain": plain, "requires_grad": gradients, "no_grad": no_grad,
    "parameter": parameter, "view": view,
}  # fmt: skip


def examples_of(c: Call, count: int) -> list[list[np.ndarray]]:
    return [arrays_for(c, seed=k) for k in range(count)]
