"""Tensor as PyTorch, NumPy and JAX users handle it: attributes, casts, reads, copies, printing."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import lucid
from lucid.errors import DTypeError, GraphError, LucidError, ShapeError, TracedValueError

A = np.arange(6.0).reshape(2, 3)


def tensor(**options) -> lucid.Tensor:
    return lucid.tensor(A, **options)


# What it is


def test_shape_has_the_names_of_pytorch_and_numpy():
    t = tensor()
    assert t.shape == t.size() == (2, 3)
    assert t.size(0) == 2 and t.size(-1) == 3
    assert t.ndim == t.dim() == t.ndimension() == 2
    assert t.numel() == t.nelement() == 6 and len(t) == 2
    with pytest.raises(LucidError, match="size: axis 2"):
        t.size(2)


def test_memory_has_the_names_of_pytorch_and_numpy():
    t = tensor()
    assert t.nbytes == 48 and t.itemsize == t.element_size() == 8
    assert t.strides == A.strides and t.stride() == (3, 1) and t.stride(1) == 1
    assert t.is_contiguous() and not t.T.is_contiguous() and t.T.contiguous().is_contiguous()
    assert t.device == "cpu" and t.cpu() is t


def test_transposed_conjugated_and_complex_parts():
    z = lucid.tensor(A * (1 + 2j))
    np.testing.assert_array_equal(z.T.numpy(), z.numpy().T)
    np.testing.assert_array_equal(z.mT.numpy(), z.numpy().T)
    np.testing.assert_array_equal(z.H.numpy(), z.numpy().conj().T)
    np.testing.assert_array_equal(z.mH.numpy(), z.numpy().conj().T)
    np.testing.assert_array_equal(z.real.numpy(), A)
    np.testing.assert_array_equal(z.imag.numpy(), 2 * A)
    assert z.is_complex() and not z.is_floating_point() and tensor().is_floating_point()


@pytest.mark.parametrize(
    ("method", "dtype"),
    [
        ("float", "float32"), ("double", "float64"), ("half", "float16"), ("int", "int32"),
        ("long", "int64"), ("short", "int16"), ("byte", "uint8"), ("bool", "bool"),
    ],
)  # fmt: skip
def test_casts_by_name(method, dtype):
    assert getattr(tensor(), method)().dtype == np.dtype(dtype)


def test_to_takes_a_dtype_a_tensor_or_the_cpu():
    t = tensor()
    assert t.to("float32").dtype == np.float32 and t.to(bool).dtype == np.bool_
    assert t.to(lucid.float32).dtype == np.float32
    assert t.to(lucid.ones(1)).dtype == np.float32
    assert t.to("cpu") is t and t.to(dtype=lucid.int64).dtype == np.int64
    assert t.to(lucid.float64) is t and t.to(lucid.float64, copy=True) is not t
    assert t.type_as(lucid.ones(1)).dtype == np.float32
    assert t.astype("int32").dtype == np.int32 and t.astype(t.dtype) is not t


def test_cast_to_a_floating_dtype_passes_gradients():
    t = lucid.ones(3, requires_grad=True)
    t.double().sum().backward()
    assert t.grad.dtype == np.float32 and t.grad.tolist() == [1.0] * 3


def test_new_tensors_take_the_dtype():
    t = lucid.ones(1, dtype=lucid.float64)
    assert t.new_zeros(2, 3).shape == (2, 3) and t.new_zeros((2, 3)).dtype == np.float64
    assert t.new_ones(2).tolist() == [1.0, 1.0] and t.new_full((2,), 7).tolist() == [7.0, 7.0]
    assert t.new_empty(4).shape == (4,) and t.new_tensor([1, 2]).dtype == np.float64
    assert t.new_tensor([1.0], requires_grad=True).requires_grad


# Making


def test_tensor_copies_and_as_tensor_shares():
    a = np.zeros(3)
    copied, shared = lucid.tensor(a), lucid.as_tensor(a)
    a[0] = 5.0
    assert copied.tolist() == [0.0] * 3 and shared.tolist() == [5.0, 0.0, 0.0]


def test_dtypes_are_inferred():
    assert lucid.tensor([1.0, 2]).dtype == np.float32
    assert lucid.tensor([1, 2]).dtype == np.int64
    assert lucid.tensor([True]).dtype == np.bool_
    assert lucid.tensor([1j]).dtype == np.complex64
    assert lucid.tensor(np.float64(1)).dtype == np.float64
    assert lucid.tensor([1, 2], requires_grad=True).dtype == np.float32
    assert lucid.tensor([]).dtype == np.float32 and lucid.tensor([]).shape == (0,)


def test_list_of_tensors_becomes_a_stack_that_keeps_gradients():
    x = lucid.tensor(2.0, requires_grad=True)
    y = lucid.as_tensor([x, x * x])
    assert y.shape == (2,) and y.requires_grad


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ([[1.0], [1.0, 2.0]], ShapeError),
        (["a"], DTypeError),
        (np.array([object()]), DTypeError),
        (np.array(["2020"], "datetime64[Y]"), DTypeError),
        ([1 << 70], DTypeError),
        (None, DTypeError),
    ],
)
def test_what_cannot_be_a_tensor_is_refused_in_our_words(data, error):
    with pytest.raises(error, match=r"tensor: .*\[test_tensor.py:\d+\]"):
        lucid.tensor(data)


# Reading


def test_item_tolist_and_numbers():
    t = lucid.tensor(2.5)
    assert t.item() == float(t) == 2.5 and int(t) == 2 and complex(t) == 2.5
    assert tensor().tolist() == A.tolist() and f"{t:.2f}" == "2.50"
    assert bool(lucid.tensor(True)) and not lucid.tensor([0.0])
    assert [10, 20, 30][lucid.tensor(1)] == 20
    with pytest.raises(ShapeError, match="item"):
        tensor().item()
    with pytest.raises(ShapeError, match=r"ambiguous.*any\(\) or all\(\)"):
        bool(tensor())
    with pytest.raises(DTypeError, match="index"):
        [1, 2][lucid.tensor(1.0)]


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.sum().item(),
        lambda x: x.tolist(),
        lambda x: x.numpy(),
        lambda x: bool(x.sum()),
        lambda x: float(x.sum()),
        lambda x: int(x.sum()),
        lambda x: np.asarray(x),
        lambda x: list(range(x.sum().long())),
        lambda x: f"{x.sum():.2f}",
        lambda x: x.data_ptr(),
        lambda x: x.strides,
    ],
)
def test_value_that_is_only_traced_is_an_error_with_the_line(read):
    with pytest.raises(TracedValueError, match=r"vmap of lambda.*\[test_tensor.py:\d+\]"):
        lucid.func.vmap(lambda x: read(x) and x)(lucid.ones(2, 3))


def test_iteration_membership_and_length():
    t = tensor()
    assert [row.tolist() for row in t] == A.tolist()
    assert 4.0 in t and 9.0 not in t
    with pytest.raises(TypeError, match="len"):
        len(lucid.tensor(1.0))


def test_tensors_are_keys_by_identity():
    t, u = tensor(), tensor()
    assert {t: 1, u: 2}[t] == 1


def test_comparison_with_none_and_strings():
    t = lucid.ones(2)
    assert (t == None) is False and (t != None) is True  # noqa: E711
    with pytest.raises(TypeError):
        t < "a"  # noqa: B015


# Copies


def test_deepcopy_of_a_leaf_has_memory_and_gradient_of_its_own():
    w = lucid.ones(3, requires_grad=True)
    (w * w).sum().backward()
    other = copy.deepcopy(w)
    assert other.requires_grad and other.is_leaf and other.grad.tolist() == [2.0] * 3
    with lucid.no_grad():
        other.zero_()
    other.grad.zero_()
    assert w.tolist() == [1.0] * 3 and w.grad.tolist() == [2.0] * 3


def test_deepcopy_keeps_sharing_inside_one_structure():
    w = lucid.ones(3)
    a, b = copy.deepcopy([w, w])
    assert a is b


def test_deepcopy_of_a_result_is_refused():
    with pytest.raises(GraphError, match=r"deepcopy.*detach\(\)"):
        copy.deepcopy(lucid.ones(3, requires_grad=True) * 2)


def test_copy_shares_memory():
    t = lucid.ones(3)
    other = copy.copy(t)
    other.add_(1.0)
    assert t.tolist() == [2.0] * 3
    leaf = copy.copy(lucid.ones(3, requires_grad=True))
    assert leaf.is_leaf and leaf.requires_grad


def test_clone_passes_gradients_and_detach_does_not():
    w = lucid.ones(3, requires_grad=True)
    assert w.clone().requires_grad and not w.detach().requires_grad
    assert w.detach().data_ptr() == w.data_ptr() != w.clone().data_ptr()


# Printing


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: lucid.tensor([2.0, 4.0, 6.0]), "Tensor([2., 4., 6.])"),
        (lambda: lucid.tensor([[1, 2], [3, 4]]), "Tensor([[1, 2],\n        [3, 4]])"),
        (lambda: lucid.tensor(3.0), "Tensor(3.)"),
        (lambda: lucid.tensor([True]), "Tensor([ True])"),
        (lambda: lucid.tensor([1 + 2j]), "Tensor([1.+2.j], dtype=complex64)"),
        (lambda: lucid.zeros(0, 3), "Tensor([], shape=(0, 3), dtype=float32)"),
        (lambda: lucid.tensor([1.0], dtype="float64"), "Tensor([1.], dtype=float64)"),
        (lambda: lucid.tensor([1], dtype="int8"), "Tensor([1], dtype=int8)"),
        (lambda: lucid.tensor([1.0], requires_grad=True), "Tensor([1.], requires_grad=True)"),
        (lambda: lucid.tensor([1.0], requires_grad=True) * 2, "Tensor([2.], op=mul)"),
        (
            lambda: lucid.zeros(2000),
            "Tensor([0., 0., 0., ..., 0., 0., 0.], shape=(2000,))",
        ),
    ],
)
def test_repr(make, text):
    assert repr(make()) == str(make()) == text


def test_repr_follows_the_default_dtype():
    lucid.set_default_dtype(lucid.float64)
    assert repr(lucid.tensor([1.0])) == "Tensor([1.])"
    assert repr(lucid.ones(1, dtype=lucid.float32)) == "Tensor([1.], dtype=float32)"


def test_repr_inside_vmap_shows_the_type_and_the_transform():
    seen = []
    lucid.func.vmap(lambda x: (seen.append(repr(x)), x)[1])(lucid.ones(2, 3))
    assert seen == ["Tensor(<f32[3] in vmap of lambda>)"]


# Programs as users of each system write them


def test_pytorch_training_loop_finds_the_line():
    lucid.manual_seed(0)
    x = lucid.linspace(-1, 1, 50).unsqueeze(1)
    y = 3 * x + 1 + 0.01 * lucid.randn(50, 1)
    w, b = lucid.zeros(1, 1, requires_grad=True), lucid.zeros(1, requires_grad=True)
    for _ in range(300):
        loss = ((x @ w + b - y) ** 2).mean()
        loss.backward()
        with lucid.no_grad():
            for p in (w, b):
                p -= 0.3 * p.grad
                p.grad.zero_()
    assert abs(w.item() - 3) < 0.05 and abs(b.item() - 1) < 0.05


def test_numpy_program_runs_on_tensors():
    def softmax(x):
        e = np.exp(x - np.max(x, axis=-1, keepdims=True))
        return e / np.sum(e, axis=-1, keepdims=True)

    def loss(w, x, labels):
        p = softmax(np.tanh(x @ w))
        return -np.mean(np.log(p[np.arange(len(labels)), labels]))

    rng = np.random.default_rng(0)
    w, x, labels = (
        rng.standard_normal((3, 4)),
        rng.standard_normal((5, 3)),
        np.array([0, 3, 1, 1, 2]),
    )
    g = lucid.func.grad(loss)(lucid.tensor(w), x, labels)
    step = np.zeros_like(w)
    step[1, 2] = 1e-6
    difference = (loss(w + step, x, labels) - loss(w - step, x, labels)) / 2e-6
    np.testing.assert_allclose(g.numpy()[1, 2], difference, rtol=1e-6)


def test_jax_program_with_a_tree_of_parameters():
    def loss(params, x, y):
        h = lucid.tanh(x @ params["w1"] + params["b1"])
        return ((h @ params["w2"] - y) ** 2).mean()

    lucid.manual_seed(0)
    params = {"w1": lucid.randn(2, 8), "b1": lucid.zeros(8), "w2": lucid.randn(8, 1) * 0.3}
    x = lucid.randn(32, 2)
    y = (x[:, :1] * x[:, 1:]).sin()
    first = loss(params, x, y).item()
    for _ in range(100):
        value, grads = lucid.func.value_and_grad(loss)(params, x, y)
        params = {k: params[k] - 0.2 * grads[k] for k in params}
    assert value.item() < 0.5 * first
    each = lucid.func.vmap(lucid.func.grad(loss), in_dims=(None, 0, 0))(params, x, y)
    assert each["w1"].shape == (32, 2, 8)


def test_expand_to_a_smaller_shape_is_refused():
    with pytest.raises(ShapeError, match=r"\(3,\) does not broadcast to \(2,\)"):
        lucid.arange(3).expand(2)
