"""Module: a function with parameters, buffers and submodules.

Assigning to an attribute registers the value by its type. A Module is also a pytree
(structure.py), so `grad`, `vmap` and `jit` take it as an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from lucid.errors import DTypeError, ModuleError
from lucid.ir.types import dtype_of, is_differentiable
from lucid.nn import hooks, structure
from lucid.nn.hooks import HookMethods
from lucid.nn.parameter import Buffer, Parameter, recast
from lucid.nn.state import State
from lucid.nn.uninitialized import Uninitialized
from lucid.ops.core.arguments import accepts_device, check_device, is_device
from lucid.ops.core.constructors import ClearConstructor
from lucid.public.declare import public
from lucid.tape.modes import current, leave, local, set_modes
from lucid.tape.node import active_recorders, is_recording
from lucid.tape.recording.recorder import attribute_changes, watch_attributes
from lucid.tensors.tensor import Tensor

M = TypeVar("M", bound="Module")
REGISTERED = ("_parameters", "_buffers", "_modules")


@public("nn")
class Module(State, HookMethods, ClearConstructor):
    """The base of all layers and networks: subclasses define `__init__` and `forward`.

    Parameters, buffers and modules assigned to attributes are found by `parameters()`,
    `state_dict()`, `to()`, `train()` and the like. A Module is a pytree of its tensors, so
    `func.grad`, `func.vmap` and `jit` take it as an argument.

    >>> import lucid
    >>> class Scale(lucid.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = lucid.nn.Parameter(lucid.tensor(3.0))
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> Scale()(lucid.tensor([1.0, 2.0])).detach()
    Tensor([3., 6.])
    """

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]

    def __init__(self) -> None:
        for name in REGISTERED:
            object.__setattr__(self, name, {})
        object.__setattr__(self, "_non_persistent", set())
        object.__setattr__(self, "_hooks", hooks.Hooks())
        object.__setattr__(self, "_training", True)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        structure.register(cls)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result of the module; every subclass defines it."""
        raise ModuleError(f"{type(self).__name__} has no forward(); define one in the class")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        outer = current()
        inner = outer.inner.get(id(self))  # `outer.inside(self)`, unrolled
        if inner is None or inner.scope.owner() is not self:  # type: ignore[union-attr]
            inner = outer.inside(self)
        set_modes(inner)
        try:
            found = self._hooks
            if found.before or found.after or found.backward_before or found.backward_after:
                return hooks.call_with_hooks(self, args, kwargs)
            return self.forward(*args, **kwargs) if kwargs else self.forward(*args)
        finally:
            if current() is inner:
                set_modes(outer)
            else:
                leave(inner, outer)

    # Attributes

    def __setattr__(self, name: str, value: Any) -> None:
        inside = self.__dict__
        attribute_changes[0] += 1
        if "_modules" not in inside:
            if isinstance(value, (Parameter, Module, Buffer)):
                raise ModuleError(
                    f"{type(self).__name__}: call super().__init__() before {name!r} is assigned"
                )
            return object.__setattr__(self, name, value)
        computed = inside["_modules"].get("parametrizations")
        if computed is not None and name in computed and isinstance(value, Tensor):
            return computed[name].assign(value)
        for kind, place in ((Parameter, "_parameters"), (Buffer, "_buffers"), (Module, "_modules")):
            if isinstance(value, kind):
                self._non_persistent.discard(name)
                if name not in inside[place]:  # a replacement keeps its position
                    self._unregister(name)
                inside[place][name] = value
                if isinstance(value, Buffer) and not value.persistent:
                    self._non_persistent.add(name)
                return None
        for place in REGISTERED:
            if name in inside[place]:
                check_replacement(self, place, name, value)
                inside[place][name] = value
                return None
        return object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        inside = self.__dict__
        for place in REGISTERED:
            found = inside.get(place)
            if found is not None and name in found:
                if active_recorders and is_recording():
                    local.recorder.guard_entry(found, name)
                return found[name]
        computed = self.__dict__.get("_modules", {}).get("parametrizations")
        if computed is not None and name in computed:
            return computed[name]()
        if name in self.__dict__.get("_pruned", ()):
            return getattr(self, f"{name}_orig") * getattr(self, f"{name}_mask")
        facts = f"{type(self).__name__} has no attribute {name!r}"
        raise AttributeError(facts, name=name, obj=self)

    def __delattr__(self, name: str) -> None:
        attribute_changes[0] += 1
        if not self._unregister(name):
            object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(n for p in REGISTERED for n in self.__dict__[p])})

    def _unregister(self, name: str) -> bool:
        """Remove a name from wherever it is registered; True if it was."""
        self._non_persistent.discard(name)
        found = [self.__dict__[place].pop(name, structure) for place in REGISTERED]
        found.append(self.__dict__.pop(name, structure))
        return any(x is not structure for x in found)

    @property
    def training(self) -> bool:
        """True in training, False in evaluation; `train()` and `eval()` switch it."""
        if active_recorders and is_recording():
            local.recorder.guard_entry(self.__dict__, "_training")
        return self.__dict__["_training"]

    @training.setter
    def training(self, mode: bool) -> None:
        object.__setattr__(self, "_training", bool(mode))

    def register_parameter(self, name: str, param: Any) -> None:
        """Add a parameter; None reserves the name."""
        self._check_name(name, "register_parameter")
        if param is not None and not isinstance(param, Parameter):
            raise ModuleError(
                f"register_parameter: {name!r} is a {type(param).__name__}, not a Parameter"
            )
        attribute_changes[0] += 1
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Add a tensor that is not a parameter; `state_dict` includes it if `persistent`."""
        self._check_name(name, "register_buffer")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise ModuleError(
                f"register_buffer: {name!r} is a {type(tensor).__name__}, not a Tensor"
            )
        attribute_changes[0] += 1
        self._buffers[name] = tensor
        if not persistent:
            self._non_persistent.add(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Add a submodule."""
        self._check_name(name, "register_module")
        if module is not None and not isinstance(module, Module):
            raise ModuleError(
                f"register_module: {name!r} is a {type(module).__name__}, not a Module"
            )
        attribute_changes[0] += 1
        self._modules[name] = module

    add_module = register_module

    def _check_name(self, name: str, what: str) -> None:
        if "_modules" not in self.__dict__:
            raise ModuleError(f"{what}: call super().__init__() first")
        if not isinstance(name, str) or not name or "." in name:
            raise ModuleError(f"{what}: {name!r} is not a valid name (nonempty, without dots)")
        if hasattr(self, name) and not any(name in self.__dict__[p] for p in REGISTERED):
            raise ModuleError(f"{what}: {type(self).__name__} already has {name!r}")

    # Traversal

    def named_modules(
        self, memo: set[int] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Iterate over this module and all submodules, with their names."""
        memo = set() if memo is None else memo
        if id(self) in memo:
            return
        if remove_duplicate:
            memo.add(id(self))
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Iterate over this module and all submodules."""
        named = self.named_modules(remove_duplicate=remove_duplicate)
        return (module for _, module in named)

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterate over the direct submodules, with their names."""
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator[Module]:
        """Iterate over the direct submodules."""
        return (module for _, module in self.named_children())

    def _named(
        self, place: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, module in modules:
            for name, x in getattr(module, place).items():
                if x is None or id(x) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(x))
                yield (f"{path}.{name}" if path else name), x

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Iterate over the parameters with their names; a shared one appears once."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """Iterate over the parameters."""
        return (x for _, x in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Iterate over the buffers with their names."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """Iterate over the buffers."""
        return (x for _, x in self.named_buffers(recurse=recurse))

    def path_of(self, module: Module) -> str:
        """Return the path of a module inside this one, "" if it is not there."""
        return next((path for path, found in self._inside() if found is module), "")

    def named_tensors(self, known: Mapping[int, str] | None = None) -> Iterator[tuple[str, Any]]:
        """Iterate over the parameters and buffers with their names."""
        for path, module in self._inside():
            for place in REGISTERED[:2]:
                for name, x in module.__dict__[place].items():
                    if x is not None:
                        yield (f"{path}.{name}" if path else name), x

    def _inside(self) -> Iterator[tuple[str, Module]]:
        """Iterate over the modules with their paths, outer ones first, hidden from recordings."""
        found: list[tuple[str, Module]] = [("", self)]
        seen = {id(self)}
        for path, module in found:
            yield path, module
            for name, child in module.__dict__["_modules"].items():
                if child is not None and id(child) not in seen:
                    seen.add(id(child))
                    found.append((f"{path}.{name}" if path else name, child))

    def get_submodule(self, target: str) -> Module:
        """Return the submodule with a name such as `"layers.0.attention"`; `""` is this one."""
        module: Any = self
        for part in target.split(".") if target else ():
            module = module._modules.get(part) if isinstance(module, Module) else None
            if module is None:
                raise ModuleError(f"get_submodule: {type(self).__name__} has no module {target!r}")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replace the submodule with this name; `strict` requires that there is one."""
        path, _, name = target.rpartition(".")
        outer = self.get_submodule(path)
        if strict and name not in outer._modules:
            raise ModuleError(f"set_submodule: {type(self).__name__} has no module {target!r}")
        outer.register_module(name, module)

    def get_parameter(self, target: str) -> Any:
        """Return the parameter with this name."""
        return self._get("_parameters", target, "parameter")

    def get_buffer(self, target: str) -> Any:
        """Return the buffer with this name."""
        return self._get("_buffers", target, "buffer")

    def _get(self, place: str, target: str, kind: str) -> Any:
        path, _, name = target.rpartition(".")
        found = self.get_submodule(path).__dict__[place].get(name)
        if found is None:
            raise ModuleError(f"{type(self).__name__} has no {kind} {target!r}")
        return found

    # Modes and conversion

    def train(self: M, mode: bool = True) -> M:
        """Set this module and all submodules to training mode."""
        if not isinstance(mode, bool):
            raise ModuleError(f"train: mode must be True or False, not {mode!r}")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self: M) -> M:
        """Set this module and all submodules to evaluation mode."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Set `requires_grad` of all parameters."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zeros."""
        for p in self.parameters():
            p.zero_grad(set_to_none)

    def apply(self: M, fn: Callable[[Module], Any]) -> M:
        """Call `fn` on every submodule, children first, then on this module."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    @accepts_device
    def to(self: M, *args: Any, dtype: Any = None, non_blocking: bool = False) -> M:
        """Convert floating parameters and buffers to a dtype, in place."""
        for arg in args:
            if isinstance(arg, Tensor):
                dtype = arg.dtype
            elif is_device(arg):
                check_device("to", arg)
            elif arg is not None and not isinstance(arg, bool):
                dtype = arg
        return self if dtype is None else self._convert(dtype_of(dtype))

    def _convert(self: M, dtype: Any) -> M:
        if not is_differentiable(dtype):
            raise DTypeError(f"to: dtype must be floating or complex, not {dtype}")
        for module in self.modules():
            for name, p in module._parameters.items():
                if isinstance(p, Uninitialized):
                    p.to(dtype)
                elif p is not None and is_differentiable(p.dtype) and p.dtype != dtype:
                    module._parameters[name] = recast(p, dtype)
            for name, b in module._buffers.items():
                if b is not None and is_differentiable(b.dtype):
                    module._buffers[name] = b.to(dtype)
        return self

    def float(self: M) -> M:
        """Convert floating parameters and buffers to float32."""
        return self.to("float32")

    def double(self: M) -> M:
        """Convert floating parameters and buffers to float64."""
        return self.to("float64")

    def half(self: M) -> M:
        """Convert floating parameters and buffers to float16."""
        return self.to("float16")

    def type(self: M, dst_type: Any) -> M:
        """Convert floating parameters and buffers to a dtype, in place."""
        return self.to(dst_type)

    def cpu(self: M) -> M:
        """Return this module; there is only the CPU."""
        return self

    # Printing

    def extra_repr(self) -> str:
        """Return the text in the parentheses of this module's repr."""
        return ""

    def __repr__(self) -> str:
        inside = [f"({name}): {module!r}" for name, module in self._modules.items()]
        extra = self.extra_repr()
        if not inside:
            return f"{type(self).__name__}({extra})"
        lines = [*([extra] if extra else []), *inside]
        body = "\n".join(lines).replace("\n", "\n  ")
        return f"{type(self).__name__}(\n  {body}\n)"


def check_replacement(module: Module, place: str, name: str, value: Any) -> None:
    """Raise ModuleError if a registered name would change its kind."""
    if value is None:
        return
    fits = isinstance(value, Module) if place == "_modules" else isinstance(value, Tensor)
    if place == "_parameters" and fits and not isinstance(value, Parameter):
        fits = not isinstance(module._parameters[name], Parameter)
    if not fits:
        kind = {"_parameters": "Parameter", "_buffers": "Tensor", "_modules": "Module"}[place]
        raise ModuleError(
            f"{type(module).__name__}.{name} is registered as a {kind} and cannot become a "
            f"{type(value).__name__}; del it first"
        )


def recorded_getattribute(module: Module, name: str) -> Any:
    """`__getattribute__` of a Module during jit's recording, which guards what it reads."""
    value = object.__getattribute__(module, name)
    if name != "__dict__" and is_recording() and name in module.__dict__:
        local.recorder.guard_attribute(module, name, structure.comparison_key)
    return value


structure.register(Module)
watch_attributes(Module, recorded_getattribute)
