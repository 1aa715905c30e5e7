"""The listings of exports: those of kernels, with sums whose rounding errors are compensated.

Compilers keep the order of a sum of floats, and a sum in order loses a digit for every factor of
ten in its length, where Lucid's kernels add many short partial sums. Exports add float32 in
float64 (`Layout.wide_sums`); a float64 sum along rows collects what each addition rounds away:

    t3 = v3 + x3
    z3 = t3 - v3
    e3 = e3 + ((v3 - (t3 - z3)) + (x3 - z3))
    v3 = t3
"""

from __future__ import annotations

from lucid.compiler.kernels.listing import Lister, unparenthesized
from lucid.compiler.kernels.nest import Nest


def listing(nest: Nest) -> str:
    """The Python text of a Nest's kernel for modules outside Lucid."""
    return CompensatedLister(nest.structure, nest).run()


class CompensatedLister(Lister):
    """Writes a listing with compensated sums."""

    def compensates(self, v: int, held: str) -> bool:
        """True for a float64 sum in a variable; one of float32 numbers is exact enough."""
        value = self.values[v]
        if (value.dtype, value.param, held) != ("f64", "sum", f"v{v}"):
            return False
        argument = self.values[value.args[0]]
        return argument.op != "cast" or self.values[argument.args[0]].dtype != "f32"

    def begin(self, v: int, held: str) -> None:
        super().begin(v, held)
        if self.compensates(v, held):
            self.line(f"e{v} = f64(0)")

    def accumulate(self, v: int, held: str, env: dict[int, str]) -> None:
        if not self.compensates(v, held):
            super().accumulate(v, held, env)
            return
        self.line(f"x{v} = {unparenthesized(env[self.values[v].args[0]])}")
        self.line(f"t{v} = {held} + x{v}")
        self.line(f"z{v} = t{v} - {held}")
        self.line(f"e{v} = e{v} + (({held} - (t{v} - z{v})) + (x{v} - z{v}))")
        self.line(f"{held} = t{v}")

    def finish(self, v: int, held: str) -> None:
        super().finish(v, held)
        if self.compensates(v, held):  # it is nan where the sum is inf or nan
            self.line(f"{held} = {held} + e{v} if e{v} == e{v} else {held}")
