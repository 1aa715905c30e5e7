"""NumPy's functions on tensors, with NumPy's signatures, defaults and results.

`import lucid.numpy as np` is NumPy's namespace, and that of the array API standard (2024.12, with
the linalg and fft extensions), for tensors: a name is there if `lucid.numpy.protocols.dispatch` has
a counterpart of NumPy's object with this name. Floats that NumPy would make float64 by default have
Lucid's default dtype.

>>> import lucid.numpy as np
>>> np.linspace(0.0, 1.0, 3) + np.ones(3)
Tensor([1. , 1.5, 2. ])
"""

from typing import Any

import numpy as _numpy

from lucid.support.locks import import_module as _import_module

_OWN = ("__array_api_version__", "__array_namespace_info__", "__all__")


def __getattr__(name: str) -> Any:
    """Make a function of the namespace when it is first used."""
    if name in ("linalg", "fft"):
        return _import_module(f"{__name__}.{name}")
    if name not in _OWN and not hasattr(_numpy, name):  # it may be a module of this package
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = _import_module(f"{__name__}.namespace").attribute(__name__, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return _import_module(f"{__name__}.namespace").names("numpy")
