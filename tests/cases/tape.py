"""Cases for the operations that mark the tape."""

from lucid.tape.markers import Alias, Overwritten, Replaced, StopGradient
from tests.cases.case import Case, complex_, integer, real

CASES = [
    Case(Alias(), (real(2, 3),), lambda x: x),
    Case(Alias(), (complex_(),), lambda x: x),
    Case(StopGradient(), (real(2, 3),), lambda x: x),
    Case(StopGradient(), (integer(0),), lambda x: x),
    Case(Overwritten(), (real(2, 3), real(2, 3)), lambda x, new: new, smooth=False),
    Case(Replaced(), (real(2, 3), real(2, 3)), lambda x, new: new),
    Case(Overwritten(), (complex_(), complex_()), lambda x, new: new, smooth=False),
]
