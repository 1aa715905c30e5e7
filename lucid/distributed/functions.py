"""The collectives as functions of tensors."""

from __future__ import annotations

from typing import Any

from lucid.distributed import collectives as c
from lucid.distributed.runtime import WORLD, Group, runtime
from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ops.core.promote import as_tensor, get_default_dtype
from lucid.public.declare import public
from lucid.tape.bind import bind
from lucid.tape.markers import ALIAS
from lucid.tape.modes import current
from lucid.tape.node import TRACE, Node, note_read, wrap
from lucid.tape.views import node_of

REDUCTIONS = ("sum", "mean", "max", "min", "prod")


def members(what: str, group: Group | None) -> tuple[str, int]:
    """Return the parameters of a collective in a group."""
    if group is None:
        return WORLD, runtime().size
    if group.rank is None:
        raise ArgumentError(f"{what}: this process is not a member of {group.name}")
    return group.name, group.size


def bind_collective(op: Any, x: Any) -> Any:
    """Bind a collective. Inside a body that is traced to run later, it must not run now."""
    trace = getattr(current().recorder, "trace", None)
    if trace is not None and x.raw is not None:
        origin = note_read(node_of(x), x)
        origin.saved = x.raw
        node = Node(ALIAS, (origin,), origin.flags | TRACE, None, x.type)
        node.trace = trace
        x = wrap(None, node)
    return bind(op, x)


def chosen_rank(what: str, r: Any, size: int) -> int:
    if r is None:
        return -1
    if not isinstance(r, int) or not 0 <= r < size:
        raise ArgumentError(f"{what}: rank {r!r} in a group of {size}")
    return r


def check_reduction(what: str, op: str) -> None:
    if op not in REDUCTIONS:
        raise ArgumentError(f"{what}: op={op!r} is not one of {', '.join(REDUCTIONS)}")


def summand(what: str, x: Any, op: str) -> Any:
    """Return an operand in the dtype of its sum, mean or product."""
    if op == "mean" and x.dtype.kind in "biu":
        return x.to(get_default_dtype())
    return x.to("int64") if x.dtype.kind == "b" and op in ("sum", "prod") else x


@public("distributed")
def all_reduce(input: Any, op: str = "sum", *, group: Group | None = None) -> Any:
    """Reduce a tensor over all ranks, elementwise; every rank gets the result.

    op    "sum", "mean", "max", "min" or "prod"

    >>> import lucid.distributed as dist
    >>> dist.all_reduce([1.0, 2.0])  # one process: the sum of one term
    Tensor([1., 2.])
    """
    check_reduction("all_reduce", op)
    name, size = members("all_reduce", group)
    x = summand("all_reduce", as_tensor(input), op)
    if op in ("max", "min"):
        if x.dtype.kind == "c":
            raise DTypeError(f"all_reduce: complex numbers have no {op}")
        return bind_collective(c.AllReduceExtremum(name, size, op == "max"), x)
    if op == "prod":
        return bind_collective(c.AllReduceProd(name, size), x)
    total = bind_collective(c.AllReduce(name, size), x)
    return total / size if op == "mean" else total


@public("distributed")
def all_gather(input: Any, dim: int = 0, *, tiled: bool = False, group: Group | None = None) -> Any:
    """Gather the tensors of all ranks on every rank, stacked along a new axis `dim`.

    tiled    concatenate along the existing axis `dim` instead
    """
    x = as_tensor(input)
    name, size = members("all_gather", group)
    return place_ranks(bind_collective(c.AllGather(name, size), x), dim, tiled)


def place_ranks(rows: Any, dim: int, tiled: bool) -> Any:
    """Move the axis of ranks, which is the first, to `dim`, or merge it with that axis."""
    ndim = rows.ndim - (1 if tiled else 0)
    dim = normal_axis(dim, ndim)
    moved = rows.moveaxis(0, dim)
    if not tiled:
        return moved
    shape = list(moved.shape)
    return moved.reshape(*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :])


def split_ranks(what: str, x: Any, dim: int, tiled: bool, size: int) -> Any:
    """Return `x` with an axis of ranks in front, taken from axis `dim`."""
    dim = normal_axis(dim, x.ndim)
    n = x.shape[dim]
    if (n % size if tiled else n != size) != 0:
        wanted = f"a multiple of {size}" if tiled else str(size)
        raise ShapeError(f"{what}: axis {dim} of {x.type} must be {wanted}")
    if tiled:
        shape = x.shape
        x = x.reshape(*shape[:dim], size, n // size, *shape[dim + 1 :])
    return x.moveaxis(dim, 0)


def normal_axis(dim: int, ndim: int) -> int:
    if not -ndim <= dim < ndim:
        raise ShapeError(f"axis {dim} of a tensor with {ndim} axes")
    return dim % ndim


@public("distributed")
def reduce_scatter(
    input: Any, op: str = "sum", dim: int = 0, *, tiled: bool = False, group: Group | None = None
) -> Any:
    """Reduce a tensor over all ranks; rank r gets row r of the result along `dim`.

    tiled    axis `dim` is split into one part for each rank, instead of having one row for each
    """
    check_reduction("reduce_scatter", op)
    name, size = members("reduce_scatter", group)
    x = summand("reduce_scatter", as_tensor(input), op)
    rows = split_ranks("reduce_scatter", x, dim, tiled, size)
    if op in ("sum", "mean"):
        total = bind_collective(c.ReduceScatter(name, size), rows)
        return total / size if op == "mean" else total
    parts = bind_collective(c.AllToAll(name, size), rows)
    if op == "prod":
        return parts.prod(dim=0)
    if parts.dtype.kind == "b":
        return parts.any(dim=0) if op == "max" else parts.all(dim=0)
    return parts.amax(dim=0) if op == "max" else parts.amin(dim=0)


@public("distributed")
def all_to_all(input: Any, *, group: Group | None = None) -> Any:
    """Transpose rows and ranks: row s of the result on rank r is row r of `input` on rank s."""
    x = as_tensor(input)
    name, size = members("all_to_all", group)
    return bind_collective(c.AllToAll(name, size), x)


@public("distributed")
def broadcast(input: Any, root: int = 0, *, group: Group | None = None) -> Any:
    """Return the tensor of rank `root`, on every rank; all pass one of the same type."""
    name, size = members("broadcast", group)
    root = chosen_rank("broadcast", root, size)
    return bind_collective(c.BroadcastFrom(name, size, root), as_tensor(input))


@public("distributed")
def scatter(input: Any, root: int = 0, *, group: Group | None = None) -> Any:
    """Return row r of the tensor of rank `root`, on rank r; all pass one of the same type."""
    name, size = members("scatter", group)
    root = chosen_rank("scatter", root, size)
    return bind_collective(c.ScatterFrom(name, size, root), as_tensor(input))


@public("distributed")
def gather(input: Any, root: int = 0, *, group: Group | None = None) -> Any:
    """Return the tensors of all ranks, stacked along a new first axis, on rank `root`.

    The other ranks get zeros.
    """
    name, size = members("gather", group)
    root = chosen_rank("gather", root, size)
    return bind_collective(c.GatherTo(name, size, root), as_tensor(input))


@public("distributed")
def reduce(input: Any, root: int = 0, *, group: Group | None = None) -> Any:
    """Return the sum of all ranks' tensors on rank `root`, and zeros on the others."""
    name, size = members("reduce", group)
    root = chosen_rank("reduce", root, size)
    return bind_collective(c.ReduceTo(name, size, root), summand("reduce", as_tensor(input), "sum"))


@public("distributed")
def sendrecv(
    input: Any, dest: int | None, source: int | None, *, group: Group | None = None
) -> Any:
    """Send a tensor to rank `dest` and return the one that rank `source` sends, of the same type.

    None is nobody: nothing is sent, or zeros are received, as at the border of a domain.
    """
    name, size = members("sendrecv", group)
    dest, source = (chosen_rank("sendrecv", r, size) for r in (dest, source))
    return bind_collective(c.SendRecv(name, size, dest, source), as_tensor(input))


@public("distributed")
def send(input: Any, dest: int, *, group: Group | None = None) -> Any:
    """Send a tensor to rank `dest`.

    The result is a zero that stands for the message: add it to what is differentiated, and the
    gradient comes back from `dest`.
    """
    name, size = members("send", group)
    other = chosen_rank("send", dest, size)
    refuse_self("send", other, name)
    return bind_collective(c.Send(name, size, other, -1), as_tensor(input))


@public("distributed")
def recv(like: Any, source: int, *, group: Group | None = None) -> Any:
    """Return the tensor that rank `source` sends, which has the type of `like`.

    The gradient goes back to `source` if a derivative with respect to `like` is taken.
    """
    name, size = members("recv", group)
    other = chosen_rank("recv", source, size)
    refuse_self("recv", other, name)
    return bind_collective(c.Recv(name, size, -1, other), as_tensor(like))


def refuse_self(what: str, other: int, group: str) -> None:
    if other == c.my_rank(group):
        raise ArgumentError(f"{what}: rank {other} is this one; use sendrecv")


@public("distributed")
def barrier(*, group: Group | None = None) -> None:
    """Wait until every rank has reached this call."""
    name, size = members("barrier", group)
    bind_collective(c.Barrier(name, size), as_tensor(0.0))
