"""Errors that Lucid raises. Each message names the op, the facts, the remedy and the user's line.

Every class is also a subclass of the built-in error that a NumPy or PyTorch user would catch, so
`except ValueError` and `except RuntimeError` keep working.
"""

import re

import numpy.linalg

from lucid.public.declare import public
from lucid.public.lazy import defined_in
from lucid.support.source import at_line

POSITION = r"   \[[^\]]+\]$"


class LucidError(Exception):
    """Base class of all errors that Lucid raises.

    The user's line is appended to the message, unless it ends with a position already.
    """

    def __init__(self, message: object = "") -> None:
        text = str(message)
        super().__init__(text if re.search(POSITION, text) else text + at_line())


class ShapeError(LucidError, ValueError):
    """Shapes are incompatible."""


class DTypeError(LucidError, TypeError):
    """The operation does not support a dtype."""


class ArgumentError(LucidError, TypeError):
    """An argument is missing, of the wrong type, or incompatible with another."""


class AxisError(LucidError, IndexError, ValueError):
    """An axis is out of range or repeated."""


class IndexingError(LucidError, IndexError):
    """An index is out of range or of the wrong type."""


class GraphError(LucidError, RuntimeError):
    """A graph was freed, does not reach the inputs, or is malformed."""


class MutationError(LucidError, RuntimeError):
    """A value that a graph still needs was modified in place."""


@public("linalg")
class LinAlgError(LucidError, numpy.linalg.LinAlgError, RuntimeError):
    """A matrix is singular, not positive definite, or has no derivative."""


class OutOfMemoryError(LucidError, MemoryError):
    """An array does not fit into memory."""


class TracedValueError(LucidError, TypeError):
    """Python code needs the value of a traced tensor (inside vmap or an abstract trace)."""


class LeakError(LucidError, RuntimeError):
    """A traced value was used after its transform had ended."""


class ModuleError(LucidError, RuntimeError):
    """A Module is used incorrectly, or a state dict does not match it."""


class FileFormatError(LucidError, ValueError):
    """A file is corrupt or not in the expected format."""


class SettingError(LucidError, ValueError):
    """A LUCID_* environment variable has a bad value."""


class SettingWarning(RuntimeWarning):
    """A LUCID_* environment variable has a bad value and is ignored."""


class ExportError(LucidError, ValueError):
    """A function cannot be written as a stand-alone module."""


class ParseError(LucidError, ValueError):
    """A text is not a valid Graph."""


class VerifyError(LucidError, ValueError):
    """A Graph violates a rule of the IR."""


class MiscompiledError(LucidError, RuntimeError):
    """A compiled program and the interpreter gave different results (found by LUCID_VERIFY=1)."""


class DetachWarning(UserWarning):
    """A Python number was taken from a tensor that requires a gradient, so the gradient is lost."""


class DistributedError(LucidError, RuntimeError):
    """Cooperating processes cannot continue."""


class RankFailedError(DistributedError):
    """Another rank raised an error, died or finished while this one was waiting for it."""


class CollectiveMismatchError(DistributedError):
    """Ranks called different collectives, or the same one with different types."""


class CollectiveTimeoutError(DistributedError, TimeoutError):
    """A collective waited longer than the timeout."""


class TaskError(DistributedError):
    """A task of `pmap` failed."""


__dir__, __all__ = defined_in(__name__)
