"""Facts: what the compiler must know about an operation, as data and small methods of its class.

A rule of the compiler is a function or a class, or its name as "module:name", which is imported
when a program first has the operation. The defaults claim nothing, so that an operation without
any of them runs by its `eval`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from lucid.errors import IndexingError
from lucid.ir.types import Type

Points = tuple[int | None, ...]  # the axis of a kernel's domain that each axis runs along
Box = tuple[tuple[int, int], ...]  # the start and size of a window along each axis


class Facts:
    """The part of a Primitive that the compiler reads.

    scalar          the scalar function that computes one element in a kernel
    monoid          what combines the elements along `axes`: sum, prod, max, min, any, all
    scan            what accumulates along `axis`: sum, prod, max, min, logsumexp, recurrence
    empty           the elements of the result if an operand is empty
    lowering        a class with `accepts(eqn)` and `lower(layout, eqn)`: native code of its own
    decomposition   (writer, eqn) -> the results in simpler operations, or None
    complex_rule    (writer, eqn) -> the real and the imaginary part of a complex result
    partwise        applies to real and imaginary parts separately
    moves           results hold elements of operands, or zeros: nothing is computed from them
    exact           compiled code and NumPy give the same bits for real numbers
    jumps           the last bit of a floating operand may change all of the result
    keeps_float16   is compiled for float16 itself; others that compute use float32
    fills           the result repeats the 0-d operand
    forwards        the operands, "first" or "last", that the results are: only their history or
                    memory differs
    value_graph     the field that holds the Graph of its value, which is inlined
    control_flow    runs the Graphs in its fields as branches or loops
    reads_memory    reads the first operand from memory, at other points than those of the result
    orders          operands after the first are only waited for
    ordered         an effect on other processes: it runs once, in the Graph's order, used or not
    asynchronous    in a plan it is only started; the first step that reads the result waits for it
    updates         the result is the first operand with a part replaced
    operand_layout  what native code can read: "any", "dense", "matrix" (contiguous rows or columns)
                    or "rows" (contiguous rows if the result has longer ones)
    check_error     the error that native code reports: a class and a reason
    fails           `eval` raises an error for some values, so eager code runs it at once
    """

    scalar: ClassVar[Any] = ""
    monoid: ClassVar[str] = ""
    scan: ClassVar[str] = ""
    empty: ClassVar[Any] = None
    lowering: ClassVar[Any] = None
    decomposition: ClassVar[Any] = None
    complex_rule: ClassVar[Any] = None
    partwise: ClassVar[bool] = False
    moves: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    jumps: ClassVar[bool] = False
    keeps_float16: ClassVar[bool] = False
    fills: ClassVar[bool] = False
    forwards: ClassVar[str] = ""
    value_graph: ClassVar[str] = ""
    control_flow: ClassVar[bool] = False
    reads_memory: ClassVar[bool] = False
    orders: ClassVar[bool] = False
    ordered: ClassVar[bool] = False
    asynchronous: ClassVar[bool] = False
    updates: ClassVar[bool] = False
    operand_layout: ClassVar[str] = "any"
    check_error: ClassVar[tuple[Any, str]] = (IndexingError, "an index is out of range")

    fails: ClassVar[bool] = False
    checks_values: ClassVar[bool] = False  # defines `check_values`

    # Defines `view`, so compiled code needs no step for it. `is_view` is a different fact: that
    # eager tensors share memory, and a write to one is seen by the other.
    aliases: ClassVar[bool] = False
    has_loop: ClassVar[bool] = False  # defines `loop`

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.aliases = cls.view is not Facts.view
        cls.has_loop = cls.loop is not Facts.loop
        cls.checks_values = cls.check_values is not Facts.check_values

    def check_values(self, *xs: Any) -> None:
        """Raise the error that `eval` would raise for those operands that are arrays.

        The others are not computed yet and have only types.
        """

    def index_bound(self, *types: Type) -> int | None:
        """Return a number that integer results are in [0, number) of; None if there is none."""
        return None

    def forwarded(self, operands: tuple[Any, ...], n: int) -> tuple[Any, ...]:
        """Return the `n` operands that are the results."""
        return operands[:n] if self.forwards == "first" else operands[-n:]

    def view(self, x: Any) -> Any:
        """Return the result as strides over the memory of `x`; None if no strides describe it."""
        return None

    def axes_read(self, x: Type) -> Points | None:
        """Return the axis of `x` that each axis of a view runs along (None: it is repeated).

        None if the view is not described by its axes alone.
        """
        return None

    def loop(self, kernel: Any, eqn: Any, points: Points) -> int:
        """Write the value at one point of a kernel's domain; return its number."""
        raise NotImplementedError

    def can_loop(self, eqn: Any) -> bool:
        """True if `loop` has code for the operands, whose dtypes kernels support."""
        return True

    def has_window(self, eqn: Any) -> bool:
        """True if a window of the result is made of windows of the operands."""
        return False

    def make_window(self, sinker: Any, eqn: Any, box: Box) -> Any:
        """Return the result in a box, made of windows of the operands."""
        raise NotImplementedError
