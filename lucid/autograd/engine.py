"""backward and grad: cut the tape between roots and leaves, and pull back seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sys import getrefcount
from threading import get_ident
from typing import Any

import numpy as np

from lucid.autograd.accumulate import (
    apply_leaf_hooks,
    cell_of,
    is_tracked,
    store_arrays,
    store_gradients,
    unshared,
)
from lucid.autograd.anomaly import explain_nan
from lucid.autograd.following.follow import expect_next, prepare_followed
from lucid.autograd.following.step_run import can_wait
from lucid.autograd.following.step_sequence import learn
from lucid.autograd.graph import GradientPass, gradient_pass, without_edges
from lucid.autograd.watch import has_watchers, prepare_watched
from lucid.compiler.jit.reroll_recording import reroll_recording
from lucid.errors import DTypeError, GraphError, ShapeError
from lucid.ir.types import Type
from lucid.ops.core.arguments import flag, public_function
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.shape.derivative_seeds import full_constant, zeros_like
from lucid.public.declare import public
from lucid.support.caches import memoize
from lucid.tape.cut import Cut, cut_nodes
from lucid.tape.markers import STOP_GRADIENT
from lucid.tape.modes import current, local
from lucid.tape.node import (
    FREED,
    GRAD,
    LOCAL_REFERENCES,
    TRACE,
    GradCell,
    Node,
    counters,
    followers,
    is_recording,
    wrap,
)
from lucid.tape.recording.pending import is_pending
from lucid.tape.template import find_cut
from lucid.tape.tiering import Tiering
from lucid.tape.views import node_of
from lucid.transforms.prepare import prepare, without_gradient


@public("autograd")
def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
    *,
    keep_grad: bool = False,
) -> None:
    """Accumulate into `.grad` of every leaf the gradient of the (weighted) sum of `tensors`.

    grad_tensors    a cotangent for each root; ones where None
    retain_graph    keep the graph for another backward
    create_graph    record the backward pass too, for derivatives of higher order
    inputs          only these tensors receive a gradient
    keep_grad       also keep the gradients of all intermediate results

    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> lucid.autograd.backward((x * x).sum())
    >>> x.grad
    Tensor([2., 4., 6.])
    """
    roots = as_list(tensors)
    if not roots:
        raise GraphError("backward: no tensors given")
    if len(roots) == 1:
        backward_from(roots[0], grad_tensors, retain_graph, create_graph, inputs, keep_grad)
        return
    with gradient_pass():
        pull_back(roots, grad_tensors, retain_graph, create_graph, inputs, keep_grad, None)


def backward_from(
    root: Any,
    seeds: Any,
    retain_graph: bool | None,
    create_graph: bool,
    inputs: Any,
    keep_grad: bool,
) -> None:
    """`backward` from one tensor."""
    cut = None
    if (
        seeds is None
        and (retain_graph is None or retain_graph is False)
        and create_graph is False
        and inputs is None
        and keep_grad is False
        and current().no_observers
        and not GradientPass.registered
    ):
        done, cut = backward_plain(root)
        if done:
            return
    with gradient_pass():
        pull_back([root], seeds, retain_graph, create_graph, inputs, keep_grad, cut)


def pull_back(
    roots: list[Any],
    grad_tensors: Any,
    retain_graph: bool | None,
    create_graph: bool,
    inputs: Any,
    keep_grad: bool,
    cut: Cut | None,
) -> None:
    """`backward` in every case; `cut` is that of the tape if it is known."""
    create_graph = flag("backward", "create_graph", create_graph)
    keep_grad = flag("backward", "keep_grad", keep_grad)
    if retain_graph is not None:
        retain_graph = flag("backward", "retain_graph", retain_graph)
    if is_recording():
        reroll_recording(roots)
    nodes = [root_node(root) for root in roots]
    seeds = [
        seed_for(root, g) for root, g in zip(roots, as_seeds(grad_tensors, len(roots)), strict=True)
    ]
    if inputs is None:
        cut = find_cut(nodes) if cut is None else cut
    else:
        targets = as_list(inputs)
        if not targets:
            raise GraphError("backward: inputs is empty; leave it out to reach every leaf")
        cut = cut_nodes([node for x in targets for node in nodes_of_leaf(target_node(x))], nodes)
    if keep_grad or GradCell.any_keep:
        retain_results(cut, keep_grad)
    starts, watched = leaf_nodes(cut), has_watchers(cut, True)
    grads = run(cut, seeds, create_graph, bool(retain_graph) or create_graph, keep=True)
    seen = [g for g in grads if g is not None] if watched else []  # hooks may have kept them
    given: set[int] = {id(x.raw) for x in (*seeds, *seen)}
    store_gradients(starts, grads, create_graph, inputs is None, given)


def backward_plain(root: Any) -> tuple[bool, Cut | None]:
    """`backward` from one number, unrolled for a tape that nothing watches.

    Nothing but the values differs from step to step: the derivative of the Cut is at hand. Return
    whether it is done, and the Cut if not.
    """
    node = getattr(root, "node", None)
    if node is None or node.flags & (GRAD | TRACE) != GRAD or root.shape != ():
        return False, None
    if followers and backward_followed(root):
        return True, None
    cut = find_cut([node_of(root)])
    prepared = cut.prepared.get(_ONE_ROOT)
    if GradCell.any_keep:
        retain_results(cut, False)
    if prepared is None or has_watchers(cut, True):
        return False, cut
    sequence = learn(cut) if Tiering.enabled else None
    starts = leaf_nodes(cut)
    seed = unit_seed(root.raw.dtype)
    arrays = run_arrays(prepared, cut, seed)
    free(cut, starts, prepared.types)
    store_results(prepared, starts, arrays, seed)
    if sequence is not None:
        expect_next(sequence, get_ident())
    return True, None


def run_arrays(prepared: Any, cut: Cut, seed: np.ndarray) -> Sequence[np.ndarray]:
    """`Prepared.run` on arrays, with one seed for all results: nothing is recorded."""
    derivative = prepared.derivative
    given = prepared.residual_arrays(cut)
    given += [seed] * len(derivative.seeds)
    given += derivative.constants
    return prepared.program(given)  # type: ignore[no-any-return]


def store_results(
    prepared: Any, starts: Sequence[Node], arrays: Sequence[np.ndarray], seed: np.ndarray
) -> None:
    """Add the results of a derivative to the gradients of the leaves."""
    if not (prepared.complete and store_arrays(starts, arrays)):
        grads = prepared.derivative.with_zeros([wrap(y) for y in arrays])
        store_gradients(starts, grads, False, True, {id(seed)})


_ONE_ROOT = ("vjp", True)  # the key of a derivative in `Cut.prepared`


def backward_followed(root: Any) -> bool:
    """Run the step that leads to this root, if it was followed; False if it was not."""
    if not is_pending(root.raw):
        return False
    seed = unit_seed(root.dtype)
    found = prepare_followed(root, seed)
    if found is None:
        return False
    cut, run = found
    starts = leaf_nodes(cut)
    cells = [node.cell for node in starts]
    if can_wait(run, cells):
        counters.backward_passes += 1
        run.wait(cells)  # type: ignore[arg-type]
        return True
    arrays = run.run()
    followers.pop(get_ident(), None)
    store_results(run.sequence.prepared, starts, arrays, seed)
    run.follower.expect_next(get_ident())
    return True


def retain_results(cut: Cut, all_results: bool) -> None:
    """Make results retain their gradients: all, or those computed from a leaf with `keep`."""
    cells = [(slot, cut.slots[slot].cell) for slot in cut.inputs]
    keeping: set[Any] = {slot for slot, cell in cells if cell is not None and cell.keep}
    if not (keeping or all_results):
        return
    for _, refs, slot, _, _ in cut.rows:
        if all_results or not keeping.isdisjoint(refs):
            keeping.add(slot)
            cell_of(cut.slots[slot]).retain = True


@public_function("autograd")
def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    allow_unused: bool = False,
    *,
    create_graph: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """Return the gradients of `outputs` with respect to `inputs`; `.grad` is not changed.

    A single tensor returns a single gradient; a list, or `model.parameters()`, returns a tuple.

    >>> import lucid
    >>> x = lucid.tensor([1.0, -2.0, 3.0], requires_grad=True)
    >>> lucid.autograd.grad((x * x).sum(), x)
    Tensor([ 2., -4.,  6.])
    """
    roots, targets = as_list(outputs), as_list(inputs)
    with gradient_pass():
        results = gradients(
            roots, targets, grad_outputs, retain_graph, allow_unused, create_graph,
            materialize_grads,
        )  # fmt: skip
    return results[0] if hasattr(inputs, "node") else tuple(results)


def gradients(
    roots: list[Any],
    targets: list[Any],
    grad_outputs: Any,
    retain_graph: bool | None,
    allow_unused: bool,
    create_graph: bool,
    materialize_grads: bool,
) -> list[Any]:
    """`grad` for lists of tensors."""
    retain = create_graph if retain_graph is None else retain_graph
    given = as_seeds(grad_outputs, len(roots))
    if is_recording():
        reroll_recording(roots)
    live = [(root, g) for root, g in zip(roots, given, strict=True) if is_tracked(root)]
    if len(live) < len(roots) and not (allow_unused or materialize_grads):
        raise GraphError(
            "grad: an output does not require a gradient: it was not computed from a tensor with "
            "requires_grad=True, or was computed under no_grad(); "
            "allow_unused=True returns None for it"
        )
    starts = [target_node(x) for x in targets]
    results: list[Any] = [None] * len(targets)
    if live:
        groups = [nodes_of_leaf(node) for node in starts]
        ends = [node_of(root) for root, _ in live]
        cut = cut_nodes([node for group in groups for node in group], ends)
        seeds = [seed_for(root, g) for root, g in live]
        reaching = reaching_slots(cut)
        reached = iter([slot in reaching for slot in cut.inputs])
        grads = iter(run(cut, seeds, create_graph, retain, keep=False))
        results = [total([next(grads) for _ in group]) for group in groups]
        for i, (x, group) in enumerate(zip(targets, groups)):
            is_reached = any([next(reached) for _ in group])
            if results[i] is None and is_reached:  # through floor, round and the like
                results[i] = zeros_like(x, x.node.flags & TRACE)
    results = [apply_leaf_hooks(node, g, create_graph) for node, g in zip(starts, results)]
    for i, (x, g) in enumerate(zip(targets, results)):
        if g is None and materialize_grads:
            results[i] = zeros_like(x, x.node.flags & TRACE)
        elif g is None and not allow_unused:
            raise GraphError(
                f"grad: input {i} of type {x.type} was not used to compute the outputs; "
                "allow_unused=True returns None for it"
            )
    return unshared(results)


def reaching_slots(cut: Cut) -> set[Any]:
    """Return the slots that the outputs of a Cut were computed from, with a derivative."""
    reaching: set[Any] = set(cut.outputs)
    for op, refs, slot, _, _ in reversed(cut.rows):
        if slot in reaching and op.differentiable and op is not STOP_GRADIENT:
            reaching.update(refs)
    return reaching


def nodes_of_leaf(node: Node) -> list[Node]:
    """Return the Node of a target and, for a leaf that was changed in place, its earlier ones."""
    if node.op is not None or node.cell is None or not node.cell.previous_nodes:
        return [node]
    return [node, *node.cell.live_previous_nodes()]


def total(grads: Sequence[Any]) -> Any:
    """Return the sum of the gradients that are not None, or None."""
    present = [g for g in grads if g is not None]
    return sum(present[1:], present[0]) if present else None


def run(
    cut: Cut, seeds: Sequence[Any], create_graph: bool, retain_graph: bool, keep: bool
) -> list[Any]:
    """Pull the seeds back through a Cut, calling hooks, then free it.

    `keep` says whether results with retain_grad() get their `.grad`.
    """
    record = create_graph or any([cut.slots[slot].flags & TRACE for slot in cut.outputs])  # type: ignore[index]
    seeded = [True] * len(seeds)
    before = local.grad
    local.grad = True
    try:
        if has_watchers(cut, keep):
            prepared = prepare_watched(cut, seeded, keep)
        else:
            prepared = prepare("vjp", cut, seeded)
        if not create_graph:  # the gradient is a constant for whatever is computed from it
            seeds = [without_gradient(seed) for seed in seeds]
        grads = prepared.run(cut, seeds, record, constant=not create_graph)
    finally:
        local.grad = before
    if local.anomaly:
        explain_nan(cut, seeds, grads)
    if not retain_graph and not is_recording():  # a recording still needs every equation
        free(cut, leaf_nodes(cut), prepared.types)
    return grads


def free(cut: Cut, starts: Sequence[Node], types: Sequence[Type]) -> None:
    """Drop the equations and saved values of a Cut; a later backward through them is an error.

    A freed Node keeps the cells of its leaves instead of the leaves, so that no value stays alive.
    Nodes that only later equations referenced are already gone when their turn comes.
    """
    slots: list[Any] = cut.slots
    leaves = tuple([node if node.cell is None else node.cell for node in starts])
    for row in reversed(cut.rows):
        slot = row[2]
        node = slots[slot]
        slots[slot] = None
        if getrefcount(node) == LOCAL_REFERENCES:
            continue
        node.type = types[slot]
        node.op = FREED
        node.inputs = leaves
        node.saved = None
        if node.outs is not None or node.stamp is not None:
            node.outs = node.stamp = None


def leaf_nodes(cut: Cut) -> list[Node]:
    return [cut.slots[slot] for slot in cut.inputs]


def as_list(tensors: Any) -> list[Any]:
    """Return one tensor, one GradientEdge or several as a list of tensors."""
    several = tensors.__class__ is list or not hasattr(tensors, "node")
    if several and isinstance(tensors, Iterable):
        return without_edges(tensors)
    return without_edges([tensors])


def as_seeds(given: Any, n: int) -> list[Any]:
    """Return one seed (or None) for each of `n` roots."""
    if given is None:
        return [None] * n
    seeds = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(seeds) != n:
        raise ShapeError(f"backward: {len(seeds)} gradients were given for {n} outputs")
    return seeds


def seed_for(root: Any, given: Any) -> Any:
    """Return the cotangent of a root: ones by default; a scalar broadcasts."""
    if given is None:
        if root.shape == () and not root.node.flags & TRACE:
            return wrap(unit_seed(root.dtype))
        return full_constant(1.0, root.shape, root.dtype, root.node.flags & TRACE)
    seed = as_tensor(given)
    if seed.dtype.kind == "c" and root.dtype.kind != "c":
        facts = f"a gradient of dtype {seed.dtype} for an output of dtype {root.dtype}"
        raise DTypeError(f"backward: {facts}; take its .real")
    seed = cast(seed, root.dtype)
    if seed.shape == root.shape:
        return seed
    if seed.ndim == 0 or seed.shape == (1,):
        return seed.reshape(()).expand(root.shape)
    raise ShapeError(
        f"backward: a gradient of shape {seed.shape} for an output of shape {root.shape}"
    )


@memoize(maxsize=128)
def unit_seed(dtype: np.dtype) -> np.ndarray:
    array = np.ones((), dtype)
    array.flags.writeable = False
    return array


def root_node(root: Any) -> Node:
    if not is_tracked(root):
        what = (
            f"a tensor of type {root.type}" if hasattr(root, "type") else f"a {type(root).__name__}"
        )
        raise GraphError(
            f"backward: {what} does not require a gradient: it was not computed from a tensor with "
            "requires_grad=True, or was computed under no_grad()"
        )
    return node_of(root)


def target_node(x: Any) -> Node:
    if not is_tracked(x):
        raise GraphError(
            f"grad: an input of type {getattr(x, 'type', type(x).__name__)} does not "
            "require a gradient; "
            "make it a leaf with requires_grad_()"
        )
    return node_of(x)
