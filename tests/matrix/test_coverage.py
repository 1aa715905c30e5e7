"""No public function, method or keyword is left out of the matrix without a reason."""

from __future__ import annotations

from tests.matrix import test_matrix
from tests.matrix.passed import covered, methods_left, parameters_left
from tests.tensors import test_inplace_keywords

WRITES_STATE = "it writes to an argument; tests/nn/functional has what it stores"
NOT_SUPPORTED = "any value but the default is refused"
PARAMETERS = {
    ("segment_reduce", "indices"): NOT_SUPPORTED,
    ("lu", "pivot"): NOT_SUPPORTED,
    ("linalg.lu", "pivot"): NOT_SUPPORTED,
    ("linalg.lu_factor", "pivot"): NOT_SUPPORTED,
    ("linalg.lu_factor_ex", "pivot"): NOT_SUPPORTED,
    ("randint", "requires_grad"): "integers have no gradient",
    ("randperm", "requires_grad"): "integers have no gradient",
    ("binomial", "key"): "vmap maps draws from a key, and not those of its row: tests/random",
    ("poisson", "key"): "vmap maps draws from a key, and not those of its row: tests/random",
    ("topk", "sorted"): "False gives another order",
    ("Tensor.view", "dtype"): "the same memory, other numbers: tests/ops/shape",
    ("pca_lowrank", "niter"): "it changes how close the result is: tests/linalg",
    ("rrelu", "training"): "random slopes: tests/nn/functional",
    ("rrelu_", "training"): "random slopes: tests/nn/functional",
    ("nn.functional.rrelu", "training"): "random slopes: tests/nn/functional",
    ("nn.functional.rrelu_", "training"): "random slopes: tests/nn/functional",
    ("nn.functional.embedding", "max_norm"): WRITES_STATE,
    ("nn.functional.embedding", "norm_type"): WRITES_STATE,
    ("nn.functional.embedding_bag", "max_norm"): WRITES_STATE,
    ("nn.functional.embedding_bag", "norm_type"): WRITES_STATE,
    ("nn.functional.embedding_bag", "scale_grad_by_freq"): "it changes the gradient alone",
    ("nn.functional.instance_norm", "momentum"): WRITES_STATE,
    ("nn.functional.linear_cross_entropy", "options"): "tests/nn/layers/test_adaptive_softmax.py",
    ("nn.functional.multi_head_attention_forward", "is_causal"): "tests/nn/layers",
    ("nn.functional.multi_head_attention_forward", "static_k"): NOT_SUPPORTED,
    ("nn.functional.multi_head_attention_forward", "static_v"): NOT_SUPPORTED,
}
ABOUT_A_TENSOR = "it tells about the tensor, not about its numbers: tests/tensors"
CONVERTS = "it leaves the graph, or casts: tests/tensors"
HISTORY = "it is about gradients: tests/autograd"
METHODS = {
    **dict.fromkeys(
        ["data_ptr", "dim", "element_size", "get_device", "is_contiguous", "is_pinned",
         "ndimension", "size", "storage_offset", "stride", "cell", "graph"],
        ABOUT_A_TENSOR,
    ),
    **dict.fromkeys(
        ["array", "astype", "byte", "contiguous", "copy", "cpu", "float", "item", "numpy",
         "pin_memory", "to", "to_device", "tolist"],
        CONVERTS,
    ),
    **dict.fromkeys(
        ["backward", "register_hook", "register_post_accumulate_grad_hook", "requires_grad_",
         "retain_grad", "zero_grad"],
        HISTORY,
    ),
    "new_empty": "its values are anything",
    "polygamma": "the tensor is the second argument of the function: tests/tensors",
}  # fmt: skip


def test_every_parameter_of_every_public_function_is_passed():
    assert set(parameters_left()) == set(PARAMETERS)


def test_every_method_has_a_form_or_a_reason():
    in_place = {case[0] for case in test_inplace_keywords.CASES}
    in_place |= test_inplace_keywords.RANDOM
    assert set(methods_left()) - in_place == set(METHODS)


def test_exemptions_are_of_forms_that_exist():
    _, names = covered()
    wanted = [key if isinstance(key, str) else key[0] for key in test_matrix.DIFFERENT]
    assert {name.removesuffix("(...)") for name in wanted} <= names
    for part, setting in test_matrix.REFUSED:
        assert any(part in f"{name}(" for name in names), part
        assert setting in {*test_matrix.settings.EAGER, "vmap", "jit"}
