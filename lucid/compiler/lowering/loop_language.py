"""Loops of a kernel written by hand: Python statements in, LLVM text out.

    code = Loops("copy")
    x, y = code.pointer(0), code.pointer(1)
    with code.loop(code.lo, code.hi) as i:
        code.store("float", code.load("float", x.at(i * 4)), y.at(i * 4))
    text = code.text()

The arithmetic of an `Int` writes instructions, and so does moving a `Pointer`. Counters and
variables are memory in the text; LLVM's first pass makes registers of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

# Loops stay as they are written, vectors included: that halves the time that compiling takes.
METADATA = """!0 = !{}
!1 = distinct !{!1, !2, !3}
!2 = !{!"llvm.loop.vectorize.enable", i1 false}
!3 = !{!"llvm.loop.unroll.disable"}"""


@dataclass(frozen=True)
class Int:
    """An i64."""

    code: Loops
    name: str

    def _binary(self, op: str, other: Int | int) -> Int:
        return Int(
            self.code, self.code.write(f"{op} i64 {self.name}, {self.code.number(other).name}")
        )

    def __add__(self, other: Int | int) -> Int:
        return self._binary("add nsw", other)

    def __sub__(self, other: Int | int) -> Int:
        return self._binary("sub nsw", other)

    def __mul__(self, other: Int | int) -> Int:
        return self._binary("mul nsw", other)

    def __floordiv__(self, other: Int | int) -> Int:
        """The quotient of numbers that are not negative."""
        return self._binary("udiv", other)

    def __mod__(self, other: Int | int) -> Int:
        return self._binary("urem", other)

    def min(self, other: Int | int) -> Int:
        return self._chosen("smin", other)

    def max(self, other: Int | int) -> Int:
        return self._chosen("smax", other)

    def _chosen(self, how: str, other: Int | int) -> Int:
        args = f"i64 {self.name}, i64 {self.code.number(other).name}"
        return Int(self.code, self.code.call(f"llvm.{how}.i64", "i64", args))

    def is_(self, relation: str, other: Int | int) -> str:
        """The i1 of a comparison: "slt", "eq", ..."""
        return self.code.write(f"icmp {relation} i64 {self.name}, {self.code.number(other).name}")


@dataclass(frozen=True)
class Pointer:
    """An address."""

    code: Loops
    name: str

    def at(self, nbytes: Int | int) -> Pointer:
        moved = f"getelementptr i8, ptr {self.name}, i64 {self.code.number(nbytes).name}"
        return Pointer(self.code, self.code.write(moved))


class Variable:
    """A mutable value of an LLVM type."""

    def __init__(self, code: Loops, type: str) -> None:
        self.code, self.type = code, type
        self.place = f"%m{len(code.allocas)}"
        code.allocas.append(f"  {self.place} = alloca {type}")

    def get(self) -> str:
        return self.code.write(f"load {self.type}, ptr {self.place}")

    def set(self, value: str) -> None:
        self.code.line(f"store {self.type} {value}, ptr {self.place}")


class Loops:
    """The text of one kernel `void name(ptr args, i64 lo, i64 hi)`.

    `inner` is a function of its own that the kernel calls: what it holds in registers need not
    share them with what goes on around it.
    """

    def __init__(self, name: str, parameters: str = "") -> None:
        self.name, self.parameters = name, parameters
        self.functions: list[Loops] = []
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.declarations: dict[str, None] = {}
        self.count = 0
        self.lo, self.hi = Int(self, "%lo"), Int(self, "%hi")

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def write(self, instruction: str) -> str:
        self.count += 1
        self.line(f"%v{self.count} = {instruction}")
        return f"%v{self.count}"

    def call(self, function: str, result: str, args: str) -> str:
        kinds = ", ".join(part.rsplit(" ", 1)[0] for part in split(args))
        self.declarations[f"declare {result} @{function}({kinds})"] = None
        if result == "void":
            self.line(f"call void @{function}({args})")
            return ""
        return self.write(f"call {result} @{function}({args})")

    def number(self, value: Int | int) -> Int:
        return value if isinstance(value, Int) else Int(self, str(value))

    def word(self, i: Int | int) -> Int:
        """Word i of the arguments."""
        at = self.write(f"getelementptr i64, ptr %args, i64 {self.number(i).name}")
        return Int(self, self.write(f"load i64, ptr {at}, !invariant.load !0"))

    def pointer(self, i: Int | int) -> Pointer:
        """The address in word i of the arguments."""
        at = self.write(f"getelementptr i64, ptr %args, i64 {self.number(i).name}")
        return Pointer(self, self.write(f"load ptr, ptr {at}, !invariant.load !0"))

    def load(self, type: str, address: Pointer, align: int = 4) -> str:
        return self.write(f"load {type}, ptr {address.name}, align {align}")

    def load_int(self, address: Pointer) -> Int:
        return Int(self, self.load("i64", address, 8))

    def store(self, type: str, value: str, address: Pointer, align: int = 4) -> None:
        self.line(f"store {type} {value}, ptr {address.name}, align {align}")

    def chosen(self, condition: str, a: Int | int, b: Int | int) -> Int:
        a, b = self.number(a), self.number(b)
        return Int(self, self.write(f"select i1 {condition}, i64 {a.name}, i64 {b.name}"))

    def either(self, condition: str, a: Pointer, b: Pointer) -> Pointer:
        return Pointer(self, self.write(f"select i1 {condition}, ptr {a.name}, ptr {b.name}"))

    @contextmanager
    def loop(self, start: Int | int, stop: Int | int, step: Int | int = 1) -> Iterator[Int]:
        """From `start` as long as below `stop`."""
        counter, number = Variable(self, "i64"), self.label()
        start, stop, step = self.number(start), self.number(stop), self.number(step)
        counter.set(start.name)
        self.line(f"br label %test{number}")
        self.lines.append(f"test{number}:")
        i = Int(self, counter.get())
        self.line(f"br i1 {i.is_('slt', stop)}, label %body{number}, label %end{number}")
        self.lines.append(f"body{number}:")
        yield i
        counter.set((i + step).name)
        self.line(f"br label %test{number}, !llvm.loop !1")
        self.lines.append(f"end{number}:")

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Only if an i1 is true."""
        number = self.label()
        self.line(f"br i1 {condition}, label %then{number}, label %past{number}")
        self.lines.append(f"then{number}:")
        yield
        self.line(f"br label %past{number}")
        self.lines.append(f"past{number}:")

    def label(self) -> int:
        self.count += 1
        return self.count

    def inner(self, name: str, parameters: str) -> Loops:
        """A function with parameters such as `ptr %x, i64 %n`."""
        self.functions.append(Loops(name, parameters))
        return self.functions[-1]

    def space(self, type: str) -> Pointer:
        """Memory for one value of an LLVM type, to be shared with an inner function."""
        return Pointer(self, Variable(self, type).place)

    def body(self) -> str:
        if self.parameters:
            kind = f"internal void @{self.name}({self.parameters}) nounwind noinline"
        else:
            kind = f"void @{self.name}(ptr noalias %args, i64 %lo, i64 %hi) nounwind"
        head = f"define {kind} {{\nentry:"
        return "\n".join([head, *self.allocas, *self.lines, "  ret void", "}"])

    def text(self) -> str:
        parts = [self, *self.functions]
        declared = dict.fromkeys(line for part in parts for line in part.declarations)
        return "\n".join([*[part.body() for part in parts], *declared, METADATA, ""])


def split(args: str) -> list[str]:
    """Arguments apart at the commas that stand outside of brackets."""
    out, depth = [""], 0
    for c in args:
        depth += (c in "<(") - (c in ">)")
        if c == "," and depth == 0:
            out.append("")
        else:
            out[-1] += c
    return [part.strip() for part in out]
