"""Pruning: a mask holds elements of a parameter at zero.

A pruned `weight` is kept as the parameter `weight_orig` and the buffer `weight_mask`; the module
computes their product whenever `weight` is read. The `compute_mask` of a method selects what to
keep; several methods on one parameter form a PruningContainer, each applied to what remains.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from lucid import random
from lucid.autograd import no_grad
from lucid.errors import ArgumentError, ModuleError, ShapeError
from lucid.linalg import vector_norm
from lucid.nn.module import Module
from lucid.nn.parameter import Parameter
from lucid.ops.core.arguments import clear_errors, public_function
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.shape.creation import ones_like
from lucid.ops.shape.joining import cat
from lucid.public.declare import public
from lucid.public.lazy import attach
from lucid.tape.recording.recorder import attribute_changes

PRUNING_TYPES = ("unstructured", "structured", "global")


@clear_errors
def pruning_methods(module: Module) -> dict[str, Any]:
    """Return the pruning methods of a module, by parameter name."""
    return module.__dict__.get("_pruned", {})


@public("nn.utils.prune")
class BasePruningMethod:
    """The base of pruning methods: a subclass has a PRUNING_TYPE and `compute_mask`."""

    PRUNING_TYPE: ClassVar[str] = "unstructured"
    _tensor_name: str = ""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return 1 for every element of `t` to keep, only where `default_mask` is 1."""
        raise ModuleError(f"{type(self).__name__} has no compute_mask()")

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """Return a pruned copy of a tensor."""
        t = as_tensor(t)
        mask = ones_like(t) if default_mask is None else as_tensor(default_mask)
        return t * self.compute_mask(check_scores(t, importance_scores), mask)

    def apply_mask(self, module: Module) -> Any:
        """Return the pruned parameter of a module."""
        return getattr(module, self._tensor_name)

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> Any:
        """Prune a parameter of a module, in addition to earlier pruning."""
        method = cls(*args, **kwargs)
        method._tensor_name = name
        old = pruning_methods(module).get(name)
        if old is None and not isinstance(module._parameters.get(name), Parameter):
            raise ModuleError(f"prune: {type(module).__name__} has no parameter {name!r}")
        with no_grad():
            now = getattr(module, name).detach()
            scores = check_scores(now, importance_scores)
            mask = ones_like(now) if old is None else getattr(module, f"{name}_mask")
            chosen = method if old is None else extend_methods(old, method)
            mask = as_tensor(chosen.compute_mask(scores, mask)).detach()
        if mask.shape != now.shape:
            raise ShapeError(f"prune: a mask of {mask.shape} for {name} of {now.shape}")
        register_mask(module, name, cast(mask, now.dtype).clone())
        module._pruned = {**pruning_methods(module), name: chosen}
        return chosen

    def remove(self, module: Module) -> None:
        """Make a pruned parameter an ordinary one, with its zeros."""
        name = self._tensor_name
        original = module._parameters[f"{name}_orig"]
        with no_grad():
            original.copy_(self.apply_mask(module))
        del module._parameters[f"{name}_orig"], module._buffers[f"{name}_mask"]
        module._pruned = {key: by for key, by in pruning_methods(module).items() if key != name}
        module.register_parameter(name, original)


@clear_errors
def register_mask(module: Module, name: str, mask: Any) -> None:
    """Keep a parameter as the product of its original and a mask."""
    attribute_changes[0] += 1
    if f"{name}_orig" not in module._parameters:
        module._parameters[f"{name}_orig"] = module._parameters.pop(name)
    module._buffers[f"{name}_mask"] = mask


@clear_errors
def check_scores(t: Any, scores: Any) -> Any:
    """Return the scores to compare elements by: those given, or the elements themselves."""
    if scores is None:
        return t
    scores = as_tensor(scores)
    if scores.shape != t.shape:
        raise ShapeError(f"prune: importance_scores of {scores.shape} for {t.shape}")
    return scores.detach()


@public("nn.utils.prune")
class PruningContainer(BasePruningMethod):
    """A sequence of methods; `compute_mask` applies the last to what the mask keeps."""

    def __init__(self, *methods: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Append a method that prunes the same parameter."""
        if not isinstance(method, BasePruningMethod):
            raise ArgumentError(f"prune: {type(method).__name__} is not a pruning method")
        name = self._tensor_name = self._tensor_name or method._tensor_name
        if method._tensor_name != name:
            facts = f"a method for {method._tensor_name!r} among those for {name!r}"
            raise ArgumentError(f"prune: {facts}")
        self._pruning_methods += (method,)

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        method = self._pruning_methods[-1]
        if method.PRUNING_TYPE not in PRUNING_TYPES:
            facts = f"PRUNING_TYPE {method.PRUNING_TYPE!r} is not one of {', '.join(PRUNING_TYPES)}"
            raise ArgumentError(f"prune: {facts}")
        left: Any = ...
        kept = default_mask.numpy() != 0
        if method.PRUNING_TYPE == "unstructured":
            left = kept
        elif method.PRUNING_TYPE == "structured":
            axis = canonicalize_axis("prune", method.dim, t.ndim)  # type: ignore[attr-defined]
            others = tuple(i for i in range(t.ndim) if i != axis)
            left = (*[slice(None)] * axis, kept.any(others))
        new = default_mask.numpy().copy()
        part = method.compute_mask(as_tensor(t.numpy()[left]), as_tensor(new[left]))
        new[left] = as_tensor(part).numpy()
        return as_tensor(new)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, i: int) -> BasePruningMethod:
        return self._pruning_methods[i]


@clear_errors
def extend_methods(old: BasePruningMethod, method: BasePruningMethod) -> PruningContainer:
    """Return a container of the old methods and a new one."""
    before = tuple(old) if isinstance(old, PruningContainer) else (old,)
    return PruningContainer(*before, method)


class Amount(BasePruningMethod):
    """The base of methods that remove a number, or a fraction, of elements or channels."""

    def __init__(self, amount: Any) -> None:
        whole = isinstance(amount, (int, np.integer)) and not isinstance(amount, bool)
        if not (whole and amount >= 0) and not (isinstance(amount, float) and 0 <= amount <= 1):
            facts = (
                f"amount={amount!r}; it must be a nonnegative integer or a fraction in [0.0, 1.0]"
            )
            raise ArgumentError(f"prune: {facts}")
        self.amount = amount

    def count_to_prune(self, total: int) -> int:
        """Return how many of `total` are removed."""
        n = round(self.amount * total) if isinstance(self.amount, float) else int(self.amount)
        if n > total:
            raise ArgumentError(f"prune: cannot prune {n} of {total}")
        return n

    def mask_smallest(self, order: Any, mask: Any) -> Any:
        """Return the mask without the elements or channels of the smallest scores."""
        gone = np.argsort(order.numpy(), axis=None, kind="stable")[
            : self.count_to_prune(order.numel())
        ]
        new = mask.numpy().copy()
        new.reshape(-1)[gone] = 0
        return as_tensor(new)


@public("nn.utils.prune")
class RandomUnstructured(Amount):
    """Remove random elements."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return self.mask_smallest(random.rand(*t.shape), default_mask)


@public("nn.utils.prune")
class L1Unstructured(Amount):
    """Remove the smallest elements."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return self.mask_smallest(t.abs(), default_mask)


class Structured(Amount):
    """The base of methods that remove entire channels along an axis."""

    PRUNING_TYPE = "structured"
    dim: int

    def scores(self, t: Any, axis: int) -> Any:
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if t.ndim < 2:
            raise ShapeError(f"prune: a tensor of shape {t.shape} has no channels")
        axis = canonicalize_axis("prune", self.dim, t.ndim)
        scores = self.scores(t, axis)
        kept = self.mask_smallest(scores, ones_like(scores))
        shape = [-1 if i == axis else 1 for i in range(t.ndim)]
        return default_mask * cast(kept, default_mask.dtype).reshape(shape)


@public("nn.utils.prune")
class RandomStructured(Structured):
    """Remove random channels."""

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def scores(self, t: Any, axis: int) -> Any:
        return random.rand(t.shape[axis])


@public("nn.utils.prune")
class LnStructured(Structured):
    """Remove the channels with the smallest norms."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.n, self.dim = n, dim

    def scores(self, t: Any, axis: int) -> Any:
        order = float(self.n) if isinstance(self.n, (int, float)) else {"fro": 2.0}.get(self.n)
        if order is None:
            raise ArgumentError(f"prune: n={self.n!r} is not the order of a norm")
        return vector_norm(t, order, dim=tuple(i for i in range(t.ndim) if i != axis))


@public("nn.utils.prune")
class Identity(BasePruningMethod):
    """Remove nothing."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask


@public("nn.utils.prune")
class CustomFromMask(BasePruningMethod):
    """Remove what a given mask excludes."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = as_tensor(mask)

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if self.mask.shape != default_mask.shape:
            raise ShapeError(f"prune: a mask of {self.mask.shape} for {default_mask.shape}")
        return default_mask * cast(self.mask, default_mask.dtype)


@public_function("nn.utils.prune")
def identity(module: Module, name: str) -> Module:
    """Add a mask of ones to a parameter."""
    Identity.apply(module, name)
    return module


@public_function("nn.utils.prune")
def random_unstructured(module: Module, name: str, amount: Any) -> Module:
    """Remove a number, or a fraction, of random elements of a parameter."""
    RandomUnstructured.apply(module, name, amount)
    return module


@public_function("nn.utils.prune")
def l1_unstructured(
    module: Module, name: str, amount: Any, importance_scores: Any = None
) -> Module:
    """Remove the smallest elements of a parameter.

    >>> import lucid
    >>> layer = lucid.nn.Linear(3, 1, bias=False)
    >>> _ = layer.weight.data.copy_(lucid.tensor([[1.0, -3.0, 2.0]]))
    >>> lucid.nn.utils.prune.l1_unstructured(layer, "weight", 1).weight.detach()
    Tensor([[ 0., -3.,  2.]])
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


@public_function("nn.utils.prune")
def random_structured(module: Module, name: str, amount: Any, dim: int) -> Module:
    """Remove random channels of a parameter."""
    RandomStructured.apply(module, name, amount, dim)
    return module


@public_function("nn.utils.prune")
def ln_structured(
    module: Module, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
) -> Module:
    """Remove the channels of a parameter with the smallest norms of order `n`."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


@public_function("nn.utils.prune")
def custom_from_mask(module: Module, name: str, mask: Any) -> Module:
    """Remove the elements of a parameter that a mask excludes."""
    CustomFromMask.apply(module, name, mask)
    return module


@public_function("nn.utils.prune")
def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune parameters, given as (module, name), as one vector: the smallest of all are removed."""
    pairs, given = [tuple(pair) for pair in parameters], importance_scores or {}
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        facts = f"{pruning_method.__name__} is {method.PRUNING_TYPE}"
        raise ArgumentError(f"global_unstructured: {facts}, not unstructured")
    if not pairs:
        raise ArgumentError("global_unstructured: no parameters are given")
    with no_grad():
        tensors = [getattr(module, name).detach() for module, name in pairs]
        scores = [check_scores(t, given.get(pair)) for t, pair in zip(tensors, pairs)]
        masks = [
            module._buffers.get(f"{name}_mask", ones_like(t))
            for t, (module, name) in zip(tensors, pairs)
        ]
        flat = PruningContainer(method).compute_mask(
            cat([x.reshape(-1) for x in scores]), cat([x.reshape(-1) for x in masks])
        )
    parts = flat.split([t.numel() for t in tensors])
    for (module, name), part, t in zip(pairs, parts, tensors):
        custom_from_mask(module, name, part.reshape(t.shape))


@public_function("nn.utils.prune")
def remove(module: Module, name: str) -> Module:
    """Make a pruned parameter an ordinary one, with its zeros."""
    if name not in pruning_methods(module):
        raise ModuleError(f"prune.remove: {name!r} of {type(module).__name__} is not pruned")
    pruning_methods(module)[name].remove(module)
    return module


@public_function("nn.utils.prune")
def is_pruned(module: Module) -> bool:
    """True if a parameter of this module or a submodule is pruned."""
    return any([bool(pruning_methods(inside)) for inside in module.modules()])


_, __dir__, __all__ = attach(__name__)
