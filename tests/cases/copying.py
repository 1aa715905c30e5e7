"""Cases for copies."""

from lucid.ops.shape.copying import Copy
from tests.cases.case import Case, boolean, complex_, real

CASES = [
    Case(Copy(), (real(2, 3),), lambda x: x),
    Case(Copy(), (complex_(),), lambda x: x),
    Case(Copy(), (boolean(0),), lambda x: x),
]
