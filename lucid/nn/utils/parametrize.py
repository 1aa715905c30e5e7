"""Parametrizations: a tensor of a module that is computed from others whenever it is read.

The module keeps the others in `parametrizations.<name>`; what is trained is its `original` (or
`original0`, `original1`, ...), and `Module.__getattr__` finds the name there. A parametrization is
a Module: `forward` computes the tensor, and an optional `right_inverse` computes the originals.
"""

from __future__ import annotations

from typing import Any

from lucid.autograd import no_grad
from lucid.errors import ModuleError, ShapeError
from lucid.nn.containers import ModuleDict, ModuleList
from lucid.nn.module import Module
from lucid.nn.parameter import Parameter
from lucid.ops.core.arguments import clear_errors, public_function
from lucid.public.lazy import attach
from lucid.tensors.tensor import Tensor


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in order of application."""

    def __init__(self, first: Module, original: Any) -> None:
        super().__init__([first])
        parts = invert(first, original)
        several = isinstance(parts, (tuple, list))
        self.names = [f"original{i}" for i in range(len(parts))] if several else ["original"]
        for name, x in zip(self.names, parts if several else [parts]):
            if isinstance(original, Parameter):
                self.register_parameter(name, Parameter(x.detach(), original.requires_grad))
            else:
                self.register_buffer(name, x)

    def forward(self) -> Any:
        """Compute the tensor from the originals."""
        first, *rest = list(self)
        x = first(*[getattr(self, name) for name in self.names])
        for part in rest:
            x = part(x)
        return x

    def assign(self, value: Any) -> None:
        """Set the originals to values from which `value` is computed."""
        with no_grad():
            for part in reversed(list(self)):
                value = invert(part, value)
            parts = value if isinstance(value, (tuple, list)) else [value]
            for name, x in zip(self.names, parts):
                getattr(self, name).copy_(x)


@clear_errors
def invert(parametrization: Any, value: Any) -> Any:
    """Return what a parametrization computes `value` from; `value` without a right_inverse."""
    if not hasattr(parametrization, "right_inverse"):
        return value
    with no_grad():
        return parametrization.right_inverse(value)


@public_function("nn.utils.parametrize")
def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """True if the module has a parametrization (of this tensor)."""
    found = module._modules.get("parametrizations")
    if found is None:
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


@public_function("nn.utils.parametrize")
def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a parameter or buffer of a module by `parametrization` from now on.

    unsafe    allow the shape or dtype of the tensor to change

    >>> import lucid
    >>> class Symmetric(lucid.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = lucid.nn.Linear(3, 3)
    >>> parametrize = lucid.nn.utils.parametrize
    >>> _ = parametrize.register_parametrization(layer, "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all()), list(layer.state_dict())
    (True, ['bias', 'parametrizations.weight.original'])
    """
    if not isinstance(parametrization, Module):
        raise ModuleError(
            f"register_parametrization: {type(parametrization).__name__} is not a Module"
        )
    if is_parametrized(module, tensor_name):
        before = getattr(module, tensor_name)
        chain: Any = module.parametrizations[tensor_name]
        chain.append(parametrization)
        with no_grad():
            chain.assign(before)
    else:
        before = module._parameters.get(tensor_name, module._buffers.get(tensor_name))
        if not isinstance(before, Tensor):
            raise ModuleError(
                f"register_parametrization: {type(module).__name__} has no parameter or buffer "
                f"{tensor_name!r}"
            )
        chain = ParametrizationList(parametrization, before)
    after = chain()
    if not unsafe and (after.shape, after.dtype) != (before.shape, before.dtype):
        raise ShapeError(
            f"register_parametrization: {tensor_name} of {before.type} becomes {after.type}; "
            "unsafe=True allows it"
        )
    if not is_parametrized(module, tensor_name):
        delattr(module, tensor_name)
        if "parametrizations" not in module._modules:
            module.register_module("parametrizations", ModuleDict())
        module.parametrizations[tensor_name] = chain
    return module


@public_function("nn.utils.parametrize")
def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make the tensor an ordinary one, with its current value or that of its original."""
    if not is_parametrized(module, tensor_name):
        raise ModuleError(
            f"remove_parametrizations: {type(module).__name__} has no parametrization of "
            f"{tensor_name!r}"
        )
    chain = module.parametrizations[tensor_name]
    if not leave_parametrized and len(chain.names) > 1:
        raise ModuleError(
            f"remove_parametrizations: {tensor_name} has {len(chain.names)} originals; "
            "leave_parametrized=True keeps their value"
        )
    with no_grad():
        value = chain() if leave_parametrized else chain.original
    trained = chain.names[0] in chain._parameters
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        del module.parametrizations
    value = value.detach().clone()
    if trained:
        module.register_parameter(tensor_name, Parameter(value))
    else:
        module.register_buffer(tensor_name, value)
    return module


_, __dir__, __all__ = attach(__name__)
