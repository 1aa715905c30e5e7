"""Neural networks: layers as Modules, and the functions they are made of."""

from lucid.nn import functional as functional
from lucid.nn.containers import (
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Sequential,
)
from lucid.nn.module import Module
from lucid.nn.parameter import Buffer, Parameter

__all__ = [
    "Buffer", "Module", "ModuleDict", "ModuleList", "Parameter", "ParameterDict", "ParameterList",
    "Sequential",
]  # fmt: skip
