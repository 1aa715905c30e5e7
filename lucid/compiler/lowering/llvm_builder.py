"""A builder for hand-written kernels: Python statements in, LLVM IR text out.

    code = LLVMBuilder("copy")
    x, y = code.pointer(0), code.pointer(1)
    with code.loop(code.lo, code.hi) as i:
        code.store("float", code.load("float", x.at(i * 4)), y.at(i * 4))
    text = code.text()

Arithmetic on an `Int` and offsets of a `Pointer` emit instructions. Loop counters and variables are
allocas in the text; LLVM's first pass promotes them to registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

# Loops stay as written, since they use vectors already: this halves the compile time.
METADATA = """!0 = !{}
!1 = distinct !{!1, !2, !3}
!2 = !{!"llvm.loop.vectorize.enable", i1 false}
!3 = !{!"llvm.loop.unroll.disable"}"""


@dataclass(frozen=True)
class Int:
    """An i64."""

    code: LLVMBuilder
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
        """The quotient of two non-negative integers."""
        return self._binary("udiv", other)

    def __mod__(self, other: Int | int) -> Int:
        return self._binary("urem", other)

    def min(self, other: Int | int) -> Int:
        return self._intrinsic("smin", other)

    def max(self, other: Int | int) -> Int:
        return self._intrinsic("smax", other)

    def _intrinsic(self, how: str, other: Int | int) -> Int:
        args = f"i64 {self.name}, i64 {self.code.number(other).name}"
        return Int(self.code, self.code.call(f"llvm.{how}.i64", "i64", args))

    def icmp(self, relation: str, other: Int | int) -> str:
        """Return the i1 of a comparison such as "slt" or "eq"."""
        return self.code.write(f"icmp {relation} i64 {self.name}, {self.code.number(other).name}")


@dataclass(frozen=True)
class Pointer:
    """An address."""

    code: LLVMBuilder
    name: str

    def at(self, nbytes: Int | int) -> Pointer:
        moved = f"getelementptr i8, ptr {self.name}, i64 {self.code.number(nbytes).name}"
        return Pointer(self.code, self.code.write(moved))


class Variable:
    """A mutable value of an LLVM type."""

    def __init__(self, code: LLVMBuilder, type: str) -> None:
        self.code, self.type = code, type
        self.place = f"%m{len(code.allocas)}"
        code.allocas.append(f"  {self.place} = alloca {type}")

    def get(self) -> str:
        return self.code.write(f"load {self.type}, ptr {self.place}")

    def set(self, value: str) -> None:
        self.code.line(f"store {self.type} {value}, ptr {self.place}")


class LLVMBuilder:
    """Builds the text of one kernel `void name(ptr args, i64 lo, i64 hi)`, or of a public function
    with parameters of its own.

    `inner` makes a separate function that the kernel calls, so that its values do not compete for
    registers with the code around the call.
    """

    def __init__(self, name: str, parameters: str = "", is_public: bool = False) -> None:
        self.name, self.parameters, self.is_public = name, parameters, is_public
        self.functions: list[LLVMBuilder] = []
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
        """Load word i of the arguments."""
        at = self.write(f"getelementptr i64, ptr %args, i64 {self.number(i).name}")
        return Int(self, self.write(f"load i64, ptr {at}, !invariant.load !0"))

    def pointer(self, i: Int | int) -> Pointer:
        """Load the address in word i of the arguments."""
        at = self.write(f"getelementptr i64, ptr %args, i64 {self.number(i).name}")
        return Pointer(self, self.write(f"load ptr, ptr {at}, !invariant.load !0"))

    def load(self, type: str, address: Pointer, align: int = 4) -> str:
        return self.write(f"load {type}, ptr {address.name}, align {align}")

    def load_int(self, address: Pointer) -> Int:
        return Int(self, self.load("i64", address, 8))

    def store(self, type: str, value: str, address: Pointer, align: int = 4) -> None:
        self.line(f"store {type} {value}, ptr {address.name}, align {align}")

    def select(self, condition: str, a: Int | int, b: Int | int) -> Int:
        a, b = self.number(a), self.number(b)
        return Int(self, self.write(f"select i1 {condition}, i64 {a.name}, i64 {b.name}"))

    def select_pointer(self, condition: str, a: Pointer, b: Pointer) -> Pointer:
        return Pointer(self, self.write(f"select i1 {condition}, ptr {a.name}, ptr {b.name}"))

    @contextmanager
    def loop(self, start: Int | int, stop: Int | int, step: Int | int = 1) -> Iterator[Int]:
        """Count from `start` while below `stop`."""
        counter, number = Variable(self, "i64"), self.label()
        start, stop, step = self.number(start), self.number(stop), self.number(step)
        counter.set(start.name)
        self.line(f"br label %test{number}")
        self.lines.append(f"test{number}:")
        i = Int(self, counter.get())
        self.line(f"br i1 {i.icmp('slt', stop)}, label %body{number}, label %end{number}")
        self.lines.append(f"body{number}:")
        yield i
        counter.set((i + step).name)
        self.line(f"br label %test{number}, !llvm.loop !1")
        self.lines.append(f"end{number}:")

    @contextmanager
    def if_(self, condition: str) -> Iterator[None]:
        """Run the block only if an i1 is true."""
        number = self.label()
        self.line(f"br i1 {condition}, label %then{number}, label %past{number}")
        self.lines.append(f"then{number}:")
        yield
        self.line(f"br label %past{number}")
        self.lines.append(f"past{number}:")

    def label(self) -> int:
        self.count += 1
        return self.count

    def inner(self, name: str, parameters: str) -> LLVMBuilder:
        """Add a function with parameters such as `ptr %x, i64 %n`."""
        self.functions.append(LLVMBuilder(name, parameters))
        return self.functions[-1]

    def alloca(self, type: str) -> Pointer:
        """Allocate memory for one value of an LLVM type, to share with an inner function."""
        return Pointer(self, Variable(self, type).place)

    def body(self) -> str:
        if self.is_public:
            kind = f"void @{self.name}({self.parameters}) nounwind"
        elif self.parameters:
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
    """Split arguments at the commas outside brackets."""
    out, depth = [""], 0
    for c in args:
        depth += (c in "<(") - (c in ">)")
        if c == "," and depth == 0:
            out.append("")
        else:
            out[-1] += c
    return [part.strip() for part in out]
