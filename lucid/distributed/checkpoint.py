"""Checkpoints of many ranks: each writes its own safetensors file, and one index names them all.

    folder/index.json                  {"data": "a1b2", "shards": 4, "structure": ..., ...}
    folder/a1b2/shard-0-of-4.safetensors

A checkpoint becomes valid when the index is renamed into place, after all files are written and
synced. Until then the index names the old files, which are removed only afterward. So if a
rank is killed at any moment, either the old or the new checkpoint is complete.

A tensor that all ranks have is written by one of them; for a tensor sharded along axis 0, every
rank writes its own rows. Either can be loaded on any number of ranks.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lucid.distributed.functions import all_gather, barrier, broadcast
from lucid.distributed.runtime import runtime
from lucid.errors import ArgumentError, FileFormatError
from lucid.public.declare import public
from lucid.saving.atomic import sync_directory, write_atomically
from lucid.saving.format import read_tensors, write_tensors
from lucid.saving.tree import deserialize_tree, serialize_tree

INDEX = "index.json"
VERSION = 1


@public("distributed")
def save_checkpoint(
    folder: str | os.PathLike[str], state: Any, *, sharded: Sequence[str] = ()
) -> None:
    """Save the state of all ranks: nested dictionaries and lists of tensors and numbers.

    sharded    names of tensors, such as "model.embedding", whose rows are distributed over the
               ranks; all others are equal on all ranks, and are written once

    >>> import lucid, tempfile, lucid.distributed as dist
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dist.save_checkpoint(folder, {"w": lucid.ones(2), "epoch": 3})
    ...     dist.load_checkpoint(folder)
    {'w': Tensor([1., 1.]), 'epoch': 3}
    """
    world, root = runtime(), Path(folder)
    arrays, structure = serialize_tree(state)
    names = check_names(arrays, sharded)
    token = new_token()
    data = root / token
    data.mkdir(parents=True, exist_ok=True)
    owners = choose_owners(arrays, names, world.size)
    mine = {n: x for n, x in arrays.items() if n in names or owners[n] == world.rank}
    path = data / file_name(world.rank, world.size)
    write_atomically(path, lambda file: write_tensors(file, mine, ""))
    rows = {n: row_counts(arrays[n]) for n in sorted(names)}
    barrier()
    if world.rank == 0:
        sync_directory(data)
        sync_directory(root)
        index = {
            "version": VERSION, "data": token, "shards": world.size, "structure": structure,
            "owners": owners, "rows": rows,
        }  # fmt: skip
        text = json.dumps(index).encode()
        write_atomically(root / INDEX, lambda file: file.write(text))
        remove_others(root, token)
    barrier()


def check_names(arrays: dict[str, np.ndarray], sharded: Sequence[str]) -> set[str]:
    names = set(sharded)
    unknown = sorted(names - arrays.keys())
    if unknown:
        raise ArgumentError(f"save_checkpoint: there is no tensor {unknown[0]!r} to shard")
    flat = sorted([n for n in names if arrays[n].ndim == 0])
    if flat:
        raise ArgumentError(f"save_checkpoint: {flat[0]!r} is a number and has no rows")
    return names


def new_token() -> str:
    """Return a new name for the files of a checkpoint, the same on all ranks."""
    drawn = np.frombuffer(os.urandom(8), np.int64).copy()
    return f"{int(broadcast(drawn)[0]) & (2**64 - 1):016x}"


def file_name(shard: int, shards: int) -> str:
    return f"shard-{shard}-of-{shards}.safetensors"


def choose_owners(arrays: dict[str, np.ndarray], sharded: set[str], size: int) -> dict[str, int]:
    """Return which rank writes each tensor that all have: large ones first, to the least loaded."""
    load = [0] * size
    owners = {}
    for name, x in sorted(arrays.items(), key=lambda item: (-item[1].nbytes, item[0])):
        if name not in sharded:
            owners[name] = load.index(min(load))
            load[owners[name]] += x.nbytes + 1
    return owners


def row_counts(x: np.ndarray) -> list[int]:
    """Return the number of rows that each rank has."""
    return [int(n) for n in np.asarray(all_gather(np.int64(x.shape[0]))).reshape(-1)]


def remove_others(root: Path, token: str) -> None:
    """Remove the files of other checkpoints, which no index names anymore."""
    for path in root.iterdir():
        if path.is_dir() and path.name != token and is_token(path.name):
            shutil.rmtree(path, ignore_errors=True)


def is_token(name: str) -> bool:
    return len(name) == 16 and set(name) <= set("0123456789abcdef")


@public("distributed")
def load_checkpoint(folder: str | os.PathLike[str]) -> Any:
    """Load a checkpoint written by `save_checkpoint`, on any number of ranks.

    Sharded tensors are divided again: every rank gets its part of the rows.
    """
    index = read_index(Path(folder))
    world = runtime()
    data, shards = Path(folder) / index["data"], index["shards"]
    arrays: dict[str, np.ndarray] = {}
    pieces: dict[str, list[np.ndarray]] = {name: [] for name in index["rows"]}
    ranges = {
        name: own_rows(sum(rows), world.rank, world.size) for name, rows in index["rows"].items()
    }
    for shard in range(shards):
        path = data / file_name(shard, shards)
        with open(path, "rb") as file:
            found, _ = read_tensors(file)
        arrays.update({n: x for n, x in found.items() if index["owners"].get(n) == shard})
        for name, (begin, end) in ranges.items():
            first = sum(index["rows"][name][:shard])
            pieces[name].append(found[name][max(begin - first, 0) : max(end - first, 0)])
    arrays.update({name: np.concatenate(parts) for name, parts in pieces.items()})
    missing = sorted(index["owners"].keys() - arrays.keys())
    if missing:
        raise FileFormatError(f"load_checkpoint: {folder}: no file contains {missing[0]!r}")
    return deserialize_tree(arrays, index["structure"])


def own_rows(total: int, rank: int, size: int) -> tuple[int, int]:
    """Return the first row of a rank and the row after its last."""
    each, more = divmod(total, size)
    begin = rank * each + min(rank, more)
    return begin, begin + each + (rank < more)


def read_index(root: Path) -> dict[str, Any]:
    try:
        index = json.loads((root / INDEX).read_bytes())
    except FileNotFoundError:
        raise FileFormatError(f"load_checkpoint: {root} has no {INDEX}") from None
    except ValueError as error:
        raise FileFormatError(f"load_checkpoint: {root / INDEX} is damaged: {error}") from None
    fields = {"data": str, "shards": int, "structure": str, "owners": dict, "rows": dict}
    good = isinstance(index, dict) and index.get("version") == VERSION
    if not good or any([not isinstance(index.get(name), kind) for name, kind in fields.items()]):
        raise FileFormatError(f"load_checkpoint: {root / INDEX} is not an index of a checkpoint")
    if not is_token(index["data"]):
        raise FileFormatError(f"load_checkpoint: {root / INDEX} names {index['data']!r}")
    return index
