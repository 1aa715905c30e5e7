"""The code of Fourier transforms of one length: Stockham's stages, whose results come in order.

With n = r m, a stage of radix r takes the r numbers x[p], x[p + m], ... for each p < m, transforms
them and turns the i-th by e**(-2 pi i p / n); r transforms of length m remain, side by side. A
number stands for `s` of them that lie side by side already, so after the first stage every loop
runs over adjacent numbers. Real and imaginary parts lie apart in the workspace. The inverse is the
same with the parts exchanged.

Lengths with a prime factor above 13 are convolutions (Bluestein): with c[j] = e**(pi i j j / n),
y[k] = c*[k] sum over j of (x[j] c*[j]) c[k - j], by transforms of a power of 2 or three times one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lucid.compiler.kernels.scalar_code import constant
from lucid.compiler.lowering.loop_language import Int, Loops, Pointer

PRIMES = (3, 5, 7, 11, 13)
LANES = {"f32": 8, "f64": 4}
ELEMENT = {"f32": "float", "f64": "double"}
ITEM = {"f32": 4, "f64": 8}
DTYPE: dict[str, np.dtype] = {"f32": np.dtype("float32"), "f64": np.dtype("float64")}

Number = tuple[str, str]  # real and imaginary part, vectors of some width


def radices(n: int) -> list[int] | None:
    """The factors by which a length is transformed, None where one of them is too large."""
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
    """The length of the transforms that make a convolution of n numbers."""
    power = 1 << (2 * n - 2).bit_length()
    return power * 3 // 4 if power * 3 // 4 >= 2 * n - 1 else power


def roots(k: np.ndarray, n: int) -> np.ndarray:
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


class Table:
    """The constants of a kernel: the factor of its results first, then roots of unity."""

    def __init__(self, scale: float) -> None:
        self.parts = [np.array([scale])]
        self.size = 1

    def add(self, numbers: np.ndarray) -> int:
        """Where the real parts begin; the imaginary ones follow them."""
        place, both = self.size, np.concatenate([numbers.real, numbers.imag])
        self.parts.append(both)
        self.size += both.size
        return place

    def array(self, dtype: str) -> np.ndarray:
        return np.concatenate(self.parts).astype(DTYPE[dtype])


class Arithmetic:
    """Vectors of one element type in the code of a kernel."""

    def __init__(self, code: Loops, dtype: str, table: Pointer) -> None:
        self.code, self.dtype, self.table = code, dtype, table
        self.element, self.item, self.lanes = ELEMENT[dtype], ITEM[dtype], LANES[dtype]

    def type(self, width: int) -> str:
        return self.element if width == 1 else f"<{width} x {self.element}>"

    def number(self, value: float, width: int) -> str:
        text = constant(value, self.dtype)
        return text if width == 1 else f"splat ({self.element} {text})"

    def do(self, op: str, width: int, a: str, b: str) -> str:
        return self.code.write(f"{op} contract {self.type(width)} {a}, {b}")

    def negative(self, width: int, a: str) -> str:
        return self.code.write(f"fneg {self.type(width)} {a}")

    def add(self, w: int, x: Number, y: Number) -> Number:
        return self.do("fadd", w, x[0], y[0]), self.do("fadd", w, x[1], y[1])

    def sub(self, w: int, x: Number, y: Number) -> Number:
        return self.do("fsub", w, x[0], y[0]), self.do("fsub", w, x[1], y[1])

    def times(self, w: int, x: Number, y: Number) -> Number:
        (a, b), (c, d) = x, y
        re = self.do("fsub", w, self.do("fmul", w, a, c), self.do("fmul", w, b, d))
        return re, self.do("fadd", w, self.do("fmul", w, a, d), self.do("fmul", w, b, c))

    def turned(self, w: int, x: Number) -> Number:
        """-i x."""
        return x[1], self.negative(w, x[0])

    def scaled(self, w: int, x: Number, factor: float) -> Number:
        c = self.number(factor, w)
        return self.do("fmul", w, x[0], c), self.do("fmul", w, x[1], c)

    def shuffle(self, width: int, a: str, b: str, mask: Sequence[int]) -> str:
        t, places = self.type(width), ", ".join(f"i32 {i}" for i in mask)
        return self.code.write(f"shufflevector {t} {a}, {t} {b}, <{len(mask)} x i32> <{places}>")

    def spread(self, scalar: str, width: int) -> str:
        if width == 1:
            return scalar
        t = self.type(width)
        one = self.code.write(f"insertelement {t} poison, {self.element} {scalar}, i64 0")
        return self.code.write(
            f"shufflevector {t} {one}, {t} poison, <{width} x i32> zeroinitializer"
        )

    def load(self, pointer: Pointer, index: Int | int, width: int) -> str:
        at = pointer.at(self.code.number(index) * self.item)
        return self.code.load(self.type(width), at, self.item)

    def store(self, value: str, pointer: Pointer, index: Int | int, width: int) -> None:
        at = pointer.at(self.code.number(index) * self.item)
        self.code.store(self.type(width), value, at, self.item)

    def constants(self, place: int, count: int, index: Int | int, width: int) -> Number:
        """Adjacent complex constants of the table."""
        index = self.code.number(index)
        return (
            self.load(self.table, index + place, width),
            self.load(self.table, index + (place + count), width),
        )

    def one_constant(self, place: int, count: int, index: Int | int, width: int) -> Number:
        """One complex constant of the table, everywhere."""
        re, im = self.constants(place, count, index, 1)
        return self.spread(re, width), self.spread(im, width)

    def factor(self, width: int) -> str:
        """What results are multiplied by."""
        return self.spread(self.load(self.table, 0, 1), width)

    def sweep(self, start: int, stop: int, body: Callable[[Int, int], None]) -> None:
        """body(i, width) over adjacent numbers; the last vector may overlap the one before."""
        width = min(self.lanes, stop - start)
        if width <= 0:
            return
        rest = (stop - start) % width
        if stop - start == width:
            body(self.code.number(start), width)
            return
        with self.code.loop(start, stop - rest, width) as i:
            body(i, width)
        if rest:
            body(self.code.number(stop - width), width)


class Apart:
    """Numbers whose parts lie apart."""

    def __init__(self, on: Arithmetic, re: Pointer, im: Pointer) -> None:
        self.on, self.re, self.im = on, re, im

    def load(self, index: Int | int, width: int) -> Number:
        return self.on.load(self.re, index, width), self.on.load(self.im, index, width)

    def store(self, x: Number, index: Int | int, width: int) -> None:
        self.on.store(x[0], self.re, index, width)
        self.on.store(x[1], self.im, index, width)

    def exchanged(self) -> Apart:
        return Apart(self.on, self.im, self.re)


class Beside:
    """Numbers whose parts lie side by side, exchanged where wanted; results are scaled."""

    def __init__(self, on: Arithmetic, at: Pointer, exchanged: bool = False) -> None:
        self.on, self.at, self.exchanged = on, at, exchanged

    def load(self, index: Int | int, width: int) -> Number:
        on, first = self.on, self.on.code.number(index) * 2
        if width == 1:
            re, im = on.load(self.at, first, 1), on.load(self.at, first + 1, 1)
        else:
            both = on.load(self.at, first, 2 * width)
            re = on.shuffle(2 * width, both, both, range(0, 2 * width, 2))
            im = on.shuffle(2 * width, both, both, range(1, 2 * width, 2))
        return (im, re) if self.exchanged else (re, im)

    def store(self, x: Number, index: Int | int, width: int) -> None:
        on, first = self.on, self.on.code.number(index) * 2
        scale = on.factor(width)
        re, im = (on.do("fmul", width, part, scale) for part in x)
        re, im = (im, re) if self.exchanged else (re, im)
        if width == 1:
            on.store(re, self.at, first, 1)
            on.store(im, self.at, first + 1, 1)
            return
        mask = [j for i in range(width) for j in (i, i + width)]
        on.store(on.shuffle(width, re, im, mask), self.at, first, 2 * width)


class Columns(Beside):
    """Rows of `width` numbers, each `apart` bytes from the one before: one transform a column."""

    def __init__(
        self, on: Arithmetic, at: Pointer, apart: Int, width: int, exchanged: bool = False
    ) -> None:
        super().__init__(on, at, exchanged)
        self.apart, self.width = apart, width

    def load(self, index: Int | int, width: int) -> Number:
        return Beside(self.on, self.row(index), self.exchanged).load(0, width)

    def store(self, x: Number, index: Int | int, width: int) -> None:
        Beside(self.on, self.row(index), self.exchanged).store(x, 0, width)

    def row(self, index: Int | int) -> Pointer:
        return self.at.at(self.on.code.number(index) // self.width * self.apart)


class Reals:
    """Real numbers: what is read has no imaginary part, of what is written it is left out."""

    def __init__(self, on: Arithmetic, at: Pointer) -> None:
        self.on, self.at = on, at

    def load(self, index: Int | int, width: int) -> Number:
        return self.on.load(self.at, index, width), self.on.number(0.0, width)

    def store(self, x: Number, index: Int | int, width: int) -> None:
        scaled = self.on.do("fmul", width, x[0], self.on.factor(width))
        self.on.store(scaled, self.at, index, width)


# Transforms of a few numbers


def small(on: Arithmetic, w: int, x: list[Number]) -> list[Number]:
    """The transform of 2, 3, 4, 5, 7, 8, 11 or 13 numbers."""
    if len(x) == 2:
        return [on.add(w, *x), on.sub(w, *x)]
    if len(x) == 4:
        return four(on, w, x)
    return eight(on, w, x) if len(x) == 8 else odd(on, w, x)


def four(on: Arithmetic, w: int, x: list[Number]) -> list[Number]:
    a, b = on.add(w, x[0], x[2]), on.sub(w, x[0], x[2])
    c, d = on.add(w, x[1], x[3]), on.turned(w, on.sub(w, x[1], x[3]))
    return [on.add(w, a, c), on.add(w, b, d), on.sub(w, a, c), on.sub(w, b, d)]


def eight(on: Arithmetic, w: int, x: list[Number]) -> list[Number]:
    even, odds = four(on, w, x[0::2]), four(on, w, x[1::2])
    half = math.sqrt(0.5)
    re, im = odds[1]
    odds[1] = on.scaled(w, (on.do("fadd", w, re, im), on.do("fsub", w, im, re)), half)
    odds[2] = on.turned(w, odds[2])
    re, im = odds[3]
    total = on.negative(w, on.do("fadd", w, re, im))
    odds[3] = on.scaled(w, (on.do("fsub", w, im, re), total), half)
    return [on.add(w, a, b) for a, b in zip(even, odds)] + [
        on.sub(w, a, b) for a, b in zip(even, odds)
    ]


def odd(on: Arithmetic, w: int, x: list[Number]) -> list[Number]:
    """Of y[k] and y[r - k] the sums over cosines are the same, those over sines opposite."""
    r = len(x)
    pairs = [(on.add(w, x[j], x[r - j]), on.sub(w, x[j], x[r - j])) for j in range(1, r // 2 + 1)]
    total = x[0]
    for plus, _ in pairs:
        total = on.add(w, total, plus)
    y = [total] * r
    for k in range(1, r // 2 + 1):
        turns = roots(np.array([j * k for j in range(1, r // 2 + 1)]), r)
        straight, across = x[0], None
        for (plus, minus), turn in zip(pairs, turns):
            straight = on.add(w, straight, on.scaled(w, plus, float(turn.real)))
            term = on.scaled(w, minus, float(-turn.imag))
            across = term if across is None else on.add(w, across, term)
        assert across is not None
        side = on.turned(w, across)
        y[k], y[r - k] = on.add(w, straight, side), on.sub(w, straight, side)
    return y


# Transforms of any length


class Transform:
    """The complex transform of one length, from somewhere to the workspace or elsewhere.

    `columns` of them lie side by side; more than one only where there are stages.
    """

    def __init__(
        self, on: Arithmetic, table: Table, n: int, buffers: Sequence[Apart], columns: int = 1
    ) -> None:
        self.on, self.table, self.n = on, table, n
        self.buffers, self.columns = buffers, columns

    def run(self, source: Any, target: Any = None) -> Any:
        """Transform `source`; where no target is given, the result lies in what is returned."""
        factors = radices(self.n)
        if factors is None:
            return self.convolve(source, target)
        if not factors and target is not None:
            self.move(source, target, self.n)
        return self.stages(factors, self.n, source, target, self.buffers)

    def move(self, source: Any, target: Any, count: int) -> None:
        self.on.sweep(0, count, lambda i, w: target.store(source.load(i, w), i, w))

    def stages(
        self, factors: list[int], n: int, source: Any, target: Any, buffers: Sequence[Apart]
    ) -> Any:
        m, s = n, self.columns
        for number, r in enumerate(factors):
            last = number == len(factors) - 1
            there = target if last and target is not None else buffers[number % 2]
            m //= r
            stage(self.on, self.table, r, m, s, source, there)
            source, s = there, s * r
        return source

    def convolve(self, source: Any, target: Any) -> Any:
        """Bluestein's transform."""
        on, n, (first, second) = self.on, self.n, self.buffers
        length = convolution_length(n)
        factors = radices(length)
        assert factors is not None
        j = np.arange(n)
        chirp = roots(j * j % (2 * n), 2 * n)
        kernel = np.zeros(length, complex)
        kernel[:n] = chirp.conj()
        kernel[length - n + 1 :] = chirp[:0:-1].conj()
        turns = self.table.add(chirp)
        shape = self.table.add(np.fft.fft(kernel) / length)

        def enter(i: Int, w: int) -> None:
            first.store(on.times(w, source.load(i, w), on.constants(turns, n, i, w)), i, w)

        def clear(i: Int, w: int) -> None:
            first.store((on.number(0.0, w), on.number(0.0, w)), i, w)

        on.sweep(0, n, enter)
        on.sweep(n, length, clear)
        there = self.stages(factors, length, first, None, (second, first))

        def multiply(i: Int, w: int) -> None:
            there.store(on.times(w, there.load(i, w), on.constants(shape, length, i, w)), i, w)

        # Only whole vectors that do not overlap: what is multiplied stands where it stood.
        assert length % min(on.lanes, length) == 0
        on.sweep(0, length, multiply)
        other = first if there is second else second
        back = self.stages(
            factors, length, there.exchanged(), None, (other.exchanged(), there.exchanged())
        ).exchanged()
        target = target if target is not None else back

        def leave(i: Int, w: int) -> None:
            target.store(on.times(w, back.load(i, w), on.constants(turns, n, i, w)), i, w)

        if target is back:
            self.in_place(n, leave)
        else:
            on.sweep(0, n, leave)
        return target

    def in_place(self, n: int, body: Callable[[Int, int], None]) -> None:
        """A sweep in which no number is met twice."""
        whole = n - n % self.on.lanes
        self.on.sweep(0, whole, body)
        with self.on.code.loop(whole, n) as i:
            body(i, 1)


def stage(on: Arithmetic, table: Table, r: int, m: int, s: int, source: Any, target: Any) -> None:
    """One stage; see the docstring of the module."""
    code = on.code
    turns = []
    if m > 1:
        places = np.arange(m)
        turns = [table.add(roots(places * i, r * m)) for i in range(1, r)]

    def butterfly(w: int, x: list[Number], turn: Callable[[int], Number]) -> list[Number]:
        y = small(on, w, x)
        return [y[0], *[on.times(w, y[i], turn(i)) for i in range(1, r)]] if m > 1 else y

    if s == 1:

        def beginning(p: Int, w: int) -> None:
            x = [source.load(p + m * i, w) for i in range(r)]
            y = butterfly(w, x, lambda i: on.constants(turns[i - 1], m, p, w))
            store_mixed(on, y, target, p * r, w)

        on.sweep(0, m, beginning)
        return

    def later(p: Int, q: Int, w: int, known: list[Number]) -> None:
        at, to = q + p * s, q + p * (s * r)
        x = [source.load(at + s * m * i, w) for i in range(r)]
        y = butterfly(w, x, lambda i: known[i - 1])
        for i in range(r):
            target.store(y[i], to + s * i, w)

    with code.loop(0, m) as p:
        scalars = [on.constants(place, m, p, 1) for place in turns]

        def row(q: Int, w: int) -> None:
            known = [(on.spread(a, w), on.spread(b, w)) for a, b in scalars]
            later(p, q, w, known)

        on.sweep(0, s, row)


def store_mixed(on: Arithmetic, y: list[Number], target: Any, index: Int, width: int) -> None:
    """Element p of y[i] to place r p + i."""
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
                    on.shuffle(size, a, b, mask) for a, b in zip(vectors[:half], vectors[half:])
                ]
                size *= 2
            parts.append(vectors[0])
        target.store((parts[0], parts[1]), index, r * width)
        return
    for i, (re, im) in enumerate(y):
        for lane in range(width):
            one = [
                on.code.write(f"extractelement {on.type(width)} {x}, i64 {lane}") for x in (re, im)
            ]
            target.store((one[0], one[1]), index + (lane * r + i), 1)
