"""Modules as pure functions of their tensors: functional_call and stack_module_state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lucid.errors import ModuleError
from lucid.nn.layers.norm import BatchNorm
from lucid.nn.module import Module
from lucid.nn.structure import flatten
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor
from lucid.ops.shape.joining import stack


@public_function("func")
def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Return `module(*args, **kwargs)` with other parameters and buffers, given by name.

    The module itself is not changed; a tensor shared inside it is replaced everywhere.

    >>> import lucid
    >>> layer = lucid.nn.Linear(2, 1, bias=False)
    >>> weight = {"weight": lucid.tensor([[1.0, 2.0]])}
    >>> lucid.func.functional_call(layer, weight, lucid.ones(2))
    Tensor([3.])
    """
    given = with_tensors(module, parameter_and_buffer_dicts, strict)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    return given(*args, **(kwargs or {}))


def with_tensors(module: Module, tensors: Any, strict: bool = False) -> Any:
    """Return a module of the same structure with the given tensors in place of its own."""
    given = dict(tensors) if isinstance(tensors, Mapping) else merge_dicts(tensors)
    leaves, structure, _ = flatten(module)
    numbers = {id(x): i for i, x in enumerate(leaves)}
    names: dict[str, int] = {}
    for place in ("_parameters", "_buffers"):
        names.update((name, numbers[id(x)]) for name, x in module._named(place, "", True, False))
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ModuleError(f"functional_call: {type(module).__name__} has no {', '.join(unknown)}")
    replaced = list(leaves)
    found = set()
    for name, value in given.items():
        replaced[names[name]] = as_tensor(value)
        found.add(names[name])
    if strict and len(found) != len(leaves):
        missing = [name for name, i in names.items() if i not in found]
        raise ModuleError(f"functional_call: {', '.join(missing)} is missing")
    return structure.rebuild(replaced)


def merge_dicts(dicts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge dictionaries; raise ModuleError for a name given twice."""
    out: dict[str, Any] = {}
    for part in dicts:
        doubled = [name for name in part if name in out]
        if doubled:
            raise ModuleError(f"functional_call: {', '.join(doubled)} is given twice")
        out.update(part)
    return out


@public_function("func")
def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Stack the parameters and the buffers of modules of one kind, for `vmap`."""
    if not models:
        raise ModuleError("stack_module_state: no module was given")
    if any(flatten(m)[1] != flatten(models[0])[1] for m in models):
        raise ModuleError("stack_module_state: the modules differ in more than their tensors")

    def stacked(kind: str) -> dict[str, Any]:
        each = [dict(getattr(m, kind)()) for m in models]
        return {name: stack([d[name].detach() for d in each]) for name in each[0]}

    params = {
        name: x.detach().requires_grad_(all_require_grad(models, name))
        for name, x in stacked("named_parameters").items()
    }
    return params, {name: x.detach() for name, x in stacked("named_buffers").items()}


def all_require_grad(models: Sequence[Module], name: str) -> bool:
    """True if this parameter requires grad in all models."""
    return all(m.get_parameter(name).requires_grad for m in models)


@public_function("func")
def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Disable the running statistics of all batch norms, so that `vmap` works through them.

    >>> import lucid
    >>> net = lucid.nn.Sequential(lucid.nn.BatchNorm1d(2))
    >>> dict(lucid.func.replace_all_batch_norm_modules_(net).named_buffers())
    {}
    """
    for module in root.modules():
        if isinstance(module, BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
