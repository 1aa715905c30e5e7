"""The table against PyTorch: the same calls, forward, vjp and jvp.

`python -m tests.table.parity [NAME ...]` prints how many names agree, the deliberate differences,
and every other difference; its exit code is 1 if there is one.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

import lucid
from tests.laws import assert_close
from tests.table.laws import Smooth, random_like, run, tensors_of
from tests.table.row import Call, Row, arrays_for, filled, parts_of, rows

NUMPYS_WORDS = {"axis": "dim", "keepdims": "keepdim"}
RTOL, SLOPE = 1e-8, 1e-7
NO_DERIVATIVE = (
    "not implemented", "does not require grad", "not support", "formula for", "not differentiable",
)  # fmt: skip


class Absent(Exception):
    """PyTorch has no derivative here, or not in this mode."""


class NotTaken(Exception):
    """PyTorch does not take such arguments: NumPy's spelling, or a dtype."""


def peer_of(row: Row) -> Callable[..., Any] | None:
    """PyTorch's function for a row."""
    if row.torch is None:
        return None
    if callable(row.torch):
        return lambda *args, **kwargs: row.torch(torch, *args, **kwargs)
    found: Any = torch
    for part in (row.torch or row.name).split("."):
        found = getattr(found, part, None)
        if found is None:
            raise LookupError(f"PyTorch has no {row.torch or row.name}")
    return found


def to_torch(value: Any) -> Any:
    """An argument as PyTorch takes it: dtypes, and NumPy's words for keywords."""
    if isinstance(value, np.dtype):
        return getattr(torch, value.name)
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, dict):
        return {NUMPYS_WORDS.get(key, key): to_torch(part) for key, part in value.items()}
    if type(value) in (tuple, list):
        return type(value)(map(to_torch, value))
    return value


class Peer(Smooth):
    """A call of PyTorch's function on the same arrays."""

    def __init__(self, row: Row, c: Call) -> None:
        super().__init__(row, c)
        self.function = peer_of(row)

    def results_of(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        args, kwargs = filled(self.call, tensors)
        result = self.function(*to_torch(list(args)), **to_torch(kwargs))
        if self.row.result is not None:
            result = self.row.seen(tuple(result) if isinstance(result, tuple) else result)
        return tuple(parts_of(result))

    def all_tensors(self) -> list[Any]:
        return [torch.from_numpy(x.copy()) for x in self.arrays]

    def __call__(self, *primals: Any) -> tuple[Any, ...]:
        tensors = self.all_tensors()
        for i, x in zip(self.wrt, primals):
            tensors[i] = x
        results = self.results_of(tensors)
        return tuple(results[i] for i in self.kept)

    def backward(self, cotangents: Sequence[np.ndarray]) -> list[np.ndarray]:
        primals = [torch.from_numpy(x.copy()).requires_grad_() for x in self.primals]
        pairs = [
            (y, torch.from_numpy(ct))
            for y, ct in zip(self(*primals), cotangents)
            if y.requires_grad
        ]
        if not pairs:
            raise Absent
        outputs, seeds = zip(*pairs)
        pulled = torch.autograd.grad(outputs, primals, seeds, allow_unused=True)
        return [
            np.zeros_like(x) if g is None else g.resolve_conj().numpy(force=True)
            for g, x in zip(pulled, self.primals)
        ]

    def forward_mode(self, tangents: Sequence[np.ndarray]) -> list[np.ndarray]:
        primals = tuple(torch.from_numpy(x.copy()) for x in self.primals)
        seeds = tuple(torch.from_numpy(t) for t in tangents)
        _, pushed = torch.func.jvp(self.__call__, primals, seeds)
        return [t.detach().resolve_conj().numpy(force=True) for t in pushed]


def where_it_has_one(derivative: Callable[[], list[np.ndarray]]) -> list[np.ndarray] | None:
    """The derivative, or None where PyTorch says that it has none."""
    try:
        return derivative()
    except Absent:
        return None
    except (RuntimeError, NotImplementedError) as error:
        if any(words in str(error) for words in NO_DERIVATIVE):
            return None
        raise


def as_array(value: Any) -> np.ndarray:
    if isinstance(value, torch.Tensor):
        return value.detach().resolve_conj().resolve_neg().numpy()
    return np.asarray(value)


def compare(row: Row, c: Call) -> None:
    """Raises where the value, its dtype or a derivative differs."""
    peer = Peer(row, c)
    try:
        theirs = [as_array(y) for y in peer.results_of(peer.all_tensors())]
    except (TypeError, NotImplementedError) as error:
        raise NotTaken from error
    ours = run(row, c, arrays_for(c))
    assert len(ours) == len(theirs), f"{len(ours)} results, PyTorch gives {len(theirs)}"
    for i, (a, e) in enumerate(zip(ours, theirs)):
        assert a.dtype == e.dtype, f"result {i} is {a.dtype}, PyTorch's is {e.dtype}"
        assert_close(a, e, max(RTOL, row.rtol.get("float64", 0)), f"result {i}")
    if not (peer and row.is_smooth(c)):
        return
    ours_smooth = Smooth(row, c)
    cotangents, tangents = random_like(peer.results, 2), random_like(peer.primals, 1)
    if (pulled := where_it_has_one(lambda: peer.backward(cotangents))) is not None:
        for a, e in zip(ours_smooth.pull_arrays([*peer.primals, *cotangents]), pulled):
            assert_close(a, e, SLOPE, "vjp")
    if (pushed := where_it_has_one(lambda: peer.forward_mode(tangents))) is not None:
        primals = tuple(tensors_of(peer.primals))
        _, mine = lucid.func.jvp(ours_smooth, primals, tuple(tensors_of(tangents)))
        for a, e in zip(mine, pushed):
            assert_close(a, e, SLOPE, "jvp")


def first_difference(row: Row) -> str:
    """The first call that differs and how, or an empty string; PyTorch must take one of them."""
    refused = 0
    for c in row.calls:
        try:
            compare(row, c)
        except NotTaken as error:
            refused += 1
            if refused == len(row.calls):
                return f"({c}): PyTorch takes none of the calls: {error.__cause__!s:.200}"
        except Exception as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            return f"({c}): {type(error).__name__}: {' | '.join(lines[:6])[:300]}"
    return ""


def main(names: Sequence[str]) -> int:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    chosen = [row for row in rows() if not names or row.name in names]
    alone = [row for row in chosen if row.torch is None]
    agree, deliberate, others = [], [], []
    for row in chosen:
        if row.torch is None:
            continue
        difference = first_difference(row)
        if not difference:
            agree.append(row)
        elif row.differs:
            deliberate.append(row)
        else:
            others.append((row, difference))
    for row, difference in others:
        print(f"DIFFERS {row.name} {difference}")
    for row in deliberate:
        print(f"deliberate: {row.name}: {row.differs}")
    print(
        f"{len(agree)} names agree with PyTorch {torch.__version__} in value, dtype, vjp and jvp; "
        f"{len(deliberate)} differ deliberately, {len(others)} otherwise; "
        f"{len(alone)} are not in PyTorch"
    )
    return 1 if others else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
