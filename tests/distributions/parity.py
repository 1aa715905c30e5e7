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

A, B, P = np.array([0.5, 2.0, 3.5]), np.array([1.5, 0.7, 4.0]), np.array([0.1, 0.5, 0.85])
MATRIX = np.array([[2.0, 0.5, 0.1], [0.5, 1.5, 0.3], [0.1, 0.3, 1.0]])
CORRELATION = MATRIX / np.sqrt(np.outer(np.diag(MATRIX), np.diag(MATRIX)))
X, UNIT, WHOLE = np.array([0.3, 1.1, 2.5]), np.array([0.2, 0.5, 0.3]), np.array([0.0, 1.0, 2.0])
WRONG = {
    ("Kumaraswamy", "mode"),  # PyTorch takes the logarithm of a negative number
    ("GeneralizedPareto", "variance"),  # which is infinite where PyTorch has nan
}
ROUGH = {"VonMises": 1e-5}  # PyTorch has short polynomials for Bessel functions there
# (name, parameters, other parameters for the divergence, a value)
CASES: list[tuple[str, dict[str, Any], dict[str, Any], Any]] = [
    ("Normal", {"loc": A, "scale": B}, {"loc": B, "scale": A}, X),
    ("LogNormal", {"loc": A, "scale": B}, {"loc": B, "scale": A}, X),
    ("Uniform", {"low": -A, "high": 3 * B}, {"low": -2 * A, "high": 4 * B}, X),
    ("Laplace", {"loc": A, "scale": B}, {"loc": B, "scale": A}, X),
    ("Cauchy", {"loc": A, "scale": B}, {}, X),
    ("Gumbel", {"loc": A, "scale": B}, {}, X),
    ("StudentT", {"df": A, "loc": B, "scale": A}, {}, X),
    ("HalfNormal", {"scale": A}, {}, X),
    ("Exponential", {"rate": A}, {"rate": B}, X),
    ("Weibull", {"scale": A, "concentration": B}, {}, X),
    ("Gamma", {"concentration": A, "rate": B}, {"concentration": B, "rate": A}, X),
    ("Chi2", {"df": A}, {"df": B}, X),
    ("Beta", {"concentration1": A, "concentration0": B},
     {"concentration1": B, "concentration0": A}, UNIT),
    ("Dirichlet", {"concentration": A}, {"concentration": B}, UNIT),
    ("Bernoulli", {"probs": P}, {"logits": A}, np.array([0.0, 1.0, 1.0])),
    ("Bernoulli", {"logits": A}, {"probs": P}, np.array([0.0, 1.0, 1.0])),
    ("Geometric", {"probs": P}, {"probs": UNIT}, WHOLE),
    ("Poisson", {"rate": A}, {"rate": B}, WHOLE),
    ("Binomial", {"total_count": np.array([3.0, 4.0, 9.0]), "probs": P},
     {"total_count": np.array([3.0, 4.0, 9.0]), "logits": A}, WHOLE),
    ("Categorical", {"probs": A}, {"logits": B}, np.array(2)),
    ("OneHotCategorical", {"probs": A}, {"logits": B}, np.array([0.0, 1.0, 0.0])),
    ("MultivariateNormal", {"loc": A, "covariance_matrix": MATRIX},
     {"loc": B, "covariance_matrix": MATRIX + np.eye(3)}, X),
    ("MultivariateNormal", {"loc": A, "precision_matrix": MATRIX}, {}, X),
    ("LowRankMultivariateNormal",
     {"loc": A, "cov_factor": MATRIX[:, :2], "cov_diag": B},
     {"loc": B, "cov_factor": MATRIX[:, 1:], "cov_diag": A}, X),
    ("Wishart", {"df": np.array(4.5), "covariance_matrix": MATRIX},
     {"df": np.array(3.5), "covariance_matrix": MATRIX + np.eye(3)}, MATRIX + np.eye(3)),
    ("LKJCholesky", {"concentration": B}, {}, np.linalg.cholesky(CORRELATION)),
    ("HalfCauchy", {"scale": A}, {}, X),
    ("Pareto", {"scale": UNIT, "alpha": B}, {"scale": UNIT / 2, "alpha": A}, X),
    ("GeneralizedPareto", {"loc": -A, "scale": B, "concentration": P}, {}, X),
    ("InverseGamma", {"concentration": A, "rate": B}, {}, X),
    ("Kumaraswamy", {"concentration1": A, "concentration0": B}, {}, UNIT),
    ("FisherSnedecor", {"df1": A, "df2": B}, {}, X),
    ("VonMises", {"loc": A, "concentration": B}, {}, X),
    ("ContinuousBernoulli", {"probs": P}, {"probs": UNIT}, UNIT),
    ("ContinuousBernoulli", {"logits": A - 1}, {}, UNIT),
    ("NegativeBinomial", {"total_count": A, "probs": P}, {}, WHOLE),
    ("NegativeBinomial", {"total_count": A, "logits": -B}, {}, WHOLE),
    ("RelaxedBernoulli", {"temperature": np.array(0.7), "probs": P}, {}, UNIT),
    ("RelaxedOneHotCategorical", {"temperature": np.array(0.7), "logits": A}, {}, UNIT),
    ("OneHotCategoricalStraightThrough", {"probs": A}, {"logits": B}, np.array([0.0, 1.0, 0.0])),
]  # fmt: skip


def facts(m: Any, name: str, params: Any, others: Any, value: Any) -> dict[str, np.ndarray]:
    """Everything that a library says of a distribution at a value."""
    given = {k: m.tensor(x, requires_grad=True) for k, x in params.items() if k != "total_count"}
    fixed = {k: m.tensor(x) for k, x in params.items() if k == "total_count"}
    fixed = {**fixed, **({"dim": 3} if name == "LKJCholesky" else {})}
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


TRANSFORMS: list[tuple[str, tuple[Any, ...], Any]] = [
    ("StickBreakingTransform", (), X),
    ("CorrCholeskyTransform", (), X),
    ("ReshapeTransform", ((3,), (3, 1)), X),
    ("SoftmaxTransform", (), X),
    ("AbsTransform", (), X),
    ("LowerCholeskyTransform", (), MATRIX),
    ("PositiveDefiniteTransform", (), MATRIX),
]


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
