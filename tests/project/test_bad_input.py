"""Bad input gets an error of Lucid's own: the op, the facts, the remedy, and the user's line."""

from __future__ import annotations

import inspect
import signal
import types

import numpy as np
import pytest

import lucid
import lucid.func as F
from lucid import autograd
from lucid.errors import (
    ArgumentError,
    AxisError,
    DTypeError,
    GraphError,
    IndexingError,
    LeakError,
    LucidError,
    MutationError,
    ShapeError,
    TracedValueError,
)

X = lucid.ones(2, 3)
V = lucid.ones(3)
I = lucid.arange(3)  # noqa: E741


def refused(call, error, *parts: str) -> None:
    """`call`, a lambda on one line, raises `error` with all `parts` and the line of the lambda."""
    with pytest.raises(LucidError) as caught:
        call()
    message = str(caught.value)
    assert type(caught.value) is error, f"{type(caught.value).__name__}: {message}"
    for part in parts:
        assert part in message, f"{part!r} is not in {message!r}"
    line = call.__code__.co_firstlineno
    assert message.endswith(f"   [test_bad_input.py:{line}]"), f"line {line} is not in {message!r}"


# Shapes


def test_shapes_that_do_not_fit():
    refused(lambda: X + lucid.ones(2), ShapeError, "add", "(2, 3) and (2,)", "sizes 3 and 2")
    refused(lambda: X @ X, ShapeError, "matmul", "(2, 3) @ (2, 3)", "inner sizes 3 and 2")
    refused(lambda: V @ lucid.tensor(1.0), ShapeError, "matmul", "0-d", "use *")
    refused(lambda: X.reshape(4), ShapeError, "reshape", "6 elements do not fill shape (4,)")
    refused(lambda: X.reshape(-1, -1), ShapeError, "reshape", "at most one size may be -1")
    refused(lambda: X.expand(7, 7), ShapeError, "broadcast", "(2, 3)", "(7, 7)")
    refused(
        lambda: lucid.cat([X, lucid.ones(3, 4)]), ShapeError, "concatenate", "(2, 3) and (3, 4)"
    )
    refused(lambda: lucid.stack([X, V]), ShapeError, "stack", "(2, 3) and (3,)")
    refused(lambda: lucid.einsum("ij,jk->ik", X, X), ShapeError, "einsum", "3 in operand 0 and 2")
    refused(lambda: lucid.where(X > 0, lucid.ones(5), X), ShapeError, "where", "(5,)")
    refused(lambda: lucid.zeros(2, -1), ShapeError, "zeros", "not be negative")
    refused(lambda: X.permute(0, 0), ShapeError, "permute", "not a permutation")
    refused(lambda: lucid.topk(X, 9), ShapeError, "topk", "k=9")
    refused(lambda: lucid.amax(lucid.zeros(0)), ShapeError, "max", "empty")


def test_tensors_that_are_no_single_number():
    refused(lambda: X.item(), ShapeError, "item", "(2, 3)")
    refused(lambda: float(X), ShapeError, "(2, 3)")
    refused(lambda: bool(X), ShapeError, "bool", "any() or all()")
    refused(lambda: len(lucid.tensor(1.0)), ArgumentError, "len", "0-d")


# Data


def test_data_that_is_no_array():
    refused(lambda: lucid.tensor([[1, 2], [3]]), ShapeError, "tensor", "different lengths")
    refused(lambda: lucid.tensor(np.array([object()])), DTypeError, "dtype object", "convert it")
    refused(lambda: lucid.tensor(["a", "b"]), DTypeError, "tensor", "str is not numeric")
    refused(lambda: lucid.tensor(None), DTypeError, "tensor", "NoneType")
    refused(lambda: lucid.tensor([10**40]), DTypeError, "tensor", "64 bits")
    refused(lambda: lucid.tensor(np.zeros(2, "U3")), DTypeError, "cannot be a tensor")
    refused(lambda: lucid.exp({"a": 1}), DTypeError, "not numeric")


# Dtypes


def test_dtypes_that_are_not_taken():
    refused(lambda: X << 2, DTypeError, "left_shift", "float32", "integer")
    refused(lambda: ~X, DTypeError, "bitwise_not", "float32")
    refused(lambda: X & X, DTypeError, "bitwise_and", "float32")
    refused(lambda: X.to("nonsense"), DTypeError, "'nonsense' is not a dtype", "float32")
    refused(lambda: lucid.zeros(2, dtype="object"), DTypeError, "object is not supported")
    refused(lambda: I.requires_grad_(), DTypeError, "int64 has no gradient")
    refused(lambda: lucid.tensor([True]) - lucid.tensor([True]), DTypeError, "sub", "booleans")
    refused(
        lambda: lucid.tensor([1], dtype="int8") + 1000, DTypeError, "1000 does not fit into int8"
    )
    refused(lambda: lucid.set_default_dtype("int64"), DTypeError, "not a floating dtype")


# Axes and indices


def test_axes_out_of_range_or_named_twice():
    refused(lambda: X.sum(2), AxisError, "sum", "axis 2 is out of range for 2 axes", "-2 and 1")
    refused(lambda: X.sum((0, 0)), AxisError, "sum", "appears twice")
    refused(lambda: X.sum("rows"), AxisError, "sum", "'rows' is not an integer")
    refused(lambda: lucid.sort(X, 4), AxisError, "sort", "axis 4")
    refused(lambda: lucid.softmax(X, 5), AxisError, "softmax", "axis 5")
    refused(lambda: X.cumsum(-3), AxisError, "cumsum", "axis -3")
    refused(lambda: X.unsqueeze(7), AxisError, "unsqueeze", "axis 7")


def test_indices_out_of_range_or_of_the_wrong_kind():
    refused(lambda: X[7], IndexingError, "index 7 is out of range for axis 0 of size 2")
    refused(lambda: X[0, -4], IndexingError, "index -4 is out of range for axis 1 of size 3")
    refused(lambda: X[0, 0, 0], IndexingError, "3 indices", "2 axes")
    refused(lambda: X["a"], IndexingError, "str is not an index")
    refused(lambda: X[1.5], IndexingError, "is not an index")
    refused(lambda: X[[0, 5]], IndexingError, "index 5 is out of range")
    refused(lambda: X[lucid.ones(2)], IndexingError, "float32 is not an index")
    refused(lambda: V[lucid.tensor([True, False])], IndexingError, "(2,)", "(3,)")
    refused(lambda: X[..., ...], IndexingError, "at most one ellipsis")
    refused(lambda: lucid.gather(X, 0, lucid.tensor([[5, 0, 0]])), IndexingError, "index 5")
    refused(lambda: lucid.take_along_dim(X, lucid.tensor([[9, 0, 0]]), 0), IndexingError, "index 9")


def test_writes_that_do_not_fit():
    y = lucid.ones(2, 3)
    refused(lambda: y.__setitem__(0, lucid.ones(5)), ShapeError, "(5,)", "(3,)")
    refused(lambda: y.__setitem__(9, 1.0), IndexingError, "index 9")
    refused(lambda: y.add_(lucid.ones(4, 2, 3)), ShapeError, "add_", "(4, 2, 3)", "(2, 3)")
    refused(lambda: lucid.arange(3).mul_(1.5), DTypeError, "mul_", "float32", "int64")
    refused(
        lambda: lucid.ones(2).expand(3, 2).fill_(1.0), GraphError, "fill_", "read-only", "clone()"
    )


# Differentiation


def leaf() -> lucid.Tensor:
    return lucid.ones(3, requires_grad=True)


def test_gradients_that_there_are_not():
    refused(lambda: V.backward(), GraphError, "backward", "f32[3]", "requires_grad=True")
    refused(lambda: autograd.grad(leaf() * 2, V), GraphError, "grad", "f32[3]", "requires_grad_()")
    refused(lambda: autograd.grad(leaf() * 2, leaf()), GraphError, "not used", "allow_unused=True")
    refused(lambda: V.register_hook(print), GraphError, "register_hook", "does not require")
    refused(lambda: (leaf() * 2).requires_grad_(False), GraphError, "only leaves", "detach()")


def test_seeds_that_do_not_fit():
    y = leaf() * 2
    refused(lambda: y.backward(lucid.ones(4)), ShapeError, "backward", "(4,)", "(3,)")
    refused(lambda: autograd.backward([y, y], [1.0]), ShapeError, "1 gradients were given for 2")
    pull = F.vjp(lambda x: (x, x), V)[1]
    refused(lambda: pull(V), ShapeError, "vjp of lambda", "got 1 arrays, expected 2")
    refused(lambda: pull((V, lucid.ones(2))), ShapeError, "got shape (2,), expected (3,)")
    refused(lambda: F.jvp(lambda x: x, (V,), (V, V)), ShapeError, "jvp of lambda", "2 arrays")


def test_freed_graph():
    y = leaf() * 2
    y.backward()
    refused(lambda: y.backward(), GraphError, "already freed", "retain_graph=True")
    refused(lambda: (y * 3).backward(), GraphError, "already freed", "retain_graph=True")


def test_saved_value_that_was_changed_in_place():
    y = lucid.exp(leaf())
    z = y.sum()
    y.mul_(2.0)
    refused(lambda: z.backward(), MutationError, "result of exp", "changed in place", "clone()")
    a = leaf()
    b = a * 1.0
    c = b * b
    b += 1.0
    refused(lambda: c.sum().backward(), MutationError, "changed in place", "test_bad_input.py:")
    refused(lambda: a.add_(1.0), GraphError, "add_", "leaf", "no_grad()")


def test_functions_that_cannot_be_differentiated():
    refused(
        lambda: F.grad(lambda x: x)(V),
        ShapeError,
        "grad of lambda",
        "one scalar",
        "f32[3]",
        "sum()",
    )
    refused(lambda: F.grad(lambda x: x.sum())(I), DTypeError, "int64 has no derivative", "argnums")
    refused(lambda: F.grad(lambda x: x.sum())(3), DTypeError, "int64 has no derivative")
    refused(lambda: F.grad(lambda x: x, argnums=3)(1.0), LucidError, "argnums=3", "1 positional")
    refused(lambda: F.grad(lambda x: x, has_aux=True)(1.0), LucidError, "(output, aux)")
    refused(lambda: F.jacrev(lambda x: x > 0)(V), DTypeError, "output of dtype bool")
    refused(lambda: F.grad(lambda x: (x * 1j).sum())(V), DTypeError, "real floating", "complex64")


# Values that are not there


def test_values_asked_for_inside_vmap():
    refused(lambda: F.vmap(lambda x: x if x > 0 else -x)(V), TracedValueError, "bool()", "where()")
    refused(lambda: F.vmap(lambda x: float(x))(V), TracedValueError, "item()", "vmap of lambda")
    refused(lambda: F.vmap(lambda x: x.numpy())(X), TracedValueError, "numpy()", "f32[3]")
    refused(lambda: F.vmap(lambda x: x[x > 0])(X), TracedValueError, "boolean indexing", "vmap")
    refused(
        lambda: F.vmap(lambda x: lucid.zeros(int(x.sum())))(X), TracedValueError, "vmap of lambda"
    )


def test_values_that_leaked():
    kept = []
    F.vmap(lambda x: kept.append(x * 2) or x)(V)
    refused(lambda: kept[0] + 1, LeakError, "vmap of lambda", "has ended", "return it")
    refused(lambda: kept[0].numpy(), LeakError, "vmap of lambda", "has ended")
    F.grad(lambda x: kept.append(x * 2) or x.sum())(V)
    np.testing.assert_array_equal((kept[1] + 1).numpy(), [3.0, 3.0, 3.0])


def test_vmaps_that_do_not_fit():
    refused(lambda: F.vmap(lambda x, y: x)(X, V), ShapeError, "vmap of lambda", "[2, 3]")
    refused(lambda: F.vmap(lambda x: x, in_dims=None)(X), LucidError, "at least one argument")
    refused(lambda: F.vmap(lambda x: x, in_dims=5)(X), AxisError, "vmap of lambda", "axis 5")
    refused(lambda: F.vmap(lambda x: x)(lucid.tensor(1.0)), ShapeError, "0-d")
    refused(lambda: F.vmap(lambda x: x, out_dims=None)(V), AxisError, "out_dims is None")
    refused(lambda: F.vmap(lambda x: lucid.rand(2) + x)(V), LucidError, "randomness='same'")


def test_errors_inside_transforms_name_the_line_inside():
    def f(x):
        return (x @ lucid.ones(5)).sum()

    line = f.__code__.co_firstlineno + 1
    for transformed in (F.grad(f), F.vmap(f), F.jacrev(f), F.vmap(F.grad(f)), lucid.ir.trace(f)):
        with pytest.raises(
            ShapeError, match=rf"inner sizes 3 and 5 .*\[test_bad_input.py:{line}\]"
        ):
            transformed(X)


def test_every_error_is_also_the_builtin_that_users_catch():
    with pytest.raises(ValueError, match="matmul"):
        X @ X
    with pytest.raises(IndexError):
        X[9]
    with pytest.raises(TypeError):
        X << 1
    with pytest.raises(RuntimeError):
        V.backward()


# Python's own TypeError where an operand is of a foreign class, so that it may have its say


@pytest.mark.parametrize("other", [None, "a", object(), {}])
def test_operators_leave_foreign_operands_to_python(other):
    with pytest.raises(TypeError, match="unsupported operand"):
        X + other
    with pytest.raises(TypeError, match="unsupported operand"):
        other - X
    assert (X == other) is False
    assert (X != other) is True


# Random calls with wrong arguments


SKIPPED = {
    "load", "save", "set_default_dtype", "manual_seed", "set_rng_state", "set_printoptions", "seed",
    "backward", "set_grad_enabled", "no_grad", "enable_grad", "inference_mode", "set_num_threads",
}  # fmt: skip
POOL = [
    None, "a", -5, 3, 10**30, 1.5, float("nan"), 2j, True, object(), (), [], {}, [[1], [1, 2]],
    (0, 0), (9, -9),
    lambda x: x, slice(None), np.array([object()]), np.zeros(2, "U3"), X, V, I, lucid.tensor(2.0),
    lucid.zeros(0, 2), lucid.tensor([True, False]), lucid.tensor([1j]),
    lucid.ones(2, 2, 2), [X, V], "i8",
]  # fmt: skip


def public_functions() -> list[tuple[str, object]]:
    found = {}
    for name in dir(lucid):
        f = getattr(lucid, name)
        if isinstance(f, types.FunctionType) and not name.startswith("_") and name not in SKIPPED:
            found[name] = f
    for name, f in inspect.getmembers(lucid.Tensor, callable):
        if not name.startswith("_") and name not in SKIPPED:
            found[f"Tensor.{name}"] = f
    for space in ("fft", "special"):
        module = getattr(lucid, space)
        found.update({f"{space}.{name}": getattr(module, name) for name in module.__all__})
    return sorted(found.items())


def complaint(f, args, kwargs) -> str:
    """What is wrong with the way `f` refuses these arguments; nothing where it is right."""
    signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, 5.0)
    try:
        f(*args, **kwargs)
    except LucidError as error:
        return "" if str(error) else "an error without words"
    except TypeError as error:
        inside = error.__traceback__.tb_next
        binding = "argument" in str(error) and (inside is None or inside.tb_next is None)
        return "" if binding or inside is None else f"TypeError: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return ""


def too_long(*_):
    raise TimeoutError("it was still running after five seconds")


FUNCTIONS = public_functions()


@pytest.mark.parametrize(("name", "f"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_wrong_arguments_get_an_error_of_our_own(name, f, recwarn, pytestconfig):
    rng = np.random.default_rng(sum(map(ord, name)) + pytestconfig.getoption("--first-seed"))
    complaints = []
    for _ in range(2 * pytestconfig.getoption("--bad-calls")):
        args = [POOL[i] for i in rng.integers(len(POOL), size=int(rng.integers(1, 5)))]
        if name.startswith("Tensor.") or rng.random() < 0.5:
            args[0] = [X, V, I, lucid.tensor(2.0), lucid.zeros(0, 2)][int(rng.integers(5))].clone()
        kwargs = {"dim": 99} if rng.random() < 0.1 else {}
        found = complaint(f, args, kwargs)
        if found:
            shown = ", ".join(
                [shortened(x) for x in args] + [f"{k}={v}" for k, v in kwargs.items()]
            )
            complaints.append(f"{name}({shown}): {found}")
    assert not complaints, "\n" + "\n".join(complaints)


def shortened(x) -> str:
    return f"Tensor{x.shape}" if isinstance(x, lucid.Tensor) else repr(x)[:40]
