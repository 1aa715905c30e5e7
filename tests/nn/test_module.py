"""Module: what is registered, named, saved, loaded, hooked, copied and converted."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import LucidError, ModuleError


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Linear(4, 2)
        self.register_buffer("offset", lucid.ones(2))
        self.register_buffer("scratch", lucid.zeros(2), persistent=False)
        self.factor = nn.Parameter(lucid.tensor(2.0))
        self.plain = "text"

    def forward(self, x):
        return self.second(self.first(x)) * self.factor + self.offset


def net(seed=0):
    lucid.manual_seed(seed)
    return Net()


def x_of(*shape):
    return lucid.tensor(np.random.default_rng(0).normal(size=shape).astype("float32"))


# Registration


def test_what_is_assigned_is_registered_by_its_kind():
    m = net()
    names = ["factor", "first.weight", "first.bias", "second.weight", "second.bias"]
    assert [name for name, _ in m.named_parameters()] == names
    assert [name for name, _ in m.named_buffers()] == ["offset", "scratch"]
    assert [name for name, _ in m.named_modules()] == ["", "first", "second"]
    assert [name for name, _ in m.named_children()] == ["first", "second"]
    assert "factor" in dir(m) and m.plain == "text"


def test_a_name_that_is_deleted_is_gone():
    m = net()
    del m.second
    assert not hasattr(m, "second") and "second.weight" not in m.state_dict()


def test_what_is_replaced_keeps_its_place():
    m = net()
    m.first = nn.Linear(3, 4)
    assert [name for name, _ in m.named_children()] == ["first", "second"]


def test_assigning_another_kind_moves_the_name():
    m = net()
    m.first = nn.Parameter(lucid.ones(1))
    assert "first" in dict(m.named_parameters()) and "first" not in dict(m.named_children())


@pytest.mark.parametrize(
    ("name", "value"), [("factor", lucid.ones(1)), ("factor", 3.0), ("offset", 1), ("first", "x")]
)
def test_a_registered_name_keeps_its_kind(name, value):
    with pytest.raises(ModuleError, match="del it first"):
        setattr(net(), name, value)


def test_none_may_stand_for_a_parameter():
    layer = nn.Linear(2, 3, bias=False)
    assert layer.bias is None and list(layer.state_dict()) == ["weight"]


def test_super_init_is_asked_for():
    class Late(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(lucid.ones(1))

    with pytest.raises(ModuleError, match=r"super\(\).__init__"):
        Late()


@pytest.mark.parametrize("name", ["", "a.b", 3, "forward"])
def test_bad_names_are_refused(name):
    with pytest.raises(ModuleError):
        net().register_buffer(name, lucid.ones(1))


def test_things_of_another_kind_are_refused():
    with pytest.raises(ModuleError, match="not a Parameter"):
        net().register_parameter("p", lucid.ones(1))
    with pytest.raises(ModuleError, match="not a Tensor"):
        net().register_buffer("b", 3.0)
    with pytest.raises(ModuleError, match="not a Module"):
        net().register_module("m", lucid.ones(1))


def test_an_attribute_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        net().missing  # noqa: B018


def test_a_module_without_forward_says_so():
    with pytest.raises(ModuleError, match="has no forward"):
        nn.Module()(1)


def test_inner_modules_and_tensors_are_found_by_name():
    m = nn.Sequential(nn.Sequential(nn.Linear(1, 2)), nn.BatchNorm1d(2))
    assert m.get_submodule("0.0") is m[0][0] and m.get_submodule("") is m
    assert m.get_parameter("0.0.weight") is m[0][0].weight
    assert m.get_buffer("1.running_mean") is m[1].running_mean
    for find, name in [(m.get_submodule, "0.7"), (m.get_parameter, "0.0.x"), (m.get_buffer, "x")]:
        with pytest.raises(ModuleError, match=name.replace(".", r"\.")):
            find(name)


def test_apply_calls_children_before_their_parent():
    seen = []
    net().apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "Linear", "Net"]


# State


def test_the_state_holds_parameters_and_persistent_buffers():
    state = net().state_dict()
    assert set(state) == {
        "factor", "offset", "first.weight", "first.bias", "second.weight", "second.bias",
    }  # fmt: skip
    assert not any(x.requires_grad for x in state.values())


def test_the_state_is_the_memory_of_the_module():
    m = net()
    state = m.state_dict()
    with lucid.no_grad():
        m.factor.fill_(7.0)
    assert state["factor"].item() == 7.0


def test_a_loaded_state_gives_the_same_output():
    a, b = net(0), net(1)
    x = x_of(5, 3)
    assert not np.allclose(a(x).detach(), b(x).detach())
    assert tuple(b.load_state_dict(a.state_dict())) == ([], [])
    np.testing.assert_array_equal(a(x).detach(), b(x).detach())


def test_strict_loading_names_what_is_missing_unexpected_or_of_another_shape():
    m = net()
    state = dict(m.state_dict())
    del state["factor"]
    state["extra"] = lucid.ones(1)
    state["first.bias"] = lucid.ones(9)
    before = m.second.bias.detach().clone()
    state["second.bias"] = lucid.ones(2) * 50
    with pytest.raises(ModuleError, match=r"first.bias has shape \(9,\), not \(4,\)") as caught:
        m.load_state_dict(state)
    assert "missing: factor" in str(caught.value) and "unexpected: extra" in str(caught.value)
    np.testing.assert_array_equal(m.second.bias.detach(), before)


def test_loose_loading_tells_the_differences():
    m = net()
    found = m.load_state_dict({"factor": lucid.tensor(5.0), "extra": lucid.ones(1)}, strict=False)
    assert found.unexpected_keys == ["extra"] and "first.weight" in found.missing_keys
    assert m.factor.item() == 5.0


def test_assign_takes_the_tensors_themselves():
    m, value = net(), lucid.tensor(5.0)
    m.load_state_dict({**m.state_dict(), "factor": value}, assign=True)
    assert isinstance(m.factor, nn.Parameter) and m.factor.requires_grad
    value.fill_(6.0)
    assert m.factor.item() == 6.0


def test_a_state_survives_saving(tmp_path):
    a, b = net(0), net(1)
    lucid.save(a.state_dict(), tmp_path / "net.safetensors")
    b.load_state_dict(lucid.load(tmp_path / "net.safetensors"))
    np.testing.assert_array_equal(a(x_of(2, 3)).detach(), b(x_of(2, 3)).detach())


# Tied weights


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(self.a(x))


def test_a_shared_parameter_is_one_parameter_and_two_names_of_the_state():
    m = Tied()
    assert len(list(m.parameters())) == 1 and list(m.state_dict()) == ["a.weight", "b.weight"]
    assert len(list(m.named_parameters(remove_duplicate=False))) == 2


def test_a_shared_parameter_is_one_leaf_whose_gradient_is_the_sum():
    m = Tied()
    grads = lucid.func.grad(lambda m: m(lucid.ones(3)).sum())(m)
    w = m.a.weight.detach().numpy().astype("float64")
    expected = np.outer(np.ones(3), w @ np.ones(3)) + np.outer(w.T @ np.ones(3), np.ones(3))
    assert grads.a.weight is grads.b.weight
    np.testing.assert_allclose(grads.a.weight.detach(), expected, rtol=1e-5)


def test_sharing_survives_a_deep_copy():
    m = copy.deepcopy(Tied())
    assert m.a.weight is m.b.weight


# Copies and conversions


def test_a_deep_copy_shares_nothing():
    m = net()
    other = copy.deepcopy(m)
    with lucid.no_grad():
        other.first.weight.zero_()
        other.offset.zero_()
    assert m.first.weight.detach().abs().sum() > 0 and m.offset.tolist() == [1, 1]
    assert isinstance(other.factor, nn.Parameter) and other.factor.requires_grad


def test_to_converts_floating_tensors_alone():
    m = nn.BatchNorm1d(2).double()
    assert m.weight.dtype == m.running_mean.dtype == lucid.float64
    assert m.num_batches_tracked.dtype == lucid.int64
    assert m.to(lucid.float32).weight.dtype == lucid.float32
    with pytest.raises(LucidError, match="floating"):
        m.to(lucid.int64)


def test_requires_grad_and_zero_grad_reach_all_parameters():
    m = net()
    m(x_of(2, 3)).sum().backward()
    assert all(p.grad is not None for p in m.parameters())
    m.zero_grad()
    assert all(p.grad is None for p in m.parameters())
    m.requires_grad_(False)
    assert not m(x_of(2, 3)).requires_grad


# Train and eval


def test_train_and_eval_reach_all_modules():
    m = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout()))
    assert all(part.training for part in m.modules())
    assert not any(part.training for part in m.eval().modules())
    assert all(part.training for part in m.train().modules())


def test_a_jitted_function_sees_train_and_eval():
    m = nn.Dropout(0.5)
    f = lucid.jit(lambda x: m(x))
    x = lucid.ones(1000)
    for _ in range(2):
        assert set(f(x).tolist()) == {0.0, 2.0}
        m.eval()
        assert set(f(x).tolist()) == {1.0}
        m.train()


# Hooks


def test_forward_hooks_see_and_replace_arguments_and_outputs():
    m = nn.Identity()
    before = m.register_forward_pre_hook(lambda m, args: args[0] + 1)
    after = m.register_forward_hook(lambda m, args, y: y * 10)
    assert m(lucid.tensor(1.0)).item() == 20.0
    before.remove()
    assert m(lucid.tensor(1.0)).item() == 10.0
    after.remove()
    assert m(lucid.tensor(1.0)).item() == 1.0


def test_hooks_run_in_order_unless_prepended():
    m, seen = nn.Identity(), []
    m.register_forward_hook(lambda *_: seen.append(1))
    m.register_forward_hook(lambda *_: seen.append(2))
    m.register_forward_hook(lambda *_: seen.append(0), prepend=True)
    m(lucid.ones(1))
    assert seen == [0, 1, 2]


def test_hooks_with_kwargs_see_and_replace_them():
    class Scaled(nn.Module):
        def forward(self, x, *, by=1.0):
            return x * by

    m = Scaled()
    m.register_forward_pre_hook(lambda m, args, kw: (args, {"by": kw["by"] + 1}), with_kwargs=True)
    assert m(lucid.tensor(1.0), by=2.0).item() == 3.0


def test_backward_hooks_see_the_gradients():
    m, seen = nn.Linear(2, 1, bias=False), []
    m.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append((grad_in, grad_out)))
    x = lucid.ones(3, 2).requires_grad_()
    (m(x) * 5).sum().backward()
    ((grad_in,), (grad_out,)) = seen[0]
    np.testing.assert_allclose(grad_out, np.full((3, 1), 5.0))
    weight = m.weight.detach().numpy()
    np.testing.assert_allclose(grad_in, np.repeat(5 * weight, 3, 0), rtol=1e-6)


def test_backward_hooks_replace_the_gradients():
    m = nn.Linear(2, 1, bias=False)
    m.register_full_backward_pre_hook(lambda m, grad_out: (grad_out[0] * 2,))
    m.register_full_backward_hook(lambda m, grad_in, grad_out: (grad_in[0] * 10,))
    x = lucid.ones(1, 2).requires_grad_()
    m(x).sum().backward()
    np.testing.assert_allclose(m.weight.grad, [[2.0, 2.0]])
    np.testing.assert_allclose(x.grad, 20 * m.weight.detach().numpy(), rtol=1e-6)


# Containers


def test_sequential_is_a_list_of_modules():
    m = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert len(m) == 3 and isinstance(m[1], nn.ReLU) and len(m[:2]) == 2
    assert isinstance(m[:2], nn.Sequential) and m[-1] is m[2]
    m.append(nn.Tanh())
    del m[1]
    assert [type(part).__name__ for part in m] == ["Linear", "Linear", "Tanh"]
    assert list(m.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_module_lists_are_edited_as_lists():
    m = nn.ModuleList([nn.Linear(1, 1), nn.ReLU()])
    m.append(nn.Tanh())
    m.extend([nn.GELU()])
    m.insert(0, nn.ELU())
    m[1] = nn.SiLU()
    del m[2]
    assert [type(part).__name__ for part in m] == ["ELU", "SiLU", "Tanh", "GELU"]
    with pytest.raises(LucidError):
        m[9]


def test_module_dicts_are_edited_as_dicts():
    m = nn.ModuleDict({"a": nn.Linear(1, 2)})
    m["b"] = nn.ReLU()
    m.update({"c": nn.Tanh()})
    assert list(m) == ["a", "b", "c"] and "b" in m and len(m) == 3
    assert isinstance(m.pop("b"), nn.ReLU) and list(m.keys()) == ["a", "c"]
    assert list(m.state_dict()) == ["a.weight", "a.bias"]


def test_parameter_lists_and_dicts_register_tensors():
    a = nn.ParameterList([lucid.ones(2), nn.Parameter(lucid.zeros(1))])
    a.append(lucid.ones(3))
    assert [p.shape for p in a.parameters()] == [(2,), (1,), (3,)]
    assert all(p.requires_grad for p in a)
    b = nn.ParameterDict({"w": lucid.ones(2)})
    b["v"] = lucid.ones(1)
    assert list(b.state_dict()) == ["w", "v"] and isinstance(b["w"], nn.Parameter)


# A module as a pytree


def test_grad_of_a_module_is_a_module_of_gradients():
    m, x = net(), x_of(5, 3)
    grads = lucid.func.grad(lambda m: (m(x) ** 2).sum())(m)
    (m(x) ** 2).sum().backward()
    for (name, p), (other, g) in zip(m.named_parameters(), grads.named_parameters()):
        assert name == other
        np.testing.assert_allclose(g.detach(), p.grad, rtol=1e-5, atol=1e-6)


def test_a_module_is_an_argument_of_a_jitted_function():
    f = lucid.jit(lambda m, x: m(x))
    x = x_of(5, 3)
    for seed in (0, 1, 2):
        m = net(seed)
        np.testing.assert_allclose(f(m, x).detach(), m(x).detach(), rtol=1e-5, atol=1e-6)
    assert len(f.paths) == 1


def test_vmap_runs_an_ensemble():
    models = [net(seed) for seed in range(3)]
    params, buffers = lucid.func.stack_module_state(models)
    x = x_of(5, 3)

    def run(params, buffers):
        return lucid.func.functional_call(models[0], (params, buffers), (x,))

    expected = np.stack([m(x).detach().numpy() for m in models])
    found = lucid.func.vmap(run)(params, buffers)
    np.testing.assert_allclose(found.detach(), expected, rtol=1e-5, atol=1e-6)


def test_functional_call_refuses_names_that_are_not_there():
    with pytest.raises(ModuleError, match="has no nothing"):
        lucid.func.functional_call(net(), {"nothing": lucid.ones(1)}, (x_of(1, 3),))


# How it looks


def test_the_repr_shows_what_is_inside():
    text = repr(nn.Sequential(nn.Linear(1, 2), nn.Sequential(nn.ReLU())))
    assert text == (
        "Sequential(\n  (0): Linear(in_features=1, out_features=2, bias=True)\n"
        "  (1): Sequential(\n    (0): ReLU()\n  )\n)"
    )


def test_a_part_of_a_sequential_keeps_its_names():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    part = net[1:]
    assert list(part.state_dict()) == ["2.weight", "2.bias"] and part[1] is net[2]
    part.append(nn.Tanh())
    assert len(part) == 3 and part(lucid.ones(3)).shape == (1,)


def test_a_sequential_can_be_repeated():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    assert len(net * 2) == len(2 * net) == 4 and len(list((net * 2).parameters())) == 2
    net *= 3
    assert len(net) == 6
    with pytest.raises(ModuleError, match="number of repeats must be positive"):
        net * 0


def test_a_parameter_dict_is_used_as_a_dictionary():
    params = nn.ParameterDict({"a": lucid.ones(2), "b": lucid.zeros(1)})
    assert params.get("a") is params["a"] and params.get("z") is None
    assert isinstance(params.setdefault("c", lucid.ones(3)), nn.Parameter)
    assert list(reversed(params)) == ["c", "b", "a"] and params.popitem()[0] == "c"
    assert list(params | {"d": lucid.ones(1)}) == ["a", "b", "d"]
    assert params.copy()["a"] is params["a"]
    params |= {"e": lucid.ones(1)}
    assert [name for name, _ in params.named_parameters()] == ["a", "b", "e"]
    assert list(params.fromkeys(["x", "y"], lucid.ones(1))) == ["x", "y"]


def test_a_member_of_a_parameter_list_that_is_exchanged_is_a_parameter():
    params = nn.ParameterList([lucid.ones(2)])
    params[0] = lucid.zeros(3)
    assert isinstance(params[0], nn.Parameter) and params[0].shape == (3,)


def test_a_hook_that_is_always_called_is_called_when_forward_raises():
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    module, seen = Fails(), []
    always = lambda m, args, out: seen.append(("always", out))  # noqa: E731
    module.register_forward_hook(always, always_call=True)
    module.register_forward_hook(lambda m, args, out: seen.append(("else", out)))
    with pytest.raises(ValueError, match="no"):
        module(1)
    assert seen == [("always", None)]


def test_a_state_is_added_to_a_dictionary_under_a_prefix():
    found = {"epoch": 3}
    assert nn.Linear(2, 1).state_dict(destination=found, prefix="net.") is found
    assert list(found) == ["epoch", "net.weight", "net.bias"]
    assert list(nn.Linear(2, 1).state_dict(prefix="a_")) == ["a_weight", "a_bias"]


def test_modules_may_come_as_often_as_they_stand_there():
    layer = nn.Linear(1, 1)
    net = nn.Sequential(layer, layer)
    assert len(list(net.modules())) == 2 and len(list(net.modules(remove_duplicate=False))) == 3
    with pytest.raises(ModuleError, match="mode must be True or False"):
        net.train("yes")
