"""A jitted function and the variables, objects and errors around it."""

import gc
import subprocess
import sys
import types
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


class Base:
    k = 2.0

    def times(self, x):
        return x * self.k

    @property
    def doubled(self):
        return 2 * self.k

    @staticmethod
    def fixed():
        return 2.0


def new_class():
    return type("Derived", (Base,), {})


class Shifted(nn.Module):
    scale = 2.0

    def forward(self, x):
        return self.scaled(x) + getattr(self, "shift", 0.0)

    def scaled(self, x):
        return x * self.scale


def tried(x):
    try:
        return x.late
    except AttributeError:
        return 1.0


def put(name, value):
    return lambda x: setattr(x, name, value)


def put_in_class(name, value):
    return lambda x: setattr(type(x), name, value)


LATER = {
    "an attribute that shadows the class's": (Base, lambda c: c.k, put("k", 5.0)),
    "None that shadows the class's": (
        Base, lambda c: 9.0 if c.k is None else c.k, put("k", None)),
    "an attribute of a subclass": (
        lambda: new_class()(), lambda c: c.k, put_in_class("k", 5.0)),
    "an attribute of a subclass, read from it": (new_class, lambda c: c.k, put("k", 5.0)),
    "an attribute of a base": (
        new_class, lambda c: c.k, lambda c: setattr(c.__bases__[0], "k", 5.0)),
    "getattr": (Base, lambda c: getattr(c, "late", 1.0), put("late", 5.0)),
    "hasattr": (Base, lambda c: c.late if hasattr(c, "late") else 1.0, put("late", 5.0)),
    "getattr of a class": (
        lambda: new_class()(), lambda c: getattr(c, "late", 1.0), put_in_class("late", 5.0)),
    "AttributeError": (Base, tried, put("late", 5.0)),
    "a method": (
        lambda: new_class()(), lambda c: c.times(1.0), put_in_class("times", lambda s, x: x * 7)),
    "a method of one object": (Base, lambda c: c.times(1.0), put("times", lambda x: x * 7)),
    "a method of its class": (Base, lambda c: c.times(1.0),
                              put_in_class("times", lambda s, x: x * 7)),
    "a property": (Base, lambda c: c.doubled, put_in_class("doubled", property(lambda s: 9.0))),
    "a static method": (
        Base, lambda c: c.fixed(), put_in_class("fixed", staticmethod(lambda: 9.0))),
    "a method of a class": (
        new_class, lambda c: c.fixed(), put("fixed", staticmethod(lambda: 9.0))),
    "an attribute of a Module": (Shifted, lambda m: m(1.0), put("scale", 5.0)),
    "a class attribute of a Module": (Shifted, lambda m: m(1.0), put_in_class("scale", 5.0)),
    "an optional attribute of a Module": (Shifted, lambda m: m(1.0), put("shift", 5.0)),
    "an optional buffer of a Module": (
        Shifted, lambda m: m(1.0), lambda m: m.register_buffer("shift", lucid.tensor(3.0))),
    "a forward": (Shifted, lambda m: m(1.0), put_in_class("forward", lambda s, x: x * 7)),
    "a forward of one Module": (Shifted, lambda m: m(1.0), put("forward", lambda x: x * 7)),
    "a method of a Module": (
        Shifted, lambda m: m(1.0), put_in_class("scaled", lambda s, x: x * 7)),
    "a function of a module": (
        lambda: module(times=lambda x: 2 * x), lambda m: m.times(1.0),
        put("times", lambda x: x * 7)),
}  # fmt: skip


def module(**attributes):
    found = types.ModuleType("parts")
    vars(found).update(attributes)
    return found


@pytest.fixture
def restored_classes():
    kept = [(cls, dict(vars(cls))) for cls in (Base, Shifted)]
    yield
    for cls, before in kept:
        for name in [name for name in vars(cls) if name not in before]:
            delattr(cls, name)
        for name, value in before.items():
            if vars(cls)[name] is not value:
                setattr(cls, name, value)


@pytest.mark.parametrize("case", LATER)
def test_a_name_that_is_bound_later_or_anew_is_seen(case, restored_classes):
    make, get, change = LATER[case]
    held = make()
    f = lucid.jit(lambda x: x * get(held))
    before = (X * get(held)).tolist()
    assert f(X).tolist() == f(X).tolist() == before
    change(held)
    after = (X * get(held)).tolist()
    assert f(X).tolist() == f(X).tolist() == after != before
    assert "was changed" in f.why_recompiled()


def test_another_class_or_function_of_lucid_in_a_variable_is_seen():
    act, made = lucid.sin, Base
    f = lucid.jit(lambda x: act(x) * made().k)
    np.testing.assert_allclose(f(X), 2 * np.sin(X.numpy()), rtol=1e-6)
    act = lucid.cos
    np.testing.assert_allclose(f(X), 2 * np.cos(X.numpy()), rtol=1e-6)
    made = type("Other", (Base,), {"k": 3.0})
    np.testing.assert_allclose(f(X), 3 * np.cos(X.numpy()), rtol=1e-6)


def test_names_that_the_function_itself_binds_are_no_guards():
    class Counting(nn.Module):
        count, cache = 0, None

        def forward(self, x):
            self.count += 1
            if self.cache is None:
                self.cache = 2.0
            return x * self.cache

    class Plain:
        count, k = 0, 2.0

    plain, net = Plain(), Counting()

    @lucid.jit
    def f(x):
        plain.count += 1
        return net(x) * plain.k

    for _ in range(3):
        assert f(X).tolist() == [4.0, 8.0]
    assert (net.count, plain.count) == (1, 1) and "not recompiled" in f.why_recompiled()
    plain.k = 3.0
    assert f(X).tolist() == [6.0, 12.0]


@pytest.mark.parametrize("options", [{"static_argnums": 1}, {"static_argnames": "g"}])
def test_what_static_arguments_read_is_seen(options):
    scale, held = 2.0, Base()
    f = lucid.jit(lambda x, g: g(x) if callable(g) else g.times(x), **options)

    def scaled(x):
        return x * scale

    def call(g):
        return (f(X, g) if "static_argnums" in options else f(X, g=g)).tolist()

    assert call(scaled) == call(held) == [2.0, 4.0]
    scale = held.k = 3.0
    assert call(scaled) == call(held) == [3.0, 6.0]


def test_modules_that_the_function_imports_are_seen(monkeypatch):
    monkeypatch.setitem(sys.modules, "parts", module(k=2.0, inner=module(k=2.0)))
    monkeypatch.setitem(sys.modules, "parts.inner", sys.modules["parts"].inner)

    @lucid.jit
    def whole(x):
        import parts

        return x * parts.k

    @lucid.jit
    def part(x):
        from parts.inner import k

        return x * k

    assert whole(X).tolist() == part(X).tolist() == [2.0, 4.0]
    sys.modules["parts"].k = sys.modules["parts.inner"].k = 3.0
    assert whole(X).tolist() == part(X).tolist() == [3.0, 6.0]


def test_a_module_that_the_recorded_run_imports_first_is_seen(monkeypatch, tmp_path):
    (tmp_path / "first_parts.py").write_text("k = 2.0\n")
    monkeypatch.syspath_prepend(tmp_path)

    @lucid.jit
    def f(x):
        import first_parts

        return x * first_parts.k

    assert f(X).tolist() == [2.0, 4.0]
    sys.modules["first_parts"].k = 3.0
    assert f(X).tolist() == [3.0, 6.0]
    del sys.modules["first_parts"]


class Syntax:
    """A class whose operators read what it holds."""

    def __init__(self):
        self.data = {"lr": 2.0}

    def __getitem__(self, name):
        return self.data[name]

    def __getattr__(self, name):
        if name == "lr":
            return self.data[name]
        raise AttributeError(name)

    def __iter__(self):
        return iter(self.data.values())

    def __len__(self):
        return int(self.data["lr"])

    def __contains__(self, value):
        return value in self.data.values()

    def __mul__(self, x):
        return self.data["lr"] * x

    __rmul__ = __call__ = __mul__

    def __enter__(self):
        return self.data["lr"]

    def __exit__(self, *_):
        return None


class Truth:
    def __init__(self):
        self.data = {"lr": 2.0}

    def __bool__(self):
        return self.data["lr"] > 2.5


class Table(dict):
    def __init__(self):
        self.data = {"lr": 2.0}

    def __missing__(self, name):
        return self.data[name]


def entered(s):
    with s as k:
        return k


@pytest.mark.parametrize("make, get", [
    (Syntax, lambda s: s["lr"]), (Syntax, lambda s: s.lr), (Syntax, lambda s: sum(s)),
    (Syntax, len), (Syntax, lambda s: 1.0 + (2.0 in s)), (Syntax, lambda s: s * 1.0),
    (Syntax, lambda s: 1.0 * s), (Syntax, lambda s: s(1.0)), (Syntax, entered),
    (Truth, lambda s: 3.0 if s else 2.0), (Table, lambda s: s["lr"]),
])  # fmt: skip
def test_what_operators_of_an_object_read_is_seen(make, get):
    held = make()
    f = lucid.jit(lambda x: x * get(held))
    for value in (2.0, 3.0, 3.0, 2.0):
        held.data["lr"] = value
        assert f(X).tolist() == (X * get(held)).tolist()
    held.data = {"lr": 3.0}
    assert f(X).tolist() == (X * get(held)).tolist()
