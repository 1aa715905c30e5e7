"""Pruning: elements of a parameter that are held at zero by a mask.

A pruned `weight` is kept as the parameter `weight_orig` and the buffer `weight_mask`; the module
computes their product whenever `weight` is read. A method says by `compute_mask` what to keep;
several on one parameter are joined in a PruningContainer, each looking at what is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from lucid import random
from lucid.autograd import no_grad
from lucid.errors import ArgumentError, ModuleError, ShapeError
from lucid.ir.source import at_line
from lucid.linalg import vector_norm
from lucid.nn.module import Module
from lucid.nn.parameter import Parameter
from lucid.ops.core.axes import axis_of
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.shape.creation import ones_like
from lucid.ops.shape.joining import cat
from lucid.tape.recorder import changes

KINDS = ("unstructured", "structured", "global")


def pruned_by(module: Module) -> dict[str, Any]:
    """The methods that prune a module, by the names of its parameters."""
    return module.__dict__.get("_pruned", {})


class BasePruningMethod:
    """The base of all methods: a subclass has a PRUNING_TYPE and `compute_mask`."""

    PRUNING_TYPE: ClassVar[str] = "unstructured"
    _tensor_name: str = ""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """1 for every element of `t` that stays, at most where `default_mask` has 1."""
        raise ModuleError(f"{type(self).__name__} has no compute_mask(){at_line()}")

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """A pruned copy of a tensor."""
        t = as_tensor(t)
        mask = ones_like(t) if default_mask is None else as_tensor(default_mask)
        return t * self.compute_mask(scores_for(t, importance_scores), mask)

    def apply_mask(self, module: Module) -> Any:
        """The pruned parameter of a module."""
        return getattr(module, self._tensor_name)

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> Any:
        """Prune a parameter of a module, further if it is pruned already."""
        method = cls(*args, **kwargs)
        method._tensor_name = name
        old = pruned_by(module).get(name)
        if old is None and not isinstance(module._parameters.get(name), Parameter):
            raise ModuleError(
                f"prune: {type(module).__name__} has no parameter {name!r}{at_line()}"
            )
        with no_grad():
            now = getattr(module, name).detach()
            scores = scores_for(now, importance_scores)
            mask = ones_like(now) if old is None else getattr(module, f"{name}_mask")
            chosen = method if old is None else joined(old, method)
            mask = as_tensor(chosen.compute_mask(scores, mask)).detach()
        if mask.shape != now.shape:
            raise ShapeError(f"prune: a mask of {mask.shape} for {name} of {now.shape}{at_line()}")
        put_mask(module, name, cast(mask, now.dtype).clone())
        module._pruned = {**pruned_by(module), name: chosen}
        return chosen

    def remove(self, module: Module) -> None:
        """Make the pruned values those of the parameter itself."""
        name = self._tensor_name
        original = module._parameters[f"{name}_orig"]
        with no_grad():
            original.copy_(self.apply_mask(module))
        del module._parameters[f"{name}_orig"], module._buffers[f"{name}_mask"]
        module._pruned = {key: by for key, by in pruned_by(module).items() if key != name}
        module.register_parameter(name, original)


def put_mask(module: Module, name: str, mask: Any) -> None:
    """Let a module keep a parameter as the product of itself and a mask."""
    changes[0] += 1
    if f"{name}_orig" not in module._parameters:
        module._parameters[f"{name}_orig"] = module._parameters.pop(name)
    module._buffers[f"{name}_mask"] = mask


def scores_for(t: Any, scores: Any) -> Any:
    """What is compared between elements: the given scores, or the elements themselves."""
    if scores is None:
        return t
    scores = as_tensor(scores)
    if scores.shape != t.shape:
        facts = f"importance_scores of {scores.shape} for {t.shape}"
        raise ShapeError(f"prune: {facts}{at_line()}")
    return scores.detach()


class PruningContainer(BasePruningMethod):
    """Methods one after the other; `compute_mask` applies the last to what the mask leaves."""

    def __init__(self, *methods: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Append a method that prunes the same parameter."""
        if not isinstance(method, BasePruningMethod):
            raise ArgumentError(f"prune: {type(method).__name__} is no pruning method{at_line()}")
        name = self._tensor_name = self._tensor_name or method._tensor_name
        if method._tensor_name != name:
            facts = f"a method for {method._tensor_name!r} among those for {name!r}"
            raise ArgumentError(f"prune: {facts}{at_line()}")
        self._pruning_methods += (method,)

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        method = self._pruning_methods[-1]
        if method.PRUNING_TYPE not in KINDS:
            facts = f"PRUNING_TYPE {method.PRUNING_TYPE!r}; it is one of {', '.join(KINDS)}"
            raise ArgumentError(f"prune: {facts}{at_line()}")
        left: Any = ...
        kept = default_mask.numpy() != 0
        if method.PRUNING_TYPE == "unstructured":
            left = kept
        elif method.PRUNING_TYPE == "structured":
            axis = axis_of("prune", method.dim, t.ndim)  # type: ignore[attr-defined]
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


def joined(old: BasePruningMethod, method: BasePruningMethod) -> PruningContainer:
    before = tuple(old) if isinstance(old, PruningContainer) else (old,)
    return PruningContainer(*before, method)


class Amount(BasePruningMethod):
    """Methods that take away a number of elements or channels, or a part of them."""

    def __init__(self, amount: Any) -> None:
        whole = isinstance(amount, (int, np.integer)) and not isinstance(amount, bool)
        if not (whole and amount >= 0) and not (isinstance(amount, float) and 0 <= amount <= 1):
            facts = f"amount={amount!r}; it is a number from 0 on or a part between 0.0 and 1.0"
            raise ArgumentError(f"prune: {facts}{at_line()}")
        self.amount = amount

    def number(self, total: int) -> int:
        """How many of `total` are taken away."""
        n = round(self.amount * total) if isinstance(self.amount, float) else int(self.amount)
        if n > total:
            raise ArgumentError(f"prune: {n} of {total} are to be pruned{at_line()}")
        return n

    def without_least(self, order: Any, mask: Any) -> Any:
        """The mask without the elements or channels of the least numbers."""
        gone = np.argsort(order.numpy(), axis=None, kind="stable")[: self.number(order.numel())]
        new = mask.numpy().copy()
        new.reshape(-1)[gone] = 0
        return as_tensor(new)


class RandomUnstructured(Amount):
    """Elements drawn at random are taken away."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return self.without_least(random.rand(*t.shape), default_mask)


class L1Unstructured(Amount):
    """The smallest elements are taken away."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return self.without_least(t.abs(), default_mask)


class Structured(Amount):
    """Methods that take away whole channels along an axis."""

    PRUNING_TYPE = "structured"
    dim: int

    def scores(self, t: Any, axis: int) -> Any:
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if t.ndim < 2:
            raise ShapeError(f"prune: a tensor of shape {t.shape} has no channels{at_line()}")
        axis = axis_of("prune", self.dim, t.ndim)
        scores = self.scores(t, axis)
        kept = self.without_least(scores, ones_like(scores))
        shape = [-1 if i == axis else 1 for i in range(t.ndim)]
        return default_mask * cast(kept, default_mask.dtype).reshape(shape)


class RandomStructured(Structured):
    """Channels drawn at random are taken away."""

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def scores(self, t: Any, axis: int) -> Any:
        return random.rand(t.shape[axis])


class LnStructured(Structured):
    """The channels of the smallest norms are taken away."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.n, self.dim = n, dim

    def scores(self, t: Any, axis: int) -> Any:
        order = float(self.n) if isinstance(self.n, (int, float)) else {"fro": 2.0}.get(self.n)
        if order is None:
            raise ArgumentError(f"prune: n={self.n!r} is the order of no norm{at_line()}")
        return vector_norm(t, order, dim=tuple(i for i in range(t.ndim) if i != axis))


class Identity(BasePruningMethod):
    """Nothing is taken away."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask


class CustomFromMask(BasePruningMethod):
    """What a given mask has no 1 for is taken away."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = as_tensor(mask)

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if self.mask.shape != default_mask.shape:
            facts = f"a mask of {self.mask.shape} for {default_mask.shape}"
            raise ShapeError(f"prune: {facts}{at_line()}")
        return default_mask * cast(self.mask, default_mask.dtype)


def identity(module: Module, name: str) -> Module:
    """Keep a parameter with a mask of ones."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: Any) -> Module:
    """Take away elements of a parameter at random: a number of them, or a part."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: Any, importance_scores: Any = None
) -> Module:
    """Take away the smallest elements of a parameter.

    >>> import lucid
    >>> layer = lucid.nn.Linear(3, 1, bias=False)
    >>> _ = layer.weight.data.copy_(lucid.tensor([[1.0, -3.0, 2.0]]))
    >>> lucid.nn.utils.prune.l1_unstructured(layer, "weight", 1).weight.detach()
    Tensor([[ 0., -3.,  2.]])
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: Any, dim: int) -> Module:
    """Take away channels of a parameter at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
) -> Module:
    """Take away the channels of a parameter with the smallest norms of order `n`."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Any) -> Module:
    """Take away what a mask has no 1 for."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune parameters, given as (module, name), as if they were one: the least of all go."""
    pairs, given = [tuple(pair) for pair in parameters], importance_scores or {}
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        facts = f"{pruning_method.__name__} is {method.PRUNING_TYPE}"
        raise ArgumentError(f"global_unstructured: {facts}, not unstructured{at_line()}")
    if not pairs:
        raise ArgumentError(f"global_unstructured: no parameters are given{at_line()}")
    with no_grad():
        tensors = [getattr(module, name).detach() for module, name in pairs]
        scores = [scores_for(t, given.get(pair)) for t, pair in zip(tensors, pairs)]
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


def remove(module: Module, name: str) -> Module:
    """Make a pruned parameter an ordinary one, with its zeros."""
    if name not in pruned_by(module):
        raise ModuleError(
            f"prune.remove: {name!r} of {type(module).__name__} is not pruned{at_line()}"
        )
    pruned_by(module)[name].remove(module)
    return module


def is_pruned(module: Module) -> bool:
    """Is a parameter of this module, or of one inside, pruned?"""
    return any([bool(pruned_by(inside)) for inside in module.modules()])
