"""from_graph: an eager result as a pure function of some of the tensors it was computed from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lucid.errors import ArgumentError, GraphError
from lucid.ir.pytree import flatten
from lucid.ops.core.promote import as_tensor
from lucid.public.declare import public
from lucid.tape.cut import cut
from lucid.tape.node import Traced
from lucid.tape.recording.trace import replay


@public("func")
def from_graph(result: Any, inputs: Any) -> Callable[..., Any]:
    """Return the pure function that computed an eager result from `inputs`.

    inputs    a tensor, or a sequence of tensors: the arguments of the function in this order

    Everything else the result was computed from is a constant. The function can be transformed,
    jitted and exported; `function.graph` is its Graph.

    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0], requires_grad=True)
    >>> loss = (x * x * 3.0).sum()
    >>> f = lucid.func.from_graph(loss, x)
    >>> f(lucid.tensor([2.0, 2.0]))
    Tensor(24.)
    >>> lucid.func.grad(f)(lucid.tensor([2.0, 2.0]))
    Tensor([12., 12.])
    """
    starts: Sequence[Any] = [inputs] if isinstance(inputs, Traced) else flatten(inputs)[0]
    for x in starts:
        if not isinstance(x, Traced):
            raise ArgumentError(f"from_graph: inputs has {x!r:.40}, which is not a tensor")
    ends = flatten(result)[0]
    for y in ends:
        if not isinstance(y, Traced) or y.node is None:
            raise GraphError(
                "from_graph: the result has no history; some input must require a gradient"
            )
    section = cut(list(starts), ends)
    captured = [section.slots[slot] for slot in section.captured]
    if any(node.saved is None for node in captured):
        raise GraphError("from_graph: a value behind the result was not kept; add it to inputs")
    graph = section.graph("from_graph")
    constants = [as_tensor(node.saved) for node in captured]
    single = isinstance(result, Traced)

    def function(*xs: Any) -> Any:
        if len(xs) != len(starts):
            raise GraphError(f"from_graph: {len(xs)} arguments given, {len(starts)} expected")
        outs = replay(graph, [*[as_tensor(x) for x in xs], *constants])
        return outs[0] if single else tuple(outs)

    function.__name__ = function.__qualname__ = "from_graph"
    function.graph = graph  # type: ignore[attr-defined]
    return function
