"""Serialization of nested values into named arrays and a text, and back.

The text is JSON. Each node is a pair: ["tensor", name], ["dict", [[key, node], ...]],
["list", [...]], ["tuple", [...]], or ["value", x] for None, booleans, numbers and strings.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, FileFormatError
from lucid.tape.node import wrap
from lucid.tensors.tensor import Tensor

REMEDIES = {
    "Module": "save its state_dict(), and load it with module.load_state_dict(lucid.load(path))",
    "Optimizer": "save its state_dict(), and load it with load_state_dict(lucid.load(path))",
    "LRScheduler": "save its state_dict(), and load it with load_state_dict(lucid.load(path))",
    "Generator": "save its get_state()",
}


def serialize_tree(obj: Any) -> tuple[dict[str, np.ndarray], str]:
    """Return the named arrays of a nested value, and the text of its structure."""
    arrays: dict[str, np.ndarray] = {}
    try:
        node = encode(obj, "", arrays)
        text = json.dumps(node, separators=(",", ":"))
        json.loads(text)  # fail now if the text could not be read back
    except RecursionError:
        raise ArgumentError("save: the value is nested too deeply") from None
    except ValueError as error:
        raise ArgumentError(f"save: {error}") from None
    return arrays, text


def encode(x: Any, path: str, arrays: dict[str, np.ndarray]) -> list[Any]:
    if isinstance(x, (Tensor, np.ndarray, np.generic)):
        return tensor_node(x, path, arrays)
    if isinstance(x, dict):
        return ["dict", [[encode_key(key, path), encode(v, child_path(path, key), arrays)]
                         for key, v in x.items()]]  # fmt: skip
    if isinstance(x, (list, tuple)):
        kind = "tuple" if isinstance(x, tuple) else "list"
        return [kind, [encode(v, child_path(path, i), arrays) for i, v in enumerate(x)]]
    if isinstance(x, float) and not isinstance(x, bool):
        return ["value", float(x)] if x == x and abs(x) != np.inf else ["float", repr(float(x))]
    if x is None or isinstance(x, (bool, int, str)):
        return ["value", x]
    if isinstance(x, complex):
        return ["complex", [repr(x.real), repr(x.imag)]]
    raise cannot_save(x, path)


def cannot_save(x: Any, path: str) -> ArgumentError:
    names = [cls.__name__ for cls in type(x).__mro__]
    remedy = next((REMEDIES[name] for name in names if name in REMEDIES), None)
    where = f" at {path}" if path else ""
    allowed = "tensors, numbers, strings, None, and dictionaries, lists and tuples of them"
    hint = remedy or f"supported are {allowed}"
    return ArgumentError(f"save: a {type(x).__name__}{where} cannot be saved; {hint}")


def child_path(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def encode_key(key: Any, path: str) -> Any:
    if isinstance(key, str):
        return key
    if isinstance(key, int) and not isinstance(key, bool):
        return [key]
    raise ArgumentError(
        f"save: the key {key!r}{f' at {path}' if path else ''} is not a string or an integer"
    )


def tensor_node(x: Any, path: str, arrays: dict[str, np.ndarray]) -> list[Any]:
    array = x.array("save") if isinstance(x, Tensor) else np.asarray(x)
    kind = "tensor"
    if array.dtype.kind == "c":
        kind = "complex tensor"
        pair = np.empty((*array.shape, 2), array.real.dtype)
        pair[..., 0], pair[..., 1] = array.real, array.imag
        array = pair
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise ArgumentError(
            f"save: an array of dtype {array.dtype} at {path or 'the top'} cannot be saved"
        )
    name = path or "tensor"
    while name in arrays or name == "__metadata__":
        name += "_"
    arrays[name] = array
    return [kind, name]


def deserialize_tree(arrays: dict[str, np.ndarray], structure: str | None) -> Any:
    """Return the nested value, or a dictionary of tensors if there is no structure text."""
    if structure is None:
        return {name: wrap(array) for name, array in arrays.items()}
    try:
        return decode(json.loads(structure), arrays)
    except FileFormatError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        raise FileFormatError("its structure metadata is corrupt") from None


def decode(node: Any, arrays: dict[str, np.ndarray]) -> Any:
    kind, x = node
    match kind:
        case "tensor":
            return wrap(arrays[x])
        case "complex tensor":
            return wrap(complex_from_pairs(arrays[x]))
        case "dict":
            return {decode_key(key): decode(v, arrays) for key, v in x}
        case "list":
            return [decode(v, arrays) for v in x]
        case "tuple":
            return tuple(decode(v, arrays) for v in x)
        case "float":
            return float(x)
        case "complex":
            return complex(float(x[0]), float(x[1]))
        case "value" if x is None or isinstance(x, (bool, int, float, str)):
            return x
    raise FileFormatError(f"its structure metadata has an unknown node {kind!r}")


def decode_key(key: Any) -> Any:
    """Return a dictionary key: a string, or an integer stored in a list of length 1."""
    match key:
        case str():
            return key
        case [int() as number] if not isinstance(number, bool):
            return number
    raise FileFormatError(f"its structure metadata has an invalid key {key!r:.80}")


def complex_from_pairs(pairs: np.ndarray) -> np.ndarray:
    """Return complex numbers from their two parts in the last axis, bit for bit."""
    if pairs.shape[-1:] != (2,) or pairs.dtype not in (np.float32, np.float64):
        raise FileFormatError(
            f"a complex array is stored with shape {pairs.shape} and dtype {pairs.dtype}"
        )
    whole = np.empty(pairs.shape[:-1], np.result_type(pairs.dtype, np.complex64))
    whole.real, whole.imag = pairs[..., 0], pairs[..., 1]
    return whole
