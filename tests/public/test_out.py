"""`out=`: the functions that have it in PyTorch write their results to the tensors given."""

from __future__ import annotations

import inspect
import pickle
from importlib import import_module

import pytest

import lucid
from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ops.core.arguments import aliases, clear_errors
from lucid.public.out import ACCEPTS_OUT, accepts_out

X = lucid.tensor([3.0, 1.0, 2.0])


@pytest.mark.parametrize("space", ACCEPTS_OUT)
def test_every_such_function_shows_out_in_its_signature(space):
    module = import_module("lucid" if space == "lucid" else f"lucid.{space}")
    for name in ACCEPTS_OUT[space]:
        parameter = inspect.signature(getattr(module, name)).parameters["out"]
        assert parameter.kind is parameter.KEYWORD_ONLY and parameter.default is None


def test_the_result_is_written_to_out_which_is_returned():
    out = lucid.zeros(3)
    view = out[1:]
    assert lucid.add(X, X, alpha=2.0, out=out) is out and out.tolist() == [9.0, 3.0, 6.0]
    assert view.tolist() == [3.0, 6.0]
    assert lucid.arange(3, out=out) is out and out.tolist() == [0.0, 1.0, 2.0]
    assert lucid.linalg.norm(X, out=lucid.empty(())).item() == pytest.approx(14.0**0.5)
    assert lucid.stack([X, X], dim=1, out=lucid.empty(3, 2)).tolist() == [[3, 3], [1, 1], [2, 2]]


def test_several_results_are_written_to_a_tuple():
    values, indices = lucid.empty(3), lucid.empty(3, dtype=lucid.int64)
    found = lucid.sort(X, descending=True, out=(values, indices))
    assert found.values is values and found.indices is indices
    assert values.tolist() == [3.0, 2.0, 1.0] and indices.tolist() == [0, 2, 1]


def test_a_result_that_does_not_fit_raises():
    with pytest.raises(ShapeError, match=r"add: out has shape \(2,\), and the result.*\(3,\)"):
        lucid.add(X, X, out=lucid.empty(2))
    with pytest.raises(DTypeError, match="exp: out has dtype int64, and the result has .*float32"):
        lucid.exp(X, out=lucid.empty(3, dtype=lucid.int64))
    with pytest.raises(ArgumentError, match="sort: out must be a tuple of 2 tensors"):
        lucid.sort(X, out=lucid.empty(3))


def test_such_functions_pickle_by_their_public_names():
    for function in (lucid.exp, lucid.absolute, lucid.linalg.norm, lucid.nn.functional.gelu):
        assert pickle.loads(pickle.dumps(function)) is function


def test_the_write_is_recorded_with_and_without_jit():
    t = lucid.tensor([3.0, 1.0, 2.0], requires_grad=True)
    out = lucid.empty(3)
    lucid.multiply(t, t, out=out)
    out.sum().backward()
    assert t.grad.tolist() == [6.0, 2.0, 4.0]
    doubled = lucid.jit(lambda x: lucid.add(x, x, out=lucid.empty(3)))
    for n in (1.0, 2.0, 3.0):
        assert doubled(n * X).tolist() == (2 * n * X).tolist()


def test_a_wrapper_around_clear_errors_is_not_left_out():
    @aliases(dim="axis")
    @clear_errors
    def f(x, dim=None):
        return lucid.tensor([float(x[dim])])

    call = accepts_out(f, "tests", "f")
    assert call([1, 2], axis=1, out=lucid.empty(1)).tolist() == [2.0]
    with pytest.raises(ArgumentError, match=r"^f\(dim=1\): .*missing 1 required") as info:
        call(axis=1)
    assert isinstance(info.value.__cause__, TypeError)


def test_one_wrapper_gives_clear_errors_and_out():
    @clear_errors
    def f(x, dim=None):
        return lucid.tensor([float(x[dim])])

    call = accepts_out(f, "tests", "f")
    assert call([1, 2], 1, out=lucid.empty(1)).tolist() == [2.0]
    with pytest.raises(ArgumentError, match=r"^f\(\): .*missing 1 required") as info:
        call()
    assert isinstance(info.value.__cause__, TypeError)
    assert [entry.name for entry in info.traceback][1:] == ["clear_call"]
