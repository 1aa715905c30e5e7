"""What users of PyTorch type on the first day, in Lucid itself."""

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError
from lucid.nn import functional as F


def test_the_type_of_a_tensor_is_called_to_cast():
    x = lucid.tensor([1.5, 2.5])
    assert (
        x.type(lucid.int64).tolist() == [1, 2] and lucid.tensor([1]).type("float64").dtype == "f8"
    )
    assert str(x.type) == "f32[2]" and x.type == lucid.ir.Type.parse("f32[2]")
    assert lucid.func.vmap(lambda x: x.type(lucid.float64) * 2)(x).dtype == np.float64
    assert lucid.func.grad(lambda x: x.type(lucid.float64).sum())(x).tolist() == [1.0, 1.0]
    jitted = lucid.jit(lambda x: x.type(lucid.float64) * 2)
    for n in (2, 3):
        assert jitted(lucid.ones(n)).tolist() == [2.0] * n


def test_arguments_stand_where_pytorch_has_them():
    assert lucid.randint(9, size=(4,)).max().item() < 9
    assert lucid.randint(9, (4,)).shape == lucid.randint(0, 9, (4,)).shape == (4,)
    x = lucid.arange(6.0).reshape(2, 3)
    assert x[range(2), [0, 1]].tolist() == [0.0, 4.0]
    assert lucid.from_numpy(x) is x
    assert x.device == "cpu" and x.device.type == "cpu"
    with pytest.raises(ArgumentError, match=r"load_state_dict\(lucid\.load\(path\)\)"):
        lucid.save(lucid.nn.Linear(1, 1), "model.pt")


def test_samplers_with_replacement_need_no_memory():
    sampler = lucid.utils.data.RandomSampler(range(10), replacement=True, num_samples=10**10)
    indices = iter(sampler)
    assert len(sampler) == 10**10 and {next(indices) for _ in range(500)} == set(range(10))
    few = lucid.utils.data.RandomSampler(range(10), replacement=True, num_samples=70_000)
    assert sum(1 for _ in few) == 70_000


def test_functions_take_the_shapes_and_dtypes_of_pytorch():
    lucid.manual_seed(0)
    dropped = F.dropout2d(lucid.ones(8, 50), 0.5, training=True)
    assert set(dropped.flatten().tolist()) == {0.0, 2.0}
    x, target = lucid.arange(6.0).reshape(2, 3), lucid.ones(2, 3)
    full = F.gaussian_nll_loss(x, target, lucid.full((2, 3), 2.0)).item()
    for var in (lucid.full((1,), 2.0), lucid.full((1, 3), 2.0), lucid.full((2,), 2.0)):
        assert F.gaussian_nll_loss(x, target, var).item() == pytest.approx(full)
    assert F.avg_pool1d(lucid.arange(6).reshape(1, 1, 6), 2).tolist() == [[[0, 2, 4]]]
    assert F.avg_pool2d(-lucid.arange(4).reshape(1, 1, 2, 2), 2).tolist() == [[[[-1]]]]
