"""Tensors in pickles and copies: what arrives, and what is refused."""

import copy
import pickle
import threading

import numpy as np
import pytest

import lucid
from lucid import func
from lucid.errors import GraphError, TracedValueError


def sent(x, protocol=pickle.HIGHEST_PROTOCOL):
    return pickle.loads(pickle.dumps(x, protocol))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool", "complex64"])
def test_a_tensor_arrives_with_its_dtype_and_elements(protocol, dtype):
    x = lucid.tensor(np.arange(6).reshape(2, 3).astype(dtype))
    y = sent(x, protocol)
    assert type(y) is lucid.Tensor and y.dtype == dtype and y.tolist() == x.tolist()
    assert y.add_(y).tolist() == (x + x).tolist()  # its memory can be written


def test_scalars_and_empty_tensors_arrive():
    assert sent(lucid.tensor(3.0)).item() == 3.0
    assert sent(lucid.zeros(0, 4)).shape == (0, 4)


def test_a_leaf_arrives_with_its_gradient():
    w = lucid.nn.Parameter(lucid.tensor([1.0, 2.0]))
    (w * w).sum().backward()
    again = sent(w)
    assert type(again) is lucid.nn.Parameter and again.requires_grad and again.is_leaf
    assert again.grad.tolist() == [2.0, 4.0]
    (again * again).sum().backward()
    assert again.grad.tolist() == [4.0, 8.0] and w.grad.tolist() == [2.0, 4.0]
    assert not sent(lucid.nn.Parameter(lucid.ones(2), requires_grad=False)).requires_grad


def test_buffers_and_parameters_without_a_shape_arrive():
    assert sent(lucid.nn.Buffer(lucid.ones(2), persistent=False)).persistent is False
    layer = sent(lucid.nn.LazyLinear(3))
    assert layer(lucid.ones(2, 5)).shape == (2, 3)
    lazy = sent(lucid.nn.UninitializedBuffer(dtype="float64", persistent=False))
    assert lazy.dtype == np.float64 and not lazy.persistent and not lazy.requires_grad


def test_attributes_of_subclasses_arrive():
    x = Tagged([1.0, 2.0])
    x.tag = "units"
    again = sent(x)
    assert type(again) is Tagged and again.tag == "units" and again.tolist() == [1.0, 2.0]


class Tagged(lucid.Tensor):
    """A subclass with a dictionary of its own."""


def test_a_view_arrives_with_memory_of_its_own():
    base = lucid.arange(1000.0)
    part = base[10:12]
    assert len(pickle.dumps(part)) < 500
    moved, together = sent((part, base))
    moved.fill_(-1.0)
    assert together.tolist() == base.tolist() == list(range(1000))


def test_one_tensor_in_two_places_stays_one():
    w = lucid.ones(2)
    a, b = sent([w, w])
    assert a is b


def test_buffers_can_travel_beside_the_pickle():
    x, buffers = lucid.arange(10000.0), []
    text = pickle.dumps(x, 5, buffer_callback=buffers.append)
    assert len(text) < 1000 and len(buffers) == 1
    received = [bytes(b) for b in buffers]  # read-only memory, as from a network
    y = pickle.loads(text, buffers=received)
    assert (y.add_(1.0) == x + 1.0).all()


def test_hooks_stay_behind_with_a_warning():
    w = lucid.ones(2, requires_grad=True)
    w.register_hook(lambda g: g * 2)
    with pytest.warns(UserWarning, match="hooks of a tensor stay in this process"):
        again = sent(w)
    again.sum().backward()
    assert again.grad.tolist() == [1.0, 1.0]


def test_a_result_that_requires_grad_is_refused():
    y = lucid.ones(2, requires_grad=True) * 2
    with pytest.raises(GraphError, match=r"pickle: f32\[2\] is the result of mul.*detach\(\)"):
        pickle.dumps(y)
    assert sent(y.detach()).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "transform", [func.grad, func.vmap, lambda f: lambda x: func.jvp(f, (x,), (x,))]
)
def test_values_of_running_transforms_are_refused(transform):
    def f(x):
        pickle.dumps(x)
        return x.sum()

    with pytest.raises((GraphError, TracedValueError), match="pickle"):
        transform(f)(lucid.ones(3))


def test_a_jitted_function_that_pickles_sees_every_value():
    @lucid.jit
    def f(x):
        return x * 2, pickle.dumps(x)

    for value in (1.0, 2.0, 3.0):
        y, text = f(lucid.full((2,), value))
        assert y.tolist() == [2 * value] * 2 and pickle.loads(text).tolist() == [value] * 2


@pytest.mark.parametrize("through", [sent, copy.deepcopy])
def test_a_generator_continues_its_stream(through):
    g = lucid.Generator(7)
    lucid.rand(3, generator=g)
    other = through(g)
    assert type(other._lock) is type(threading.RLock())
    assert lucid.rand(5, generator=other).tolist() == lucid.rand(5, generator=g).tolist()
    lucid.rand(1, generator=other)
    assert lucid.rand(5, generator=other).tolist() != lucid.rand(5, generator=g).tolist()
