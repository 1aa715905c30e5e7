"""Distributions against PyTorch: densities, moments, entropies, divergences, and their gradients.

`python -m tests.distributions.parity` prints what agrees and every difference; its exit code is 1
if there is one.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch

import lucid
from tests.distributions.cases import CASES, FIXED, TRANSFORMS

WRONG = {
    ("Kumaraswamy", "mode"),  # PyTorch takes the logarithm of a negative number
    ("GeneralizedPareto", "variance"),  # which is infinite where PyTorch has nan
}
ROUGH = {"VonMises": 1e-5}  # PyTorch has short polynomials for Bessel functions there


def facts(m: Any, name: str, params: Any, others: Any, value: Any) -> dict[str, np.ndarray]:
    """Everything that a library says of a distribution at a value."""
    given = {k: m.tensor(x, requires_grad=True) for k, x in params.items() if k != "total_count"}
    fixed = {k: m.tensor(x) for k, x in params.items() if k == "total_count"}
    fixed = {**fixed, **FIXED.get(name, {})}
    d = getattr(m.distributions, name)(**fixed, **given)
    found: dict[str, Any] = {"log_prob": d.log_prob(m.tensor(value))}
    for fact in ("mean", "variance", "mode", "cdf", "entropy"):
        try:
            got = getattr(d, fact)
            found[fact] = got(m.tensor(value)) if fact == "cdf" else got() if callable(got) else got
        except (NotImplementedError, lucid.errors.LucidError):
            continue
    if others:
        q = getattr(m.distributions, name)(**{k: m.tensor(x) for k, x in others.items()})
        found["kl"] = m.distributions.kl_divergence(d, q)
    found["log_prob"].sum().backward()
    slopes = {f"slope in {k}": x.grad.numpy() for k, x in given.items() if x.grad is not None}
    return {**{k: x.detach().numpy() for k, x in found.items()}, **slopes}


def images(m: Any, name: str, args: Any, value: Any) -> dict[str, np.ndarray]:
    """What a library says of a transform at a value."""
    transform, x = getattr(m.distributions, name)(*args), m.tensor(value)
    y = transform(x)
    found = {"y": y, "back": transform.inv(y)}
    try:
        found["slope"] = transform.log_abs_det_jacobian(x, y)
    except (NotImplementedError, lucid.errors.LucidError):
        pass
    return {what: z.numpy() for what, z in found.items()}


def main() -> int:
    torch.set_default_dtype(torch.float64)  # of numbers that some distributions make themselves
    agree, differ = 0, []
    cases = [*[(facts, case) for case in CASES], *[(images, case) for case in TRANSFORMS]]
    for look, case in cases:
        try:
            theirs, mine = look(torch, *case), look(lucid, *case)
            rtol = ROUGH.get(case[0], 1e-7)
            for what in theirs.keys() & mine.keys():
                if (case[0], what) in WRONG:
                    continue
                np.testing.assert_allclose(
                    mine[what], theirs[what], rtol=rtol, atol=1e-9, err_msg=what
                )
                agree += 1
        except Exception as error:
            differ.append(f"{case[0]} {list(case[1])}: {type(error).__name__}: {error}")
    print(f"distributions: {agree} facts as PyTorch's, {len(differ)} distributions differ")
    print(*differ, sep="\n")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
