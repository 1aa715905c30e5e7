"""Densities and distribution functions with scipy.stats' names, for tensors and arrays.

>>> import lucid.compat.autograd.numpy as np
>>> from lucid.compat.autograd import grad
>>> from lucid.compat.autograd.scipy.stats import norm
>>> grad(norm.logpdf)(2.0)
np.float64(-2.0)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats as _stats

from lucid import distributions
from lucid.compat.autograd.core import in_float64
from lucid.compat.autograd.extend import isbox
from lucid.ops.core.promote import as_tensor


class Stats:
    """One distribution: SciPy's own for arrays, Lucid's for tensors.

    name     its name in scipy.stats
    make     SciPy's parameters after x -> the corresponding lucid.distributions object
    """

    def __init__(self, name: str, make: Callable[..., Any]) -> None:
        self.name, self.make = name, make

    def __getattr__(self, method: str) -> Any:
        if method.startswith("__"):
            raise AttributeError(method)
        own = {"logpdf": "log_prob", "logpmf": "log_prob", "pdf": "log_prob", "pmf": "log_prob"}
        own |= {"cdf": "cdf", "logcdf": "cdf", "sf": "cdf", "logsf": "cdf", "ppf": "icdf"}
        original = getattr(getattr(_stats, self.name), method)

        def call(x: Any, *args: Any, **kwargs: Any) -> Any:
            if method == "entropy":
                given = [as_tensor(in_float64(v)) for v in (x, *args)]
                tracked = any(isbox(v) for v in (x, *args))
                return self.make(*given).entropy() if tracked else original(x, *args, **kwargs)
            if not any(isbox(v) for v in (x, *args, *kwargs.values())):
                return original(x, *args, **kwargs)
            given = [as_tensor(in_float64(v)) for v in args]
            named = {k: as_tensor(in_float64(v)) for k, v in kwargs.items()}
            value = as_tensor(in_float64(x))
            y = getattr(self.make(*given, **named), own[method])(value)
            if method in ("pdf", "pmf"):
                return np.exp(y)
            y = 1.0 - y if method.endswith("sf") else y
            return np.log(y) if method in ("logcdf", "logsf") else y

        return call


ZERO, ONE = np.float64(0.0), np.float64(1.0)


def _tensors(*xs: Any) -> list[Any]:
    return [as_tensor(in_float64(x)) for x in xs]


def _normal(loc: Any = ZERO, scale: Any = ONE) -> Any:
    return distributions.Normal(*_tensors(loc, scale))


def _student(df: Any, loc: Any = ZERO, scale: Any = ONE) -> Any:
    return distributions.StudentT(*_tensors(df, loc, scale))


def _multivariate_normal(mean: Any, cov: Any, allow_singular: Any = False) -> Any:
    return distributions.MultivariateNormal(*_tensors(mean, cov))


norm = Stats("norm", _normal)
t = Stats("t", _student)
beta = Stats("beta", lambda a, b: distributions.Beta(*_tensors(a, b)))
gamma = Stats("gamma", lambda a: distributions.Gamma(*_tensors(a, ONE)))
chi2 = Stats("chi2", lambda df: distributions.Chi2(*_tensors(df)))
poisson = Stats("poisson", lambda mu: distributions.Poisson(*_tensors(mu)))
dirichlet = Stats("dirichlet", lambda alpha: distributions.Dirichlet(*_tensors(alpha)))
multivariate_normal = Stats("multivariate_normal", _multivariate_normal)

for _name, _found in list(globals().items()):  # `import ...scipy.stats.norm as norm` works too
    if isinstance(_found, Stats):
        sys.modules[f"{__name__}.{_name}"] = _found  # type: ignore[assignment]
