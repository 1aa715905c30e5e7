"""Saving and loading: nested dictionaries of tensors as safetensors files, written atomically.

`save` writes names and arrays in the safetensors format, with the structure and a checksum in its
metadata; `load` reads such a file, and any other safetensors file as a flat dictionary. Loading
never executes code from a file.
"""

from __future__ import annotations

import io
from os import PathLike
from typing import Any

from lucid.errors import ArgumentError, FileFormatError
from lucid.public.declare import public
from lucid.saving import tree
from lucid.saving.atomic import write_atomically
from lucid.saving.format import read_tensors, write_tensors

__all__ = ["load", "save"]


@public()
def save(obj: Any, f: str | PathLike[str] | io.BufferedIOBase) -> None:
    """Save tensors, numbers, strings, and dictionaries, lists and tuples of them, to a file.

    The write is atomic: if the process is killed, the file is either the old or the new one.

    >>> import lucid, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "state.safetensors")
    >>> lucid.save({"w": lucid.ones(2), "epoch": 3}, path)
    >>> lucid.load(path)
    {'w': Tensor([1., 1.]), 'epoch': 3}
    """
    arrays, structure = tree.serialize_tree(obj)
    if hasattr(f, "write"):
        write_tensors(f, arrays, structure)
    elif isinstance(f, (str, PathLike)):
        write_atomically(f, lambda file: write_tensors(file, arrays, structure))
    else:
        raise ArgumentError(f"save: {type(f).__name__} is neither a path nor a file")


@public()
def load(
    f: str | PathLike[str] | io.BufferedIOBase,
    map_location: Any = None,
    *,
    weights_only: bool | None = None,
) -> Any:
    """Load what `save` wrote to a file; other safetensors files give a dictionary of tensors.

    bfloat16 arrays, which other programs write, are read as float32. `map_location` and
    `weights_only` are accepted as in PyTorch and have no effect: there is one device, and loading
    never executes code from a file.
    """
    if hasattr(f, "read"):
        return read_file(f, getattr(f, "name", "the file"))
    if not isinstance(f, (str, PathLike)):
        raise ArgumentError(f"load: {type(f).__name__} is neither a path nor a file")
    with open(f, "rb") as file:
        return read_file(file, str(f))


def read_file(file: Any, name: str) -> Any:
    try:
        arrays, structure = read_tensors(file)
        return tree.deserialize_tree(arrays, structure)
    except FileFormatError as error:
        raise FileFormatError(f"load: {name}: {error}") from None
