"""The safetensors format: the length of the header, the header as JSON, then the arrays.

    u64, little endian | {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, ...} | bytes

Every entry of a header is validated before it is used.
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
BFLOAT16 = "BF16"  # the upper two bytes of a float32; read as float32
MAX_HEADER = 100_000_000
METADATA, STRUCTURE, CHECKSUM = "__metadata__", "lucid.structure", "lucid.sha256"
BLOCK = 1 << 22


def write_tensors(file: Any, arrays: dict[str, np.ndarray], structure: str) -> None:
    """Write named arrays and a text that describes their structure."""
    header: dict[str, Any] = {METADATA: {STRUCTURE: structure}}
    wide_first = sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)
    plain = {name: little_endian(x) for name, x in wide_first}  # so that all are aligned
    offset = 0
    for name, x in plain.items():
        offsets = [offset, offset + x.nbytes]
        header[name] = {
            "dtype": NAMES[x.dtype.str],
            "shape": list(x.shape),
            "data_offsets": offsets,
        }
        offset += x.nbytes
    digest = hashlib.sha256(header_bytes(header))
    for x in plain.values():
        for block in blocks(x):
            digest.update(block)
    header[METADATA][CHECKSUM] = digest.hexdigest()
    text = header_bytes(header)
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for x in plain.values():
        for block in blocks(x):
            file.write(block)


def little_endian(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x, x.dtype.newbyteorder("<")).reshape(x.shape)


def blocks(x: np.ndarray) -> Any:
    """Yield the bytes of an array, a few megabytes at a time."""
    flat = x.reshape(-1).view(np.uint8)
    return (flat[i : i + BLOCK].data for i in range(0, flat.size, BLOCK))


def header_bytes(header: dict[str, Any]) -> bytes:
    return json.dumps(header, separators=(",", ":"), ensure_ascii=True).encode()


def read_tensors(file: Any) -> tuple[dict[str, np.ndarray], str | None]:
    """Return the named arrays of a file, and the text of their structure if Lucid wrote it."""
    length = int.from_bytes(read_exactly(file, 8, "its first 8 bytes"), "little")
    if not 2 <= length <= MAX_HEADER:
        raise FileFormatError(describe_foreign_file(length.to_bytes(8, "little")))
    text = read_exactly(file, length, "its header")
    header = parse_header(text)
    metadata = header.pop(METADATA, {})
    entries = parse_entries(header)
    size = entries[-1][3] if entries else 0
    data = read_data(file, size)
    if file.read(1):
        raise FileFormatError(f"there are more bytes than the {size} of its arrays")
    check_metadata(metadata)
    if CHECKSUM in metadata or STRUCTURE in metadata:
        verify_checksum(header, metadata, data)
    arrays = {
        name: array_at(data, dtype, begin, end, shape) for name, dtype, begin, end, shape in entries
    }
    return arrays, metadata.get(STRUCTURE)


FOREIGN_MAGIC = {
    b"\x93NUMPY": "a NumPy file; load it with lucid.from_numpy(np.load(...))",
    b"PK\x03\x04": "a zip archive, as torch.save and np.savez write; load it with the library that "
    "wrote it, and save its arrays as safetensors",
    b"\x80": "a pickle, which can run arbitrary code; load it with the library that wrote it, "
    "and save its arrays as safetensors",
}


def describe_foreign_file(start: bytes) -> str:
    """Return an error text for a file that starts with these bytes."""
    for mark, what in FOREIGN_MAGIC.items():
        if start.startswith(mark):
            return f"not a safetensors file but {what}"
    return "not a safetensors file, which is the format that lucid.save writes"


def array_at(data: bytearray, dtype: np.dtype, begin: int, end: int, shape: list[int]) -> Any:
    if begin == end:
        return np.empty(shape, "<f4" if dtype.names else dtype)
    array = np.frombuffer(data, dtype, math.prod(shape), begin).reshape(shape)
    if dtype.names == (BFLOAT16,):
        return (array[BFLOAT16].astype("<u4") << 16).view("<f4")
    return array if array.flags.aligned else array.copy()


def read_exactly(file: Any, n: int, what: str) -> bytes:
    found = file.read(n)
    if len(found) != n:
        raise FileFormatError(f"the file ends within {what}")
    return found


def read_data(file: Any, size: int) -> bytearray:
    """Read `size` bytes; memory grows with the actual data, not with what a header claims."""
    data = bytearray()
    while len(data) < size:
        block = file.read(min(max(BLOCK, len(data) // 4), size - len(data)))
        if not block:
            raise FileFormatError(f"the file ends after {len(data)} of {size} bytes of its arrays")
        data += block
    return data


def parse_header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text, object_pairs_hook=reject_duplicate_names)
    except FileFormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"its header is not JSON ({error})") from None
    if not isinstance(header, dict):
        raise FileFormatError("its header is not a JSON object")
    return header


def reject_duplicate_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise FileFormatError("a name is repeated in its header")
    return found


def parse_entries(header: dict[str, Any]) -> list[tuple[str, np.dtype, int, int, list[int]]]:
    """Return (name, dtype, begin, end, shape) by offset, checked to leave no gaps."""
    entries = sorted((parse_entry(name, info) for name, info in header.items()), key=byte_range)
    end = 0
    for name, _, begin, stop, _ in entries:
        if begin != end:
            raise FileFormatError(f"array {name!r} starts at byte {begin}, not at {end}")
        end = stop
    return entries


def byte_range(found: tuple[str, np.dtype, int, int, list[int]]) -> tuple[int, int]:
    return found[2], found[3]


def parse_entry(name: str, info: Any) -> tuple[str, np.dtype, int, int, list[int]]:
    try:
        code, shape, (begin, end) = info["dtype"], info["shape"], info["data_offsets"]
    except (TypeError, KeyError, ValueError):
        raise FileFormatError(f"array {name!r} lacks dtype, shape or data_offsets") from None
    if not isinstance(code, str) or code not in (*DTYPES, BFLOAT16):
        raise FileFormatError(f"array {name!r} has dtype {code!r}, which is not supported")
    sizes = [*shape, begin, end] if isinstance(shape, list) else [None]
    if any(type(n) is not int or not 0 <= n < 1 << 62 for n in sizes) or len(shape) > 64:
        raise FileFormatError(f"array {name!r} has shape {shape!r:.80} at {begin!r}:{end!r}")
    dtype = np.dtype(DTYPES[code] if code != BFLOAT16 else [(BFLOAT16, "<u2")])
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
        raise FileFormatError("its metadata is not a mapping from strings to strings")


def verify_checksum(header: dict[str, Any], metadata: dict[str, str], data: bytearray) -> None:
    rest = {name: x for name, x in metadata.items() if name != CHECKSUM}
    digest = hashlib.sha256(header_bytes({METADATA: rest, **header}))
    digest.update(data)
    if digest.hexdigest() != metadata.get(CHECKSUM):
        raise FileFormatError("its checksum does not match: the file is corrupt")
