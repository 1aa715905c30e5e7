"""The table of distributions and transforms: parameters and values to try them on."""

from __future__ import annotations

from typing import Any

import numpy as np

A, B, P = np.array([0.5, 2.0, 3.5]), np.array([1.5, 0.7, 4.0]), np.array([0.1, 0.5, 0.85])
MATRIX = np.array([[2.0, 0.5, 0.1], [0.5, 1.5, 0.3], [0.1, 0.3, 1.0]])
CORRELATION = MATRIX / np.sqrt(np.outer(np.diag(MATRIX), np.diag(MATRIX)))
X, UNIT, WHOLE = np.array([0.3, 1.1, 2.5]), np.array([0.2, 0.5, 0.3]), np.array([0.0, 1.0, 2.0])
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
    ("Geometric", {"logits": A - 1}, {}, WHOLE),
    ("Binomial", {"total_count": np.array([3.0, 4.0, 9.0]), "logits": A - 1}, {}, WHOLE),
    ("Multinomial", {"logits": A}, {}, WHOLE),
    ("Multinomial", {"probs": A}, {}, WHOLE),
    ("Categorical", {"logits": A}, {}, np.array(1)),
    ("OneHotCategorical", {"logits": A}, {}, np.array([0.0, 1.0, 0.0])),
    ("OneHotCategoricalStraightThrough", {"logits": A}, {}, np.array([0.0, 1.0, 0.0])),
    ("RelaxedBernoulli", {"temperature": np.array(0.7), "logits": A - 1}, {}, UNIT),
    ("RelaxedOneHotCategorical", {"temperature": np.array(0.7), "probs": P}, {}, UNIT),
    ("MultivariateNormal", {"loc": A, "scale_tril": np.linalg.cholesky(MATRIX)}, {}, X),
    ("Wishart", {"df": np.array(4.5), "precision_matrix": MATRIX}, {}, MATRIX + np.eye(3)),
    ("LogisticNormal", {"loc": A[:2], "scale": B[:2]}, {}, UNIT),
    ("OneHotCategoricalStraightThrough", {"probs": A}, {"logits": B}, np.array([0.0, 1.0, 0.0])),
]  # fmt: skip

TRANSFORMS: list[tuple[str, tuple[Any, ...], Any]] = [
    ("StickBreakingTransform", (), X),
    ("CorrCholeskyTransform", (), X),
    ("ReshapeTransform", ((3,), (3, 1)), X),
    ("SoftmaxTransform", (), X),
    ("AbsTransform", (), X),
    ("LowerCholeskyTransform", (), MATRIX),
    ("PositiveDefiniteTransform", (), MATRIX),
]

# Arguments that are no tensors.
FIXED: dict[str, dict[str, Any]] = {"LKJCholesky": {"dim": 3}, "Multinomial": {"total_count": 3}}
