"""What stands around the state of a Module: hooks, extra state, modules put in place."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import ModuleError
from lucid.nn.hooks import KINDS


def net():
    return nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))


def test_hooks_before_and_after_the_state_is_written():
    model, seen = net(), []
    model[0].register_state_dict_pre_hook(lambda m, prefix, keep: seen.append((prefix, keep)))

    def rename(module, state, prefix, metadata):
        state[f"{prefix}kernel"] = state.pop(f"{prefix}weight")

    handle = model[1].register_state_dict_post_hook(rename)
    assert list(model.state_dict()) == ["0.weight", "0.bias", "1.bias", "1.kernel"]
    assert seen == [("0.", False)]
    handle.remove()
    assert list(model.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_a_hook_before_loading_renames_what_an_older_version_wrote():
    model, old = net(), net().state_dict()
    old["1.kernel"] = old.pop("1.weight")

    def rename(module, state, prefix, metadata, strict, missing, unexpected, errors):
        if f"{prefix}kernel" in state:
            state[f"{prefix}weight"] = state.pop(f"{prefix}kernel")

    with pytest.raises(ModuleError, match=r"missing: 1\.weight; unexpected: 1\.kernel"):
        model.load_state_dict(old)
    model[1].register_load_state_dict_pre_hook(rename)
    model.load_state_dict(old)
    np.testing.assert_array_equal(model[1].weight.detach(), old["1.kernel"])
    assert "1.kernel" in old and "1.weight" not in old


def test_an_error_of_a_hook_before_loading_is_told_and_nothing_is_loaded():
    model = net()
    before = model[0].weight.detach().clone()
    hook = lambda m, state, prefix, meta, strict, missing, unexpected, errors: errors.append("old")  # noqa: E731
    model.register_load_state_dict_pre_hook(hook)
    with pytest.raises(ModuleError, match="Sequential: old"):
        model.load_state_dict(net().state_dict())
    np.testing.assert_array_equal(model[0].weight.detach(), before)


def test_a_hook_after_loading_may_strike_out_names():
    model, state = net(), net().state_dict()
    del state["1.bias"]
    handle = model.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    assert model.load_state_dict(state) == ([], [])
    handle.remove()
    with pytest.raises(ModuleError, match=r"missing: 1\.bias"):
        model.load_state_dict(state)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def get_extra_state(self):
        return {"calls": self.calls}

    def set_extra_state(self, state):
        self.calls = state["calls"]


def test_extra_state_goes_with_the_state():
    model, other = nn.Sequential(Counting()), nn.Sequential(Counting())
    model[0].calls = 7
    state = model.state_dict()
    assert state == {"0._extra_state": {"calls": 7}}
    other.load_state_dict(state)
    assert other[0].calls == 7
    with pytest.raises(ModuleError, match=r"unexpected: 0\._extra_state"):
        nn.Sequential(nn.ReLU()).load_state_dict(state)


def test_a_hook_of_the_state_leaves_calls_as_they_are():
    layer = nn.Linear(2, 1)
    layer.register_state_dict_post_hook(lambda *args: None)
    assert not any([layer._hooks.callbacks(kind) for kind in KINDS])


def test_set_submodule_puts_a_module_in_place():
    model = nn.Sequential(net(), nn.ReLU())
    model.set_submodule("0.1", nn.Tanh())
    assert isinstance(model[0][1], nn.Tanh)
    with pytest.raises(ModuleError, match=r"no module '0\.7'"):
        model.set_submodule("0.7", nn.Tanh(), strict=True)
    with pytest.raises(ModuleError, match="not a Module"):
        model.set_submodule("0.1", 3)


def test_type_converts_a_module():
    assert nn.Linear(2, 1).type(lucid.float64).weight.dtype == lucid.float64
