"""Containers: Sequential, and lists and dictionaries of modules or parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lucid.errors import IndexingError, ModuleError
from lucid.nn.module import Module
from lucid.nn.parameter import Parameter
from lucid.public.declare import public
from lucid.tape.recording.recorder import attribute_changes


class IndexedContainer(Module):
    """The base of containers with numbered members, kept in the dictionary `_registry`."""

    _registry = "_modules"

    def _members(self) -> dict[str, Any]:
        return getattr(self, self._registry)

    def _key(self, index: int) -> str:
        n = len(self)
        if not isinstance(index, int) or not -n <= index < n:
            raise IndexingError(f"{type(self).__name__}: index {index!r} is out of range for {n}")
        return str(index % n)

    def _renumber(self, members: Iterable[Any]) -> None:
        kept = list(members)
        attribute_changes[0] += 1
        self._members().clear()
        for i, member in enumerate(kept):
            setattr(self, str(i), member)

    def __len__(self) -> int:
        return len(self._members())

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._members().values()))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._from_members(list(self)[index])
        return self._members()[self._key(index)]

    def _from_members(self, members: list[Any]) -> Any:
        made: Any = type(self)
        return made(members)

    def __setitem__(self, index: int, member: Any) -> None:
        setattr(self, self._key(index), member)

    def __delitem__(self, index: Any) -> None:
        kept = list(self)
        del kept[index if isinstance(index, slice) else int(self._key(index))]
        self._renumber(kept)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, member: Any) -> Any:
        """Append a member."""
        setattr(self, str(len(self)), member)
        return self

    def extend(self, members: Iterable[Any]) -> Any:
        """Append several members."""
        for member in list(members):
            self.append(member)
        return self

    def insert(self, index: int, member: Any) -> None:
        """Insert a member before `index`."""
        kept = list(self)
        kept.insert(index, member)
        self._renumber(kept)

    def pop(self, index: int = -1) -> Any:
        """Remove and return a member."""
        member = self[index]
        del self[index]
        return member

    def __iadd__(self, members: Iterable[Any]) -> Any:
        return self.extend(members)

    def __add__(self, other: Iterable[Any]) -> Any:
        return self._from_members([*self, *other])


def check_module(owner: Module, member: Any) -> Any:
    """Return `member`; raise ModuleError unless it is a Module or None."""
    if member is not None and not isinstance(member, Module):
        raise ModuleError(f"{type(owner).__name__}: a {type(member).__name__} is not a Module")
    return member


@public("nn")
class Sequential(IndexedContainer):
    """Modules applied one after another.

    >>> import lucid
    >>> nn = lucid.nn
    >>> nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))(lucid.ones(3, 2)).shape
    (3, 1)
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self.register_module(name, check_module(self, module))
        else:
            self.extend(modules)

    def append(self, member: Any) -> Any:
        """Append a module."""
        number = len(self)
        while str(number) in self._modules:  # a slice keeps the numbers of its source
            number += 1
        self.register_module(str(number), check_module(self, member))
        return self

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(dict(list(self._modules.items())[index]))
        return super().__getitem__(index)

    def _key(self, index: int) -> str:
        return list(self._modules)[int(super()._key(index))]

    def _from_members(self, members: list[Any]) -> Any:
        return type(self)(*members)

    def __mul__(self, times: int) -> Any:
        return self._from_members(list(self) * check_repeats(self, times))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Any:
        self._renumber(list(self) * check_repeats(self, times))
        return self

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input


def check_repeats(owner: Module, times: Any) -> int:
    """Return a positive integer; raise ModuleError for anything else."""
    if not isinstance(times, int) or isinstance(times, bool) or times < 1:
        raise ModuleError(
            f"{type(owner).__name__}: the number of repeats must be positive, not {times!r}"
        )
    return times


@public("nn")
class ModuleList(IndexedContainer):
    """A list of modules."""

    def __init__(self, modules: Iterable[Any] = ()) -> None:
        super().__init__()
        self.extend(modules or ())

    def append(self, member: Any) -> Any:
        """Append a module."""
        self.register_module(str(len(self)), check_module(self, member))
        return self


@public("nn")
class ParameterList(IndexedContainer):
    """A list of parameters; other tensors are converted to parameters."""

    _registry = "_parameters"

    def __init__(self, values: Iterable[Any] = ()) -> None:
        super().__init__()
        self.extend(values or ())

    def append(self, member: Any) -> Any:
        """Append a parameter."""
        setattr(self, str(len(self)), as_parameter(member))
        return self

    def __setitem__(self, index: int, member: Any) -> None:
        setattr(self, self._key(index), as_parameter(member))

    def extra_repr(self) -> str:
        return "\n".join(f"({i}): {describe(p)}" for i, p in enumerate(self))


class KeyedContainer(Module):
    """The base of containers with named members, kept in the dictionary `_registry`."""

    _registry = "_modules"

    def _members(self) -> dict[str, Any]:
        return getattr(self, self._registry)

    def __len__(self) -> int:
        return len(self._members())

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._members()))

    def __contains__(self, name: Any) -> bool:
        return name in self._members()

    def __getitem__(self, name: str) -> Any:
        if name not in self._members():
            raise ModuleError(f"{type(self).__name__} has no {name!r}")
        return self._members()[name]

    def __delitem__(self, name: str) -> None:
        self.pop(name)

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._members().keys()

    def values(self) -> Iterable[Any]:
        """Return the members."""
        return self._members().values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return pairs of names and members."""
        return self._members().items()

    def pop(self, name: str) -> Any:
        """Remove and return a member."""
        member = self[name]
        attribute_changes[0] += 1
        del self._members()[name]
        return member

    def clear(self) -> None:
        """Remove all members."""
        attribute_changes[0] += 1
        self._members().clear()

    def update(self, members: Any) -> None:
        """Add the members of a dictionary or of an iterable of pairs."""
        for name, member in dict(members).items():
            self[name] = member

    def __setitem__(self, name: str, member: Any) -> None:
        raise NotImplementedError


@public("nn")
class ModuleDict(KeyedContainer):
    """A dictionary of modules."""

    def __init__(self, modules: Any = ()) -> None:
        super().__init__()
        self.update(modules or ())

    def __setitem__(self, name: str, member: Any) -> None:
        self.register_module(name, check_module(self, member))


@public("nn")
class ParameterDict(KeyedContainer):
    """A dictionary of parameters; other tensors are converted to parameters."""

    _registry = "_parameters"

    def __init__(self, parameters: Any = ()) -> None:
        super().__init__()
        self.update(parameters or ())

    def __setitem__(self, name: str, member: Any) -> None:
        self.register_parameter(name, as_parameter(member))

    def get(self, name: str, default: Any = None) -> Any:
        """Return the parameter with this name, or `default`."""
        return self[name] if name in self else default

    def setdefault(self, name: str, default: Any = None) -> Any:
        """Return the parameter with this name; add `default` if there is none."""
        if name not in self:
            self[name] = default
        return self[name]

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the last name and parameter."""
        if not len(self):
            raise ModuleError("ParameterDict: popitem of an empty dictionary")
        name = list(self)[-1]
        return name, self.pop(name)

    def copy(self) -> ParameterDict:
        """Return a new dictionary with the same parameters."""
        return ParameterDict(dict(self.items()))

    def fromkeys(self, names: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a dictionary with the same value for all names."""
        return ParameterDict(dict.fromkeys(names, default))

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self))

    def __or__(self, other: Any) -> ParameterDict:
        return ParameterDict({**dict(self.items()), **dict(other.items())})

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        return "\n".join(f"({name}): {describe(p)}" for name, p in self.items())


def as_parameter(value: Any) -> Any:
    """Return `value` as a Parameter; None stays None."""
    return value if value is None or isinstance(value, Parameter) else Parameter(value)


def describe(p: Any) -> str:
    """Return the dtype and shape of a parameter as text."""
    return f"Parameter containing: [{p.dtype} of size {'x'.join(map(str, p.shape)) or '1'}]"
