"""Idioms of training loops beside PyTorch's own: the same weights and batches, the same results.

Two optimizers over one model, accumulation, clipping, averages of weights, tied weights, freezing and
replacing layers, hooks, exceptions, penalties of gradients, deep copies and writes in the middle of a step.
"""

# ruff: noqa
from __future__ import annotations

import copy
from typing import Any

import numpy as np


def results(L: Any, nn: Any) -> dict[str, list[np.ndarray]]:
    """Run every idiom with `lucid` or `torch`; return parameters and losses at the end."""
    T = L.tensor
    rng = np.random.default_rng(0)
    W = [
        rng.standard_normal(s).astype("f4") * 0.5
        for s in ((8, 4), (8,), (4, 8), (4,), (1, 4), (1,))
    ]
    data = [
        (rng.standard_normal((b, 4)).astype("f4"), rng.standard_normal((b, 1)).astype("f4"))
        for b in (6, 6, 6, 3, 6, 6, 3, 6, 6, 6, 2, 6) * 2
    ]

    def model():
        m = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1))
        with L.no_grad():
            for p, w in zip(m.parameters(), W):
                p.copy_(T(w))
        return m

    num = lambda t: np.asarray(t.detach().numpy()).astype("f8").copy()
    out = {}

    def rec(name, m, *extra):
        out[name] = [num(p) for p in m.parameters()] + [num(e) for e in extra]

    def loss(m, x, y):
        return ((m(T(x)) - T(y)) ** 2).mean()

    # two optimizers
    m = model()
    a = L.optim.SGD(m[0].parameters(), lr=0.1, momentum=0.9)
    b = L.optim.Adam(list(m[2].parameters()) + list(m[4].parameters()), lr=0.01)
    for x, y in data:
        a.zero_grad()
        b.zero_grad()
        l = loss(m, x, y)
        l.backward()
        a.step()
        b.step()
    rec("two", m)
    # accumulation + clip + EMA + lr change
    m = model()
    ema = copy.deepcopy(m)
    o = L.optim.Adam(m.parameters(), lr=0.02)
    for i, (x, y) in enumerate(data):
        (loss(m, x, y) / 3).backward()
        if i % 3 == 2:
            n = nn.utils.clip_grad_norm_(m.parameters(), 0.5)
            o.step()
            o.zero_grad()
            with L.no_grad():
                for p, q in zip(ema.parameters(), m.parameters()):
                    p.mul_(0.9).add_(q, alpha=0.1)
            o.param_groups[0]["lr"] *= 0.9
    rec("ema", ema, n)

    # tying
    class Tied(nn.Module):
        def __init__(s):
            super().__init__()
            s.a = nn.Linear(4, 4)
            s.b = nn.Linear(4, 4)
            s.b.weight = s.a.weight
            with L.no_grad():
                s.a.weight.copy_(T(W[0][:4]))
                s.a.bias.copy_(T(W[3]))
                s.b.bias.copy_(T(W[3] * 2))

        def forward(s, x):
            return s.b(L.tanh(s.a(x))).sum(1, keepdim=True)

    m = Tied()
    o = L.optim.SGD(m.parameters(), lr=0.05)
    for x, y in data:
        o.zero_grad()
        loss(m, x, y).backward()
        o.step()
    rec("tied", m)
    # freeze mid-way, replace head, unfreeze
    m = model()
    o = L.optim.SGD(m.parameters(), lr=0.1)
    for i, (x, y) in enumerate(data):
        if i == 6:
            for p in m[0].parameters():
                p.requires_grad_(False)
        if i == 12:
            for p in m[0].parameters():
                p.requires_grad_(True)
        if i == 15:
            new = nn.Linear(4, 1)
            with L.no_grad():
                new.weight.copy_(T(W[4] * 2))
                new.bias.copy_(T(W[5]))
            m[4] = new
            o = L.optim.SGD(m.parameters(), lr=0.1)
        o.zero_grad()
        loss(m, x, y).backward()
        o.step()
    rec("freeze", m)
    # hooks and exceptions mid-step, kept losses
    m = model()
    o = L.optim.SGD(m.parameters(), lr=0.1)
    kept = []
    seen = []
    h = m[2].weight.register_hook(lambda g: g * 0.5)
    m[1].register_forward_hook(lambda mod, i, o_: o_ * 1.5)
    for i, (x, y) in enumerate(data):
        try:
            o.zero_grad()
            l = loss(m, x, y)
            if i in (5, 11):
                raise RuntimeError
            l.backward()
            o.step()
            kept.append(l)
        except RuntimeError:
            pass
        if i == 8:
            h.remove()
        if i % 4 == 0:
            seen.append(l)
    rec("hooks", m, *kept[-3:], *seen)
    # penalty, double backward, detach, numpy views of results
    m = model()
    o = L.optim.SGD(m.parameters(), lr=0.05)
    for i, (x, y) in enumerate(data):
        o.zero_grad()
        xx = T(x).requires_grad_(True)
        pred = m(xx)
        g = L.autograd.grad(pred.sum(), xx, create_graph=True)
        g = g[0] if isinstance(g, (tuple, list)) else g
        l = ((pred - T(y)) ** 2).mean() + 0.1 * ((g.norm(dim=1) - 1) ** 2).mean()
        l.backward()
        o.step()
    rec("penalty", m, l)
    # in-place on buffers, views of params, generator of batches, deepcopy mid-step, state dict mid-way
    m = model()
    o = L.optim.Adam(m.parameters(), lr=0.02, weight_decay=0.01)
    hist = []

    def batches():
        for x, y in data:
            yield x, y

    for i, (x, y) in enumerate(batches()):
        o.zero_grad()
        l = loss(m, x, y)
        mid = copy.deepcopy(m)
        sd = {k: v.clone() for k, v in m.state_dict().items()}
        l.backward()
        o.step()
        if i == 10:
            m.load_state_dict(sd)
        if i == 14:
            with L.no_grad():
                m[0].weight[0] *= 2
                m[0].weight.data[1] = 0.5
                m[2].weight.clamp_(-0.4, 0.4)
        v = l.detach().numpy()
        hist.append(float(v))
    rec("mid", m, *mid.parameters())
    out["mid"].append(np.array(hist))
    # reuse loss twice w retain, add param group, zero_grad set_to_none False, grad scaling
    m = model()
    o = L.optim.SGD(m[0].parameters(), lr=0.05)
    for i, (x, y) in enumerate(data):
        if i == 4:
            o.add_param_group({"params": list(m[2].parameters()), "lr": 0.01})
        o.zero_grad(set_to_none=(i % 2 == 0))
        l = loss(m, x, y)
        l.backward(retain_graph=True)
        l.backward()
        for p in m.parameters():
            if p.grad is not None:
                p.grad.mul_(0.5)
        o.step()
    rec("retain", m, l)
    # LSTM w carried detached state
    W2 = [rng.standard_normal(s).astype("f4") * 0.3 for s in ((12, 4), (12, 3), (12,), (12,))]
    r = nn.LSTM(4, 3, batch_first=True)
    with L.no_grad():
        for p, w in zip(r.parameters(), W2):
            p.copy_(T(w))
    o = L.optim.SGD(r.parameters(), lr=0.1)
    st = None
    for i in range(12):
        x = rng.standard_normal((2, 5, 4)).astype("f4")
        y_, st = r(T(x), st)
        st = tuple(s.detach() for s in st)
        o.zero_grad()
        (y_**2).mean().backward()
        o.step()
    rec("lstm", r, *st)
    return out


def main() -> None:
    import torch

    import lucid

    expected, found = results(torch, torch.nn), results(lucid, lucid.nn)
    count = 0
    for name, arrays in expected.items():
        for a, e in zip(found[name], arrays, strict=True):
            np.testing.assert_allclose(a, e, rtol=2e-3, atol=2e-4, err_msg=name)
            count += 1
    print(f"{len(expected)} idioms of training loops, {count} arrays: as PyTorch")


if __name__ == "__main__":
    main()
