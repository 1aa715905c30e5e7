"""Messages between a DataLoader and its workers: a pickle, with arrays sent separately as bytes.

Both ends are the same forked program, so a pickle cannot run code that its reader does not trust;
files, which can come from anywhere, are never pickles.
"""

from __future__ import annotations

import io
import pickle
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from lucid.tape.node import wrap
from lucid.tensors.tensor import Tensor


class Packer(pickle.Pickler):
    """Pickles everything except tensors and numeric arrays, which are collected."""

    def __init__(self, file: Any) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.arrays: list[np.ndarray] = []

    def persistent_id(self, x: Any) -> Any:
        is_tensor = isinstance(x, Tensor)
        if not is_tensor and not (type(x) is np.ndarray and x.dtype.kind in "biufc"):
            return None
        self.arrays.append(np.ascontiguousarray(x.array("DataLoader") if is_tensor else x))
        return is_tensor, len(self.arrays) - 1, x.shape


class Unpacker(pickle.Unpickler):
    """Unpickles what a Packer wrote, given the arrays."""

    def __init__(self, file: Any, arrays: list[np.ndarray]) -> None:
        super().__init__(file)
        self.arrays = arrays

    def persistent_load(self, found: Any) -> Any:
        is_tensor, number, shape = found
        array = self.arrays[number].reshape(shape)
        return wrap(array) if is_tensor else array


def send(pipe: Connection, kind: str, value: Any) -> None:
    """Send a value of some kind through a pipe."""
    text = io.BytesIO()
    packer = Packer(text)
    packer.dump(value)
    described = [(x.dtype.str, x.size) for x in packer.arrays]
    pipe.send_bytes(pickle.dumps((kind, text.getvalue(), described)))
    for x in packer.arrays:
        if x.nbytes:
            pipe.send_bytes(x.reshape(-1).view(np.uint8).data)


def receive(pipe: Connection) -> tuple[str, Any]:
    """Return the kind and the value that the other end sent."""
    kind, text, described = pickle.loads(pipe.recv_bytes())
    arrays = [np.empty(size, dtype) for dtype, size in described]
    for x in arrays:
        if x.nbytes:
            pipe.recv_bytes_into(x.view(np.uint8).data)
    return kind, Unpacker(io.BytesIO(text), arrays).load()
