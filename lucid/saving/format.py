"""The safetensors format: the length of a header, the header as JSON, the arrays one after another.

    u64, little endian | {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, ...} | bytes

Everything a header says is checked before it is believed.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import numpy as np

from lucid.errors import FileFormatError

DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1", "C64": "<c8",
}  # fmt: skip
NAMES = {np.dtype(code).str: name for name, code in DTYPES.items()}
UPPER_HALF = "BF16"  # the first two bytes of a float32, which is what is read
MOST_HEADER = 100_000_000
METADATA, STRUCTURE, CHECKSUM = "__metadata__", "lucid.structure", "lucid.sha256"
BLOCK = 1 << 22


def write_tensors(file: Any, arrays: dict[str, np.ndarray], structure: str) -> None:
    """Write arrays by name and a text that says how they belong together."""
    header: dict[str, Any] = {METADATA: {STRUCTURE: structure}}
    wide_first = sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)
    plain = {name: little_endian(x) for name, x in wide_first}  # so that all lie aligned
    offset = 0
    for name, x in plain.items():
        place = [offset, offset + x.nbytes]
        header[name] = {"dtype": NAMES[x.dtype.str], "shape": list(x.shape), "data_offsets": place}
        offset += x.nbytes
    digest = hashlib.sha256(canonical(header))
    for x in plain.values():
        for block in blocks(x):
            digest.update(block)
    header[METADATA][CHECKSUM] = digest.hexdigest()
    text = canonical(header)
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for x in plain.values():
        for block in blocks(x):
            file.write(block)


def little_endian(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x, x.dtype.newbyteorder("<")).reshape(x.shape)


def blocks(x: np.ndarray) -> Any:
    """The bytes of an array, a few megabytes at a time."""
    flat = x.reshape(-1).view(np.uint8)
    return (flat[i : i + BLOCK].data for i in range(0, flat.size, BLOCK))


def canonical(header: dict[str, Any]) -> bytes:
    return json.dumps(header, separators=(",", ":"), ensure_ascii=True).encode()


def read_tensors(file: Any) -> tuple[dict[str, np.ndarray], str | None]:
    """The arrays of a file by name, and the text about them where Lucid wrote it."""
    length = int.from_bytes(read_exactly(file, 8, "its first 8 bytes"), "little")
    if not 2 <= length <= MOST_HEADER:
        raise FileFormatError(foreign(length.to_bytes(8, "little")))
    text = read_exactly(file, length, "its header")
    header = parsed(text)
    metadata = header.pop(METADATA, {})
    entries = checked_entries(header)
    size = entries[-1][3] if entries else 0
    data = read_data(file, size)
    if file.read(1):
        raise FileFormatError(f"there are more bytes than the {size} of its arrays")
    check_metadata(metadata)
    if CHECKSUM in metadata or STRUCTURE in metadata:
        check_sum(header, metadata, data)
    arrays = {
        name: array_at(data, dtype, begin, end, shape) for name, dtype, begin, end, shape in entries
    }
    return arrays, metadata.get(STRUCTURE)


FOREIGN = {
    b"\x93NUMPY": "a file of np.save; read it by lucid.from_numpy(np.load(...))",
    b"PK\x03\x04": "a zip archive, as torch.save and np.savez write it; read it by what wrote it, "
    "and save its arrays by safetensors",
    b"\x80": "a pickle, which could execute anything; read it by what wrote it, and save its "
    "arrays by safetensors",
}


def foreign(start: bytes) -> str:
    """What a file that begins in such a way is, as far as that can be told."""
    for mark, what in FOREIGN.items():
        if start.startswith(mark):
            return f"this is no safetensors file but {what}"
    return "this is no safetensors file, which is what lucid.save writes"


def array_at(data: bytearray, dtype: np.dtype, begin: int, end: int, shape: list[int]) -> Any:
    if begin == end:
        return np.empty(shape, "<f4" if dtype.names else dtype)
    array = np.frombuffer(data, dtype, math.prod(shape), begin).reshape(shape)
    if dtype.names == (UPPER_HALF,):
        return (array[UPPER_HALF].astype("<u4") << 16).view("<f4")
    return array if array.flags.aligned else array.copy()


def read_exactly(file: Any, n: int, what: str) -> bytes:
    found = file.read(n)
    if len(found) != n:
        raise FileFormatError(f"it ends within {what}")
    return found


def read_data(file: Any, size: int) -> bytearray:
    """`size` bytes; memory grows with what is there, not with what a header claims."""
    data = bytearray()
    while len(data) < size:
        block = file.read(min(max(BLOCK, len(data) // 4), size - len(data)))
        if not block:
            raise FileFormatError(f"it ends after {len(data)} of {size} bytes of its arrays")
        data += block
    return data


def parsed(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text, object_pairs_hook=without_doubles)
    except FileFormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"its header is not JSON ({error})") from None
    if not isinstance(header, dict):
        raise FileFormatError("its header is not a JSON object")
    return header


def without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise FileFormatError("a name stands twice in its header")
    return found


def checked_entries(header: dict[str, Any]) -> list[tuple[str, np.dtype, int, int, list[int]]]:
    """(name, dtype, begin, end, shape) in the order of the bytes, which they fill without gaps."""
    entries = sorted((entry(name, about) for name, about in header.items()), key=place_of)
    end = 0
    for name, _, begin, stop, _ in entries:
        if begin != end:
            raise FileFormatError(f"array {name!r} starts at byte {begin}, not at {end}")
        end = stop
    return entries


def place_of(found: tuple[str, np.dtype, int, int, list[int]]) -> tuple[int, int]:
    return found[2], found[3]


def entry(name: str, about: Any) -> tuple[str, np.dtype, int, int, list[int]]:
    try:
        code, shape, (begin, end) = about["dtype"], about["shape"], about["data_offsets"]
    except (TypeError, KeyError, ValueError):
        raise FileFormatError(f"array {name!r} lacks dtype, shape or data_offsets") from None
    if not isinstance(code, str) or code not in (*DTYPES, UPPER_HALF):
        raise FileFormatError(f"array {name!r} has dtype {code!r}, which Lucid does not have")
    sizes = [*shape, begin, end] if isinstance(shape, list) else [None]
    if any(type(n) is not int or not 0 <= n < 1 << 62 for n in sizes) or len(shape) > 64:
        raise FileFormatError(f"array {name!r} has shape {shape!r:.80} at {begin!r}:{end!r}")
    dtype = np.dtype(DTYPES[code] if code != UPPER_HALF else [(UPPER_HALF, "<u2")])
    if math.prod(n for n in shape if n) * dtype.itemsize >= 1 << 62:
        raise FileFormatError(f"array {name!r} of shape {shape!r:.80} is too large")
    if end - begin != math.prod(shape) * dtype.itemsize:
        raise FileFormatError(
            f"array {name!r} of shape {shape} and dtype {code} cannot have {end - begin} bytes"
        )
    return name, dtype, begin, end, shape


def check_metadata(metadata: Any) -> None:
    texts = isinstance(metadata, dict) and all(isinstance(x, str) for x in metadata.values())
    if not texts:
        raise FileFormatError("its metadata are not texts by name")


def check_sum(header: dict[str, Any], metadata: dict[str, str], data: bytearray) -> None:
    rest = {name: x for name, x in metadata.items() if name != CHECKSUM}
    digest = hashlib.sha256(canonical({METADATA: rest, **header}))
    digest.update(data)
    if digest.hexdigest() != metadata.get(CHECKSUM):
        raise FileFormatError("its checksum is wrong: the file is damaged")
