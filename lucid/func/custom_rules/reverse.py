"""custom_vjp: a function whose reverse-mode rule the user gives.

The rule is traced once for every differentiated call and becomes one equation that every transform
supports. A tensor that the function closes over is a constant: pass it as an argument to
differentiate with respect to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any

from lucid.autograd.functions.calls import derivative_like
from lucid.autograd.functions.function import Function
from lucid.errors import GraphError
from lucid.func.custom_rules.arguments import (
    Arguments,
    CustomRuleFunction,
    P,
    R,
    flatten_derivatives,
)
from lucid.ir.pytree import flatten, unflatten
from lucid.public.declare import public
from lucid.tape.node import Traced
from lucid.tape.recording.trace import function_name

_running: dict[int, list[Any]] = {}  # custom_vjp functions whose fwd is running, by thread
_running_bwd: dict[int, list[Any]] = {}  # those whose bwd is running


@public("func")
class custom_vjp(CustomRuleFunction[P, R]):
    """A function whose reverse-mode rule is given by `defvjp(fwd, bwd)`.

    fwd(*args)            (output, residuals)
    bwd(residuals, ct)    a tuple with the cotangent of every argument, None for zero

    Static arguments (`nondiff_argnums`) come first in bwd.

    >>> import lucid
    >>> @lucid.func.custom_vjp
    ... def clip_gradient(x):
    ...     return x * 1.0
    >>> clip_gradient.defvjp(
    ...     lambda x: (x * 1.0, None), lambda res, ct: (ct.clamp(-1.0, 1.0),)
    ... )
    >>> lucid.func.grad(lambda x: 5.0 * clip_gradient(x))(lucid.tensor(2.0))
    Tensor(1.)
    """

    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Set the reverse-mode rule."""
        self.fwd, self.bwd = fwd, bwd

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.fwd is None or self.bwd is None:
            raise self.missing_rule_error("defvjp")
        arguments = self.arguments(args, kwargs)
        if not arguments.is_tracked or self in _running.get(get_ident(), ()):
            return self.function(*arguments.args)
        call = VjpCall(self, arguments)
        outputs = CustomVjpCall.apply(call, *arguments.leaves)
        return unflatten(call.out_tree, outputs)


class VjpCall:
    """One call of a custom_vjp function: maps leaves to arguments, residuals and results."""

    def __init__(self, custom_function: custom_vjp, arguments: Arguments) -> None:
        self.custom_function, self.arguments = custom_function, arguments
        self.name = function_name(custom_function.function)
        self.out_tree: Any = None
        self.residual_tree: Any = None
        self.residuals: list[Any] = []

    def forward(self, leaves: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the leaves of the result, and the residuals that are tensors."""
        running = _running.setdefault(get_ident(), [])
        running.append(self.custom_function)  # a call inside fwd runs the plain function
        try:
            result = self.custom_function.fwd(*self.arguments.all(leaves))  # type: ignore[misc]
        finally:
            running.remove(self.custom_function)
        if not isinstance(result, tuple) or len(result) != 2:
            raise GraphError(f"{self.name}: fwd must return (output, residuals)")
        outputs, self.out_tree = flatten(result[0])
        self.residuals, self.residual_tree = flatten(result[1])
        return outputs, [x for x in self.residuals if isinstance(x, Traced)]

    def backward(self, saved: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        rest = iter(saved)
        leaves = [next(rest) if isinstance(x, Traced) else x for x in self.residuals]
        residuals = unflatten(self.residual_tree, leaves)
        ct = unflatten(self.out_tree, cts)
        given = self.run_bwd(residuals, ct)
        if len(self.arguments.positions) == 1 and not isinstance(given, (tuple, list)):
            given = (given,)
        found = flatten_derivatives(self.name, given, self.arguments.tree)
        said = f"{self.name}: the rule returned a cotangent"
        return [
            None if g is None else derivative_like(said, "an argument", g, x.type)
            for g, x in zip(found, self.arguments.leaves)
        ]

    def run_bwd(self, residuals: Any, ct: Any) -> Any:
        """Run the user's rule, which must not call itself: tracing it would never end."""
        running = _running_bwd.setdefault(get_ident(), [])
        if self.custom_function in running:
            raise GraphError(
                f"{self.name}: its bwd calls {self.name} itself, so tracing would never end; call "
                "a plain function there, or define the rule with custom_jvp"
            )
        running.append(self.custom_function)
        try:
            return self.custom_function.bwd(*self.arguments.static, residuals, ct)  # type: ignore[misc]
        finally:
            running.remove(self.custom_function)


class CustomVjpCall(Function):
    """The autograd Function that runs a VjpCall."""

    @classmethod
    def _label(cls, args: Sequence[Any]) -> str:
        return args[0].name

    @classmethod
    def _again(cls, args: Sequence[Any], kwargs: Any) -> Any:
        call, *leaves = args
        return call.custom_function(*call.arguments.all(leaves))

    @staticmethod
    def forward(ctx: Any, call: VjpCall, *leaves: Any) -> Any:
        ctx.call = call
        outputs, saved = call.forward(leaves)
        ctx.save_for_backward(*saved)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *cts: Any) -> Any:
        return (None, *ctx.call.backward(ctx.saved_tensors, cts))
