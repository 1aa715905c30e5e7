"""torch.nn: Lucid's, with the modules in which PyTorch defines its classes."""

from typing import Any

from lucid import nn as _ours
from lucid.compat.torch import parallel
from lucid.compat.torch.parallel import DataParallel

__all__ = ["DataParallel", "modules", "parallel", "parameter"]


class _Modules:
    """torch.nn.modules: `modules.rnn.LSTM` and `modules.LSTM` are `nn.LSTM`."""

    NonDynamicallyQuantizableLinear = _ours.Linear

    def __getattr__(self, name: str) -> Any:
        return getattr(_ours, name) if name[:1].isupper() else self


modules = _Modules()
parameter = _ours


def __getattr__(name: str) -> Any:
    return getattr(_ours, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(_ours)})
