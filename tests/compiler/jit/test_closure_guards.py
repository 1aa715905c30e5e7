"""A jitted function and the variables, objects and errors around it."""

import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest

import lucid
from lucid import nn

X = lucid.tensor([1.0, 2.0])
factor = 2.0
weight = lucid.ones(2)


def scaled(x):
    return (x * factor).sum()


def test_a_global_variable_that_holds_something_else_is_seen(monkeypatch):
    f = lucid.jit(lambda x: (x * weight).sum() * factor)
    assert f(X).item() == 6.0
    monkeypatch.setitem(globals(), "factor", 3.0)
    assert f(X).item() == 9.0
    assert "factor was changed" in f.why_recompiled()
    monkeypatch.setitem(globals(), "weight", lucid.zeros(2))
    assert f(X).item() == 0.0


def test_a_variable_of_a_function_that_is_called_is_seen(monkeypatch):
    f = lucid.jit(lambda x: scaled(x))
    assert f(X).item() == 6.0
    monkeypatch.setitem(globals(), "factor", 3.0)
    assert f(X).item() == 9.0


def test_a_new_model_in_an_old_variable_is_the_one_that_is_trained():
    def build():
        net = nn.Linear(2, 1)
        return net, lucid.optim.SGD(net.parameters(), lr=0.1)

    net, optimizer = build()

    @lucid.jit
    def step(x):
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()

    step(X)
    old = net
    before = old.weight.detach().clone()
    net, optimizer = build()
    start = net.weight.detach().clone()
    step(X)
    assert (old.weight == before).all() and (net.weight != start).all()


def test_what_lists_and_dictionaries_hold_is_seen():
    parts, named = [lucid.ones(2)], {"w": lucid.ones(2)}
    f = lucid.jit(lambda: sum(part.sum() for part in parts) + named["w"].sum())
    assert f().item() == 4.0
    parts.append(lucid.ones(2))
    assert f().item() == 6.0
    named["w"] = lucid.zeros(2)
    assert f().item() == 4.0


def test_a_variable_of_the_same_value_or_changed_by_the_function_records_nothing():
    scale, seen = 2.5, []

    @lucid.jit
    def f(x):
        seen.append(len(seen))
        return x * scale

    for text in ("2.5", "2.5", "2.5"):
        f(X)
        scale = float(text)
    assert "not recompiled" in f.why_recompiled() and seen == [0]


class Trainer:
    """A class with a jitted method."""

    def __init__(self, start):
        self.w = nn.Parameter(lucid.tensor(start))

    @lucid.jit
    def step(self, x):
        self.w.grad = None
        (self.w * x).sum().backward()
        with lucid.no_grad():
            self.w.sub_(self.w.grad)
        return self.w.detach().clone()


def test_a_jitted_method_belongs_to_its_object():
    one, other = Trainer([0.0, 0.0]), Trainer([5.0, 5.0])
    assert one.step(X).tolist() == [-1.0, -2.0] and other.step(X).tolist() == [4.0, 3.0]
    assert one.step(X).tolist() == [-2.0, -4.0] and other.step(X).tolist() == [3.0, 1.0]
    assert one.step == one.step != other.step and isinstance(one.step, type(Trainer.step))
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None


def test_a_jitted_method_keeps_a_temporary_object_alive():
    assert Trainer([0.0, 0.0]).step(X).tolist() == [-1.0, -2.0]
    step = Trainer([5.0, 5.0]).step
    assert step(X).tolist() == [4.0, 3.0] and step(X).tolist() == [3.0, 1.0]


def test_a_jitted_forward_has_its_gradient_and_its_statistics():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.norm = nn.Linear(2, 3), nn.BatchNorm1d(3)

        @lucid.jit
        def forward(self, x):
            return self.norm(self.layer(x))

    net = Net()
    for _ in range(3):
        net.zero_grad()
        net(lucid.randn(4, 2)).pow(2).sum().backward()
    assert net.layer.weight.grad is not None and net.norm.num_batches_tracked.item() == 3


def test_a_jitted_module_has_what_the_module_has():
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    jitted = lucid.jit(net)
    assert [p is q for p, q in zip(jitted.parameters(), net.parameters())] == [True, True]
    jitted.eval()
    np.testing.assert_allclose(jitted(X).detach(), net(X).detach(), rtol=1e-6)
    with pytest.raises(AttributeError):
        _ = jitted.nothing


def test_an_error_in_the_recorded_run_leaves_all_tensors_usable():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    optimizer = lucid.optim.Adam(net.parameters())
    fails = [True]

    @lucid.jit
    def step(x):
        optimizer.zero_grad()
        net(x).pow(2).sum().backward()
        optimizer.step()
        if fails[0]:
            raise ValueError("on the way")

    x = lucid.randn(4, 2)
    with pytest.raises(ValueError, match="on the way"):
        step(x)
    fails[0] = False
    step(x), step(x)
    net(x).pow(2).sum().backward()
    optimizer.step()
    assert net[1].num_batches_tracked.item() == 4
    assert all(p.is_leaf and p.requires_grad for p in net.parameters())


def test_modules_may_be_imported_while_a_run_is_recorded():
    script = (
        "import sys, lucid\n"
        "f = lucid.jit(lambda x, w: lucid.conv2d(x, w))\n"
        "assert 'lucid.nn.module' not in sys.modules\n"
        "x, w = lucid.ones(1, 1, 3, 3), lucid.ones(1, 1, 3, 3)\n"
        "print([f(x, w).item() for _ in range(2)], '__getattribute__' in vars(lucid.nn.Module))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "[9.0, 9.0] False\n", done.stderr


def test_closures_of_one_code_are_all_looked_into(monkeypatch):
    def summed(f):
        return lambda x: f(x).sum()

    slope = lucid.func.grad(summed(lucid.jit(lucid.func.grad(summed(lambda x: x**3 * factor)))))
    f = lucid.jit(slope)
    for value in (2.0, 3.0, 5.0):
        monkeypatch.setitem(globals(), "factor", value)
        assert f(X).tolist() == [6 * value, 12 * value]
