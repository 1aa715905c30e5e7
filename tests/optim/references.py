"""The update rules written out with NumPy, from the papers and PyTorch's documentation.

A reference is a generator: it gets a parameter's value and settings, takes gradients and gives new
values. Gradients to climb (`maximize`) come negated already.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

Reference = Iterator[np.ndarray]


def sgd(p, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False):
    v, g = None, (yield p)
    while True:
        g = g + weight_decay * p
        v = g if v is None else momentum * v + (1 - dampening) * g
        p = p - lr * (g + momentum * v if nesterov else v if momentum else g)
        g = yield p


def asgd(p, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0.0):
    eta, t, g = lr, 0, (yield p)
    while True:
        t += 1
        g = g + weight_decay * p
        p = (1 - lambd * eta) * p - eta * g
        eta = lr / (1 + lambd * lr * t) ** alpha
        g = yield p


def adam(p, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False,
         decoupled_weight_decay=False):  # fmt: skip
    m, v, most, t, g = 0.0, 0.0, 0.0, 0, (yield p)
    b1, b2 = betas
    while True:
        t += 1
        if decoupled_weight_decay:
            p = p - lr * weight_decay * p
        else:
            g = g + weight_decay * p
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        most = np.maximum(most, v) if amsgrad else v
        p = p - lr * (m / (1 - b1**t)) / (np.sqrt(most / (1 - b2**t)) + eps)
        g = yield p


def adamw(p, weight_decay=1e-2, **settings):
    return adam(p, weight_decay=weight_decay, decoupled_weight_decay=True, **settings)


def nadam(p, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, momentum_decay=4e-3,
          decoupled_weight_decay=False):  # fmt: skip
    m, v, t, product, g = 0.0, 0.0, 0, 1.0, (yield p)
    b1, b2 = betas
    while True:
        t += 1
        if decoupled_weight_decay:
            p = p - lr * weight_decay * p
        else:
            g = g + weight_decay * p
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        mu, after = (b1 * (1 - 0.5 * 0.96 ** (s * momentum_decay)) for s in (t, t + 1))
        product *= mu
        m_hat = after * m / (1 - product * after) + (1 - mu) * g / (1 - product)
        p = p - lr * m_hat / (np.sqrt(v / (1 - b2**t)) + eps)
        g = yield p


def radam(p, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0,
          decoupled_weight_decay=False):  # fmt: skip
    m, v, t, g = 0.0, 0.0, 0, (yield p)
    b1, b2 = betas
    longest = 2 / (1 - b2) - 1
    while True:
        t += 1
        if decoupled_weight_decay:
            p = p - lr * weight_decay * p
        else:
            g = g + weight_decay * p
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        m_hat, rho = m / (1 - b1**t), longest - 2 * t * b2**t / (1 - b2**t)
        if rho > 5:
            r = math.sqrt((rho - 4) * (rho - 2) * longest / ((longest - 4) * (longest - 2) * rho))
            p = p - lr * m_hat * r * math.sqrt(1 - b2**t) / (np.sqrt(v) + eps)
        else:
            p = p - lr * m_hat
        g = yield p


def adamax(p, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    m, u, t, g = 0.0, 0.0, 0, (yield p)
    b1, b2 = betas
    while True:
        t += 1
        g = g + weight_decay * p
        m, u = b1 * m + (1 - b1) * g, np.maximum(b2 * u, np.abs(g) + eps)
        p = p - lr / (1 - b1**t) * m / u
        g = yield p


def rmsprop(p, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False):
    v, mean, b, g = 0.0, 0.0, 0.0, (yield p)
    while True:
        g = g + weight_decay * p
        v, mean = alpha * v + (1 - alpha) * g**2, alpha * mean + (1 - alpha) * g
        b = momentum * b + g / (np.sqrt(v - mean**2 if centered else v) + eps)
        p = p - lr * b
        g = yield p


def adagrad(p, lr=1e-2, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0, eps=1e-10):
    total, t, g = initial_accumulator_value, 0, (yield p)
    while True:
        g = g + weight_decay * p
        total = total + g**2
        p = p - lr / (1 + t * lr_decay) * g / (np.sqrt(total) + eps)
        t += 1
        g = yield p


def adadelta(p, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0):
    v, u, g = 0.0, 0.0, (yield p)
    while True:
        g = g + weight_decay * p
        v = rho * v + (1 - rho) * g**2
        step = np.sqrt(u + eps) / np.sqrt(v + eps) * g
        u = rho * u + (1 - rho) * step**2
        p = p - lr * step
        g = yield p


def adafactor(p, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0):
    eps1, eps2 = (np.finfo(p.dtype).eps if eps[0] is None else eps[0]), eps[1]
    rows, columns, v, t, g = 0.0, 0.0, 0.0, 0, (yield p)
    while True:
        t += 1
        b2 = 1 - t**beta2_decay
        rate = max(eps2, np.sqrt(np.mean(p**2))) * min(lr, 1 / math.sqrt(t))
        p = p - lr * weight_decay * p
        if p.ndim < 2:
            v = b2 * v + (1 - b2) * g**2
        else:
            rows = b2 * rows + (1 - b2) * np.mean(g**2, -1, keepdims=True)
            columns = b2 * columns + (1 - b2) * np.mean(g**2, -2, keepdims=True)
            v = rows * columns / np.maximum(np.mean(rows, -2, keepdims=True), eps1)
        step = g / np.sqrt(np.maximum(v, eps1**2))
        p = p - rate * step / max(1.0, np.sqrt(np.mean(step**2)) / d)
        g = yield p


def rprop(p, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50.0)):
    size, before, g = np.full(p.shape, lr), np.zeros(p.shape), (yield p)
    while True:
        turn = before * g
        size = np.where(turn > 0, size * etas[1], np.where(turn < 0, size * etas[0], size))
        size = np.clip(size, *step_sizes)
        before = np.where(turn < 0, 0.0, g)
        p = p - size * np.sign(before)
        g = yield p


def lion(p, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
    m, g = 0.0, (yield p)
    while True:
        direction = np.sign(betas[0] * m + (1 - betas[0]) * g)
        p = p - lr * (direction + weight_decay * p)
        m = betas[1] * m + (1 - betas[1]) * g
        g = yield p


def muon(p, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True, eps=1e-7, adjust_lr_fn=None,
         ns_coefficients=(3.4445, -4.7750, 2.0315), ns_steps=5):  # fmt: skip
    """The quintic on the singular values themselves: the iteration leaves the vectors alone."""
    m, g = 0.0, (yield p)
    (n, k), (a, b, c) = p.shape, ns_coefficients
    scale = 0.2 * math.sqrt(max(n, k)) if adjust_lr_fn else math.sqrt(max(1, n / k))
    while True:
        m = momentum * m + (1 - momentum) * g
        step = (1 - momentum) * g + momentum * m if nesterov else m
        u, s, v = np.linalg.svd(step, full_matrices=False)
        s = s / max(np.sqrt(np.sum(s**2)), eps)
        for _ in range(ns_steps):
            s = a * s + b * s**3 + c * s**5
        p = p - lr * weight_decay * p - lr * scale * (u * s) @ v
        g = yield p


def trajectory(name: str, settings: dict[str, Any], p: np.ndarray, grads: Any) -> list[np.ndarray]:
    """The values after every one of the gradients; a complex parameter is a pair of real ones."""
    settings = dict(settings)
    sign = -1.0 if settings.pop("maximize", False) else 1.0
    real = np.stack([p.real, p.imag], -1) if p.dtype.kind == "c" else p
    rule = globals()[name.lower()](real, **settings)
    next(rule)
    found = []
    for grad in grads:
        g = np.stack([grad.real, grad.imag], -1) if p.dtype.kind == "c" else grad
        new = rule.send(sign * g)
        found.append(new[..., 0] + 1j * new[..., 1] if p.dtype.kind == "c" else new)
    return found
