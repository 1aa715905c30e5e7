"""Saving and loading: nested dictionaries of tensors as safetensors files, whole or not at all.

`save` writes names and arrays in the safetensors format, with the nesting and a checksum in its
metadata; `load` reads such a file, and any other safetensors file as a flat dictionary. Nothing in
a file is ever executed.
"""

from __future__ import annotations

import io
from os import PathLike
from typing import Any

from lucid.errors import ArgumentError, FileFormatError
from lucid.ir.source import at_line
from lucid.saving import tree
from lucid.saving.atomic import write_atomically
from lucid.saving.format import read_tensors, write_tensors

__all__ = ["load", "save"]


def save(obj: Any, f: str | PathLike[str] | io.BufferedIOBase) -> None:
    """Write tensors, numbers, strings, and dictionaries, lists and tuples of them, to a file.

    The file is the old one or the new one, whole, also when the process is killed in between.

    >>> import lucid, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "state.safetensors")
    >>> lucid.save({"w": lucid.ones(2), "epoch": 3}, path)
    >>> lucid.load(path)
    {'w': Tensor([1., 1.]), 'epoch': 3}
    """
    arrays, structure = tree.taken_apart(obj)
    if hasattr(f, "write"):
        write_tensors(f, arrays, structure)
    elif isinstance(f, (str, PathLike)):
        write_atomically(f, lambda file: write_tensors(file, arrays, structure))
    else:
        raise ArgumentError(f"save: {type(f).__name__} is neither a path nor a file{at_line()}")


def load(
    f: str | PathLike[str] | io.BufferedIOBase,
    map_location: Any = None,
    *,
    weights_only: bool | None = None,
) -> Any:
    """What `save` wrote to a file; a dictionary of tensors for any other safetensors file.

    Numbers of dtype bfloat16, which other programs write, are read as float32. PyTorch's questions
    are accepted and change nothing: there is one device, and nothing in a file is ever executed.
    """
    if hasattr(f, "read"):
        return put_together(f, getattr(f, "name", "the file"))
    if not isinstance(f, (str, PathLike)):
        raise ArgumentError(f"load: {type(f).__name__} is neither a path nor a file{at_line()}")
    with open(f, "rb") as file:
        return put_together(file, str(f))


def put_together(file: Any, name: str) -> Any:
    try:
        arrays, structure = read_tensors(file)
        return tree.put_together(arrays, structure)
    except FileFormatError as error:
        raise FileFormatError(f"load: {name}: {error}{at_line()}") from None
