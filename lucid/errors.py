"""Lucid's own errors. Each names the op, the facts, the remedy and the user's own line.

Every class is also the built-in that a NumPy or PyTorch user would catch, so `except ValueError`
and `except RuntimeError` go on working.
"""

import numpy.linalg


class LucidError(Exception):
    """The base of every error that Lucid raises."""


class ShapeError(LucidError, ValueError):
    """Shapes do not fit together."""


class DTypeError(LucidError, TypeError):
    """A dtype is not one that the operation takes."""


class ArgumentError(LucidError, TypeError):
    """An argument is missing, of the wrong kind, or does not go with another."""


class AxisError(LucidError, IndexError, ValueError):
    """An axis is out of range or named twice."""


class IndexingError(LucidError, IndexError):
    """An index is out of range or of the wrong kind."""


class GraphError(LucidError, RuntimeError):
    """A graph was freed, does not reach the inputs, or is malformed."""


class MutationError(LucidError, RuntimeError):
    """A value that a graph still needs was changed in place."""


class LinAlgError(LucidError, numpy.linalg.LinAlgError, RuntimeError):
    """A matrix is singular, not positive definite, or has no such derivative."""


class TracedValueError(LucidError, TypeError):
    """Python asked for the value of something that has none (inside vmap or an abstract trace)."""


class LeakError(LucidError, RuntimeError):
    """A traced value was used after the transform that made it had ended."""


class ModuleError(LucidError, RuntimeError):
    """A Module is built or used wrongly, or a state does not fit it."""


class FileFormatError(LucidError, ValueError):
    """A file is damaged, or not of the format it should have."""


class ParseError(LucidError, ValueError):
    """A text is not a Graph."""


class VerifyError(LucidError, ValueError):
    """A Graph breaks a rule of the IR."""
