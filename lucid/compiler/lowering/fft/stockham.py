"""LLVM code of Fourier transforms of one length: Stockham stages, whose results come in order.

With n = r m, a stage of radix r takes the r numbers x[p], x[p + m], ... for each p < m, transforms
them and multiplies the k-th by e**(-2 pi i p k / n); r transforms of length m remain, side by side.
A number stands for `s` of them that are adjacent already, so after the first stage every loop runs
over adjacent numbers. Real and imaginary parts are in separate arrays of the workspace. The inverse
is the same with the two parts swapped.

Lengths with a prime factor above 13 use a convolution (Bluestein): with c[j] = e**(pi i j j / n),
y[k] = c*[k] sum over j of (x[j] c*[j]) c[k - j], by transforms of a power of 2 or three times one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lucid.compiler.lowering.fft.complex_vectors import (
    ConstantTable,
    Number,
    SplitComplex,
    VectorOps,
)
from lucid.compiler.lowering.llvm_builder import Int

PRIMES = (3, 5, 7, 11, 13)


def radices(n: int) -> list[int] | None:
    """The radices of the stages of a length, None if it has a larger prime factor."""
    twos = (n & -n).bit_length() - 1
    rest, odd = n >> twos, []
    for prime in PRIMES:
        while rest % prime == 0:
            odd.append(prime)
            rest //= prime
    if rest > 1:
        return None
    eights, fours = twos // 3, {0: 0, 1: 0, 2: 1}[twos % 3]
    if twos % 3 == 1 and eights:
        eights, fours = eights - 1, 2
    two = [2] if twos == 1 else []
    return [8] * eights + [4] * fours + two + odd


def convolution_length(n: int) -> int:
    """The length of the transforms in Bluestein's convolution of n numbers."""
    power = 1 << (2 * n - 2).bit_length()
    return power * 3 // 4 if power * 3 // 4 >= 2 * n - 1 else power


def roots_of_unity(k: np.ndarray, n: int) -> np.ndarray:
    """e**(-2 pi i k / n), from angles of at most an eighth of a turn."""
    k8 = k * 8 % (8 * n)
    below = k8 > 4 * n
    k8 = np.where(below, 8 * n - k8, k8)
    left = k8 > 2 * n
    k8 = np.where(left, 4 * n - k8, k8)
    steep = k8 > n
    k8 = np.where(steep, 2 * n - k8, k8)
    angle = k8 * (np.arccos(np.longdouble(-1)) / (4 * n))
    cosine, sine = np.cos(angle).astype(float), np.sin(angle).astype(float)
    x, y = np.where(steep, sine, cosine), np.where(steep, cosine, sine)
    return np.where(left, -x, x) - 1j * np.where(below, -y, y)


def small_dft(vec: VectorOps, w: int, x: list[Number]) -> list[Number]:
    """The transform of 2, 3, 4, 5, 7, 8, 11 or 13 numbers."""
    if len(x) == 2:
        return [vec.add(w, *x), vec.sub(w, *x)]
    if len(x) == 4:
        return dft4(vec, w, x)
    return dft8(vec, w, x) if len(x) == 8 else dft_odd(vec, w, x)


def dft4(vec: VectorOps, w: int, x: list[Number]) -> list[Number]:
    a, b = vec.add(w, x[0], x[2]), vec.sub(w, x[0], x[2])
    c, d = vec.add(w, x[1], x[3]), vec.times_minus_i(w, vec.sub(w, x[1], x[3]))
    return [vec.add(w, a, c), vec.add(w, b, d), vec.sub(w, a, c), vec.sub(w, b, d)]


def dft8(vec: VectorOps, w: int, x: list[Number]) -> list[Number]:
    even, odds = dft4(vec, w, x[0::2]), dft4(vec, w, x[1::2])
    half = math.sqrt(0.5)
    re, im = odds[1]
    odds[1] = vec.scale_by(w, (vec.do("fadd", w, re, im), vec.do("fsub", w, im, re)), half)
    odds[2] = vec.times_minus_i(w, odds[2])
    re, im = odds[3]
    total = vec.negate(w, vec.do("fadd", w, re, im))
    odds[3] = vec.scale_by(w, (vec.do("fsub", w, im, re), total), half)
    return [vec.add(w, a, b) for a, b in zip(even, odds)] + [
        vec.sub(w, a, b) for a, b in zip(even, odds)
    ]


def dft_odd(vec: VectorOps, w: int, x: list[Number]) -> list[Number]:
    """y[k] and y[r - k] have equal sums over cosines and opposite sums over sines."""
    r = len(x)
    pairs = [(vec.add(w, x[j], x[r - j]), vec.sub(w, x[j], x[r - j])) for j in range(1, r // 2 + 1)]
    total = x[0]
    for plus, _ in pairs:
        total = vec.add(w, total, plus)
    y = [total] * r
    for k in range(1, r // 2 + 1):
        twiddles = roots_of_unity(np.array([j * k for j in range(1, r // 2 + 1)]), r)
        straight, across = x[0], None
        for (plus, minus), turn in zip(pairs, twiddles):
            straight = vec.add(w, straight, vec.scale_by(w, plus, float(turn.real)))
            term = vec.scale_by(w, minus, float(-turn.imag))
            across = term if across is None else vec.add(w, across, term)
        assert across is not None
        side = vec.times_minus_i(w, across)
        y[k], y[r - k] = vec.add(w, straight, side), vec.sub(w, straight, side)
    return y


# Transforms of any length


class Transform:
    """The complex transform of one length, from a source to a target or to the workspace.

    `columns` of them are side by side; more than one only if the length has radices.
    """

    def __init__(
        self,
        vec: VectorOps,
        table: ConstantTable,
        n: int,
        buffers: Sequence[SplitComplex],
        columns: int = 1,
    ) -> None:
        self.vec, self.table, self.n = vec, table, n
        self.buffers, self.columns = buffers, columns

    def run(self, source: Any, target: Any = None) -> Any:
        """Transform `source` and return where the result is: the target, or a workspace buffer."""
        factors = radices(self.n)
        if factors is None:
            return self.convolve(source, target)
        if not factors and target is not None:
            self.move(source, target, self.n)
        return self.stages(factors, self.n, source, target, self.buffers)

    def move(self, source: Any, target: Any, count: int) -> None:
        self.vec.vector_loop(0, count, lambda i, w: target.store(source.load(i, w), i, w))

    def stages(
        self, factors: list[int], n: int, source: Any, target: Any, buffers: Sequence[SplitComplex]
    ) -> Any:
        m, s = n, self.columns
        for number, r in enumerate(factors):
            last = number == len(factors) - 1
            there = target if last and target is not None else buffers[number % 2]
            m //= r
            stage(self.vec, self.table, r, m, s, source, there)
            source, s = there, s * r
        return source

    def convolve(self, source: Any, target: Any) -> Any:
        """Bluestein's transform."""
        vec, n, (first, second) = self.vec, self.n, self.buffers
        length = convolution_length(n)
        factors = radices(length)
        assert factors is not None
        j = np.arange(n)
        chirp = roots_of_unity(j * j % (2 * n), 2 * n)
        kernel = np.zeros(length, complex)
        kernel[:n] = chirp.conj()
        kernel[length - n + 1 :] = chirp[:0:-1].conj()
        twiddles = self.table.add(chirp)
        shape = self.table.add(np.fft.fft(kernel) / length)

        def enter(i: Int, w: int) -> None:
            first.store(vec.multiply(w, source.load(i, w), vec.constants(twiddles, n, i, w)), i, w)

        def clear(i: Int, w: int) -> None:
            first.store((vec.number(0.0, w), vec.number(0.0, w)), i, w)

        vec.vector_loop(0, n, enter)
        vec.vector_loop(n, length, clear)
        there = self.stages(factors, length, first, None, (second, first))

        def multiply(i: Int, w: int) -> None:
            there.store(vec.multiply(w, there.load(i, w), vec.constants(shape, length, i, w)), i, w)

        # In place, so vectors must not overlap.
        assert length % min(vec.lanes, length) == 0
        vec.vector_loop(0, length, multiply)
        other = first if there is second else second
        back = self.stages(
            factors, length, there.swapped(), None, (other.swapped(), there.swapped())
        ).swapped()
        target = target if target is not None else back

        def leave(i: Int, w: int) -> None:
            target.store(vec.multiply(w, back.load(i, w), vec.constants(twiddles, n, i, w)), i, w)

        if target is back:
            self.in_place(n, leave)
        else:
            vec.vector_loop(0, n, leave)
        return target

    def in_place(self, n: int, body: Callable[[Int, int], None]) -> None:
        """A vector loop that visits no number twice."""
        whole = n - n % self.vec.lanes
        self.vec.vector_loop(0, whole, body)
        with self.vec.code.loop(whole, n) as i:
            body(i, 1)


def stage(
    vec: VectorOps, table: ConstantTable, r: int, m: int, s: int, source: Any, target: Any
) -> None:
    """Emit one stage; see the module's docstring."""
    code = vec.code
    twiddles = []
    if m > 1:
        positions = np.arange(m)
        twiddles = [table.add(roots_of_unity(positions * i, r * m)) for i in range(1, r)]

    def butterfly(w: int, x: list[Number], turn: Callable[[int], Number]) -> list[Number]:
        y = small_dft(vec, w, x)
        return [y[0], *[vec.multiply(w, y[i], turn(i)) for i in range(1, r)]] if m > 1 else y

    if s == 1:

        def first_stage(p: Int, w: int) -> None:
            x = [source.load(p + m * i, w) for i in range(r)]
            y = butterfly(w, x, lambda i: vec.constants(twiddles[i - 1], m, p, w))
            store_interleaved(vec, y, target, p * r, w)

        vec.vector_loop(0, m, first_stage)
        return

    def later_stage(p: Int, q: Int, w: int, known: list[Number]) -> None:
        at, to = q + p * s, q + p * (s * r)
        x = [source.load(at + s * m * i, w) for i in range(r)]
        y = butterfly(w, x, lambda i: known[i - 1])
        for i in range(r):
            target.store(y[i], to + s * i, w)

    with code.loop(0, m) as p:
        scalars = [vec.constants(offset, m, p, 1) for offset in twiddles]

        def row(q: Int, w: int) -> None:
            known = [(vec.splat(a, w), vec.splat(b, w)) for a, b in scalars]
            later_stage(p, q, w, known)

        vec.vector_loop(0, s, row)


def store_interleaved(vec: VectorOps, y: list[Number], target: Any, index: Int, width: int) -> None:
    """Store element p of y[i] at index r p + i."""
    r = len(y)
    if width == 1:
        for i, x in enumerate(y):
            target.store(x, index + i, 1)
        return
    if r & (r - 1) == 0:
        parts = []
        for part in (0, 1):
            vectors, size = [x[part] for x in y], width
            while len(vectors) > 1:
                half = len(vectors) // 2
                mask = [j for i in range(size) for j in (i, i + size)]
                vectors = [
                    vec.shuffle(size, a, b, mask) for a, b in zip(vectors[:half], vectors[half:])
                ]
                size *= 2
            parts.append(vectors[0])
        target.store((parts[0], parts[1]), index, r * width)
        return
    for i, (re, im) in enumerate(y):
        for lane in range(width):
            one = [
                vec.code.write(f"extractelement {vec.type(width)} {x}, i64 {lane}")
                for x in (re, im)
            ]
            target.store((one[0], one[1]), index + (lane * r + i), 1)
