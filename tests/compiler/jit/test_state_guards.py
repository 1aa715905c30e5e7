"""Python state that a jitted function reads is that of every call, wherever it is kept."""

from __future__ import annotations

import collections
import dataclasses
import types

import numpy as np
import pytest

import lucid
from lucid import nn

X = lucid.tensor([1.0, 2.0])
SCALE = 2.0


class Holder:
    factor = 2.0

    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return x * self.k

    @classmethod
    def scaled(cls, x):
        return x * cls.factor


class Slotted:
    __slots__ = ("k",)

    def __init__(self, k):
        self.k = k


@dataclasses.dataclass
class Config:
    k: float


def put(x, value):
    x.k = value


CASES = {
    "an object that a helper gets": (Holder, lambda h: h.k, put),
    "a dataclass": (Config, lambda h: h.k, put),
    "a namespace": (lambda k: types.SimpleNamespace(k=k), lambda h: h.k, put),
    "slots": (Slotted, lambda h: h.k, put),
    "an object in a list": (lambda k: [Holder(k)], lambda h: h[0].k, lambda h, v: put(h[0], v)),
    "an object in a tuple": (lambda k: (Holder(k),), lambda h: h[0].k, lambda h, v: put(h[0], v)),
    "an object in a dict": (
        lambda k: {"a": Holder(k)}, lambda h: h["a"](1.0), lambda h, v: put(h["a"], v)),
    "objects in objects": (
        lambda k: Holder([Holder(k)]), lambda h: h.k[0].k, lambda h, v: put(h.k[0], v)),
    "a bound method": (
        lambda k: [Holder(k).__call__], lambda h: h[0](1.0), lambda h, v: put(h[0].__self__, v)),
    "a deque": (
        lambda k: collections.deque([k]), lambda h: h[0], lambda h, v: h.__setitem__(0, v)),
    "a defaultdict": (
        lambda k: collections.defaultdict(float, k=k), lambda h: h["k"],
        lambda h, v: h.__setitem__("k", v)),
    "a set": (lambda k: {k}, max, lambda h, v: (h.clear(), h.add(v))),
    "an attribute of a class": (
        lambda k: Holder, lambda h: h.factor, lambda h, v: setattr(h, "factor", v)),
    "a class method": (
        lambda k: Holder, lambda h: h.scaled(1.0), lambda h, v: setattr(h, "factor", v)),
    "a class attribute of an object": (
        Holder, lambda h: h.factor, lambda h, v: setattr(Holder, "factor", v)),
    "a module": (lambda k: types.ModuleType("config"), lambda h: h.k, put),
    "an element of an array": (
        lambda k: np.array([k]), lambda h: float(h[0]), lambda h, v: h.__setitem__(0, v)),
    "an array": (lambda k: np.array(k), lambda h: h, lambda h, v: h.__setitem__((), v)),
    "a tensor in an object": (
        lambda k: [Holder(lucid.tensor(k))], lambda h: h[0].k,
        lambda h, v: put(h[0], lucid.tensor(v))),
    "a name in a text": (Holder, lambda h: getattr(h, "k"), put),  # noqa: B009
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_state_of_a_call_is_seen(case, monkeypatch):
    monkeypatch.setattr(Holder, "factor", 2.0)
    make, get, change = CASES[case]
    held = make(2.0)
    f = lucid.jit(lambda x: x * get(held))
    for value in (2.0, 3.0, 3.0, 2.0):
        change(held, value)
        assert f(X).tolist() == [value, 2 * value]
    assert not f.is_uncompiled


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.holder, self.items, self.table = Holder(2.0), [2.0], {"k": 2.0}

    def forward(self, x):
        return x * SCALE * self.holder.k * self.items[0] * self.table["k"]


@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: nn.Sequential(m, m)])
def test_globals_and_containers_that_modules_read_are_seen(wrap, monkeypatch):
    inner = Scaled()
    model = wrap(inner)
    functions = [lucid.jit(model), lucid.jit(lambda x: model(x))]

    def agree():
        expected = model(X).tolist()
        assert all([f(X).tolist() == expected for f in functions for _ in range(2)])

    agree()
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    agree()
    inner.holder.k = 5.0
    agree()
    inner.items[0] = 7.0
    agree()
    inner.table["k"] = 11.0
    agree()


def test_what_the_function_itself_changes_is_no_guard():
    log, counter = [], Holder(0)

    @lucid.jit
    def f(x):
        log.append(1)
        counter.k += 1
        return x * 2

    for _ in range(20):
        assert f(X).tolist() == [2.0, 4.0]
    assert len(log) == counter.k == 1
