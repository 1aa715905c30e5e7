"""Primitive: the contract of an operation. One class holds all of an operation's rules.

A primitive is a frozen dataclass whose fields are its parameters, so equality, hash, repr and
`match` come from the language. Instances are interned: `Sum(axes=(0,)) is Sum(axes=(0,))`; those
that belong to one call (`single_use`) are not, so that what they hold can be freed.

Rules receive and return tensors; inside a transform these have types but no values. `None` is the
zero tangent and the zero cotangent.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from importlib import import_module
from typing import Any, ClassVar, dataclass_transform

import numpy as np

from lucid.errors import ArgumentError
from lucid.ir.facts import Facts
from lucid.ir.graph import Graph
from lucid.ir.types import Type
from lucid.public import index
from lucid.public.declare import public
from lucid.public.lazy import homes
from lucid.support.caches import new_cache

Tensors = Any  # tensors, whose class is defined above the IR

HEAVY = 1 << 10  # `native_from` of operations that do much work per element
NEVER = 1 << 62  # `native_from` of operations that are never compiled alone

REGISTRY: dict[str, type[Primitive]] = public("ir")({})
_interned: dict[Any, Primitive] = new_cache(f"{__name__}._interned", {})
_INTERN_LIMIT = 100_000


def find_primitive(name: str) -> type[Primitive] | None:
    """Return the primitive with this name, importing its module if it is one of the package."""
    home = homes(index.PRIMITIVES).get(name) if name not in REGISTRY else None
    if home is not None:
        import_module(home[0])
    return REGISTRY.get(name)


def all_primitives() -> dict[str, type[Primitive]]:
    """Return every primitive by its name, importing those of the package."""
    for module in index.PRIMITIVES:
        import_module(f"lucid.{module}")
    return REGISTRY


def register(cls: type[Primitive]) -> None:
    """Add a class to REGISTRY; it may replace an earlier definition of itself, as in a notebook."""
    is_ours = cls.__module__.startswith("lucid.")
    other = (REGISTRY.get(cls.name) if is_ours else find_primitive(cls.name)) or cls
    names = [f"{found.__module__}.{found.__qualname__}" for found in (other, cls)]
    if names[0] != names[1]:
        raise ArgumentError(
            f"{names[1]}: the name {cls.name!r} is taken by {names[0]}; set another one, "
            "name = ..., in the class"
        )
    REGISTRY[cls.name] = cls


def graphs_of(op: Primitive) -> list[Graph]:
    """Return the Graphs among the parameters of an operation."""
    values = list(op._values())
    for value in values:
        values += value if isinstance(value, tuple) else ()
    return [value for value in values if isinstance(value, Graph)]


@property  # type: ignore[misc]
def _holds_ordered(op: Any) -> bool:
    """The fact `ordered` of an operation that holds Graphs: true if an equation in them has it."""
    if "_ordered" not in op.__dict__:
        op.__dict__["_ordered"] = any([e.op.ordered for g in graphs_of(op) for e in g.equations])
    return op.__dict__["_ordered"]


class _Interning(type):
    """Calling a primitive class returns the one instance with these parameters."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.single_use:  # type: ignore[attr-defined]
            return super().__call__(*args, **kwargs)
        key = (cls, args, *kwargs.items()) if kwargs else (cls, args)
        try:
            return _interned[key]
        except KeyError:
            op = super().__call__(*args, **kwargs)
        except TypeError:  # an unhashable parameter is not interned
            return super().__call__(*args, **kwargs)
        if len(_interned) >= _INTERN_LIMIT:
            _interned.clear()
        return _interned.setdefault(key, op)


class _Parameters(metaclass=_Interning):
    """The methods of a frozen dataclass, shared by all primitives.

    Generating them for each class would take 0.7 ms a class, 40 ms of `import lucid`.
    """

    _hash: ClassVar[int]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        cls, names = type(self), self._names()
        if len(args) > len(names):
            raise TypeError(f"{cls.__name__}: got {len(args)} parameters for {', '.join(names)}")
        given = dict(zip(names, args))
        if unknown := [name for name in kwargs if name in given or name not in names]:
            raise TypeError(f"{cls.__name__}: parameter {unknown[0]} is unknown or given twice")
        given |= kwargs
        if missing := [name for name in names if name not in given and not hasattr(cls, name)]:
            raise TypeError(f"{cls.__name__}: parameter {missing[0]} is missing")
        self.__dict__.update({name: given.get(name, getattr(cls, name, None)) for name in names})

    def __setattr__(self, name: str, value: Any) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to parameter {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete parameter {name!r}")

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        return cls.__match_args__  # type: ignore[attr-defined]

    def _values(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self._names()])

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        return self._values() == other._values()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        cached = self.__dict__.get("_hash")
        if cached is None:
            cached = hash((type(self).__qualname__, self._values()))
            self.__dict__["_hash"] = cached
        return cached


dataclasses.dataclass(init=False, repr=False, eq=False)(_Parameters)


@public("ir", "extend")
@dataclass_transform(frozen_default=True)
class Primitive(Facts, _Parameters):
    """An operation on arrays.

    Subclasses define `infer`, `eval`, `jvp`, `vjp` and `batch`, or inherit them from a kind
    (`lucid.ops.core.kinds`). An operation without a derivative sets `differentiable = False`.
    """

    name: ClassVar[str]
    differentiable: ClassVar[bool] = True
    abstract: ClassVar[bool] = True  # a kind, not an operation
    is_view: ClassVar[bool] = False  # the result shares the memory of the first operand
    may_overlap: ClassVar[bool] = False  # a view whose elements can share memory, yet be written
    always_differentiable: ClassVar[bool] = False  # every result has a derivative
    saves: ClassVar[str] = "xy"  # what the derivative reads: inputs "x", outputs "y"
    inline: ClassVar[Any] = None  # a method that `replay` calls instead of binding the op
    single_use: ClassVar[bool] = False  # belongs to one call (a hook, a ctx): never cached
    holds_graphs: ClassVar[bool] = False  # a parameter is a Graph
    is_region: ClassVar[bool] = False  # stands for the equations of its `graph`
    literals_are_static: ClassVar[bool] = False  # each literal value is compiled separately
    native_from: ClassVar[int] = 1 << 15  # elements from which hot eager calls are native
    numpy_calls: ClassVar[int] = 0  # of `eval`; with 1 or more, hot calls of any size are native
    is_heavy: ClassVar[bool] = False  # does much work per element: `native_from` is at most HEAVY
    calls: ClassVar[dict[Any, Any] | None] = None  # see `tape.tiering.run`; of an instance

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = inspect.get_annotations(cls)
        if any(not str(kind).startswith("ClassVar") for kind in own.values()):
            dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
        cls.abstract = abstract
        if any("Graph" in str(kind) for kind in own.values()):
            cls.holds_graphs = True
            cls.ordered = _holds_ordered  # type: ignore[assignment]
        if cls.is_view or cls.single_use or (cls.holds_graphs and not cls.is_region):
            cls.native_from = NEVER  # an operation that holds a Graph counts its own work
            cls.numpy_calls = 0
        elif "native_from" in cls.__dict__:
            cls.is_heavy = cls.native_from <= HEAVY
        if cls.numpy_calls:
            cls.native_from = 0
        if cls.single_use or ("eval" in cls.__dict__ and not cls.__module__.startswith("lucid.")):
            cls.fails = cls.__dict__.get("fails", True)  # code of a user may raise any error
        cls.saves_x = "x" in cls.saves  # type: ignore[attr-defined]
        cls.saves_y = "y" in cls.saves  # type: ignore[attr-defined]
        if "name" not in cls.__dict__:
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        if not abstract:
            register(cls)

    def infer(self, *xs: Type) -> Type | tuple[Type, ...]:
        """Return the type of the result, or raise an error that names the facts."""
        raise NotImplementedError(f"{self.name} has no infer rule")

    def eval(self, *xs: np.ndarray) -> Any:
        """Return the result, computed with NumPy."""
        raise NotImplementedError(f"{self.name} has no eval rule")

    def jvp(self, ts: tuple[Tensors, ...], y: Tensors, *xs: Tensors) -> Tensors:
        """Return the tangent of the result, from the tangents `ts` of the inputs (None: zero)."""
        raise NotImplementedError(f"{self.name} has no jvp rule")

    def vjp(self, ct: Tensors, y: Tensors, *xs: Tensors) -> tuple[Tensors, ...]:
        """Return the cotangent of every input (None: zero), from that of the result, `ct`."""
        raise NotImplementedError(f"{self.name} has no vjp rule")

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Tensors) -> Tensors:
        """Return the result for `n` examples, in axis 0 of batched inputs and of all results."""
        raise NotImplementedError(f"{self.name} has no batch rule")

    def insert(self, base: Tensors, part: Tensors) -> Tensors:
        """Return `base` with what this view of it selects replaced by `part`."""
        raise NotImplementedError(f"{self.name} is not a view that can be written to")

    def prune_outputs(self, n: int, used: Any) -> tuple[Primitive, list[int], list[int]] | None:
        """Drop unused outputs: return (op, kept operands of `n`, kept outputs).

        None if nothing can be dropped.
        """
        return None

    def params(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={v!r}" for k, v in self.params().items())
        return f"{self.name}[{inside}]" if inside else self.name
