"""Saving: what comes back, the safetensors package in both directions, damage, malice and kills."""

from __future__ import annotations

import io
import json
import math
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections import OrderedDict

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import lucid
from lucid.errors import ArgumentError, FileFormatError

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64", "complex64", "complex128",
]  # fmt: skip


def same(x, y):
    """Equal in structure, types, dtypes and bits."""
    if isinstance(x, lucid.Tensor):
        a, b = x.detach().numpy(), y.detach().numpy()
        alike = a.shape == b.shape and a.dtype == b.dtype
        return type(y) is lucid.Tensor and alike and a.tobytes() == b.tobytes()
    if isinstance(x, dict):
        return list(x) == list(y) and all(same(x[key], y[key]) for key in x)
    if isinstance(x, (list, tuple)):
        return type(x) is type(y) and len(x) == len(y) and all(map(same, x, y))
    return type(x) is type(y) and repr(x) == repr(y)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.safetensors"


def back(value, path):
    lucid.save(value, path)
    return lucid.load(path)


NESTED = {
    "model": {"weight": lucid.ones(2, 3), "bias": lucid.zeros(3)},
    "list": [1, 2.5, "text", None, True, (lucid.tensor(1), [])],
    "numbers": {0: lucid.ones(1), 1: {2: -3}, "0": "zero", -7: ()},
    "odd": [math.inf, -math.inf, math.nan, -0.0, 1e-300, 2**70, 1 + 2j, complex("nan+infj")],
    "names with spaces, dots. and ünïcode \u2028 \U0001f600": lucid.arange(3),
    "": lucid.tensor(5.0),
    "a.b": lucid.ones(1),
    "a": {"b": lucid.zeros(1), "": lucid.ones(2)},
    "__metadata__": lucid.ones(2),
    "empty": {},
}


def test_nested_values_come_back_as_they_were(path):
    assert same(NESTED, back(NESTED, path))


@pytest.mark.parametrize("value", [lucid.ones(2), 3, "text", None, [], {}, (), 2.5, True])
def test_any_value_may_stand_at_the_top(value, path):
    assert same(value, back(value, path))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 0, 3), (2, 3, 1)], ids=str)
def test_every_dtype_comes_back_bit_for_bit(dtype, shape, path, rng):
    x = lucid.tensor((rng.normal(size=shape) * 50).astype(dtype))
    assert same({"x": x}, back({"x": x}, path))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_bits_of_infinities_nans_and_zeros_stay(dtype, path):
    parts = [np.inf, -np.inf, np.nan, -0.0, 5e-8]
    values = [complex(a, b) for a in parts for b in parts] if dtype[0] == "c" else parts
    x = lucid.tensor(np.array(values, dtype))
    assert same(x, back(x, path))


def test_arrays_of_odd_lengths_are_aligned_when_they_come_back(path):
    value = {f"{i}{d}": lucid.ones(3, dtype=d) for i in range(3) for d in DTYPES}
    found = back(value, path)
    assert same(value, found)
    assert all(x.numpy().flags.aligned and x.numpy().flags.writeable for x in found.values())


def test_views_are_saved_as_what_they_show(path, rng):
    x = lucid.tensor(rng.normal(size=(4, 6)))
    views = {"t": x.T, "row": x[1], "every": x[::2, ::-3], "wide": x[0].expand(3, 6)}
    found = back(views, path)
    for name, view in views.items():
        np.testing.assert_array_equal(found[name].numpy(), view.numpy())


def test_numpy_arrays_parameters_and_ordered_dictionaries_are_taken(path):
    big_endian = np.arange(3, dtype=">i4")
    w = lucid.ones(2, requires_grad=True)
    found = back(OrderedDict(a=big_endian, b=np.float32(2), w=w), path)
    assert found["a"].tolist() == [0, 1, 2] and found["a"].dtype == lucid.int32
    assert found["b"].item() == 2.0 and not found["w"].requires_grad


def test_what_was_loaded_may_be_written_without_touching_the_file(path):
    first = back({"x": lucid.zeros(3), "y": lucid.zeros(2)}, path)
    first["x"].fill_(7.0)
    assert first["y"].tolist() == [0, 0] and lucid.load(path)["x"].tolist() == [0, 0, 0]


def test_files_and_buffers_are_written_and_read():
    buffer = io.BytesIO()
    lucid.save(NESTED, buffer)
    buffer.seek(0)
    assert same(NESTED, lucid.load(buffer))


def test_the_safetensors_package_reads_what_lucid_saves(path, rng):
    state = {"layer": {"w": lucid.tensor(rng.normal(size=(3, 2))), "n": lucid.arange(4)},
             "flag": lucid.tensor([True, False]), "h": lucid.ones(3, dtype="float16")}  # fmt: skip
    lucid.save(state, path)
    found = load_file(path)
    assert sorted(found) == ["flag", "h", "layer.n", "layer.w"]
    for name, x in (("layer.w", state["layer"]["w"]), ("layer.n", state["layer"]["n"]),
                    ("flag", state["flag"]), ("h", state["h"])):  # fmt: skip
        assert found[name].dtype == x.dtype
        np.testing.assert_array_equal(found[name], x.numpy())
    with safe_open(path, "numpy") as file:
        assert "lucid.sha256" in file.metadata()


@pytest.mark.parametrize("dtype", [d for d in DTYPES if not d.startswith("complex")])
def test_lucid_reads_what_the_safetensors_package_saves(dtype, path, rng):
    arrays = {"a": (rng.normal(size=(3, 2)) * 9).astype(dtype), "b.c": np.zeros((0, 2), dtype),
              "d": np.ones((), dtype), "odd": np.ones(3, "int8")}  # fmt: skip
    save_file(arrays, path, metadata={"format": "pt"})
    found = lucid.load(path)
    assert sorted(found) == sorted(arrays)
    for name, x in arrays.items():
        assert found[name].dtype == x.dtype
        np.testing.assert_array_equal(found[name].numpy(), x)


# Damage


def small(path):
    w, flag = lucid.arange(5, dtype="float32"), lucid.tensor([True])
    lucid.save({"w": w, "n": {"é": 3, "b": flag}}, path)
    return path.read_bytes()


def test_every_flipped_bit_is_noticed_or_changes_nothing(path):
    whole = small(path)
    expected = lucid.load(path)
    unnoticed = 0
    for i in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[i] ^= 1 << bit
            try:
                found = lucid.load(io.BytesIO(bytes(damaged)))
            except FileFormatError:
                continue
            assert same(expected, found), (i, bit)
            unnoticed += 1
    assert unnoticed <= 8  # letters of an escape, which mean the same in capitals


def test_every_truncation_is_refused(path):
    whole = small(path)
    for n in range(len(whole)):
        with pytest.raises(FileFormatError):
            lucid.load(io.BytesIO(whole[:n]))


def test_bytes_behind_the_end_are_refused(path):
    with pytest.raises(FileFormatError, match="more bytes"):
        lucid.load(io.BytesIO(small(path) + b"\0"))


def with_header(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


HUGE = 1 << 61
HOSTILE = {
    "nothing": b"",
    "zeros": bytes(64),
    "huge header": (1 << 63).to_bytes(8, "little") + b"{}",
    "text": b"hello, this is no such file at all",
    "a zip file": b"PK\x03\x04" + bytes(100),
    "not JSON": with_header(b"{'w': 1}"),
    "a list": with_header([]),
    "not UTF-8": with_header(b'{"\xff\xfe": 1}'),
    "deep": with_header(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "deep list": with_header(b"[" * 1_000_000),
    "many digits": with_header(b'{"w":{"dtype":"F32","shape":[' + b"9" * 5000 + b"]}}"),
    "twice": with_header(b'{"w":%s,"w":%s}' % ((json.dumps(entry()).encode(),) * 2), bytes(8)),
    "no dtype": with_header({"w": {"shape": [2], "data_offsets": [0, 8]}}, bytes(8)),
    "entry is a number": with_header({"w": 3}),
    "entry is a list": with_header({"w": [1, 2, 3]}),
    "unknown dtype": with_header({"w": entry("F8_E4M3", (8,))}, bytes(8)),
    "dtype is a list": with_header({"w": entry(["F32"])}, bytes(8)),
    "wrong dtype": with_header({"w": entry("F64")}, bytes(8)),
    "wrong shape": with_header({"w": entry(shape=(3,))}, bytes(8)),
    "negative shape": with_header({"w": entry(shape=(-2,))}, bytes(8)),
    "two negative sizes": with_header({"w": entry(shape=(-2, -1))}, bytes(8)),
    "float shape": with_header({"w": entry(shape=(2.0,))}, bytes(8)),
    "bool shape": with_header({"w": entry("U8", (True,), (0, 1))}, bytes(1)),
    "shape is a number": with_header({"w": entry(shape=2)}, bytes(8)),
    "too many axes": with_header({"w": entry(shape=(1,) * 65, offsets=(0, 4))}, bytes(4)),
    "huge array": with_header({"w": entry("U8", (HUGE,), (0, HUGE))}, bytes(8)),
    "huge sizes times zero": with_header({"w": entry("F64", (0, HUGE, HUGE), (0, 0))}),
    "negative offset": with_header({"w": entry(offsets=(-8, 0))}, bytes(8)),
    "offsets backwards": with_header({"w": entry(offsets=(8, 0))}, bytes(8)),
    "one offset": with_header({"w": entry(offsets=(0,))}, bytes(8)),
    "overlap": with_header({"v": entry(), "w": entry(offsets=(4, 12))}, bytes(12)),
    "the same bytes": with_header({"v": entry(), "w": entry()}, bytes(8)),
    "a hole": with_header({"v": entry(), "w": entry(offsets=(12, 20))}, bytes(20)),
    "behind the end": with_header({"w": entry(offsets=(800, 808))}, bytes(8)),
    "metadata is a list": with_header({"__metadata__": [1]}),
    "metadata has numbers": with_header({"__metadata__": {"a": 1}}),
    "a structure without a checksum": with_header({"__metadata__": {"lucid.structure": "[]"}}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_at_once(name, path):
    path.write_bytes(HOSTILE[name])
    start = time.perf_counter()
    with pytest.raises(FileFormatError, match=r"load: .*state\.safetensors"):
        lucid.load(path)
    assert time.perf_counter() - start < 5


STRUCTURES = [
    "", "3", "[]", '["tensor"]', '["tensor","absent"]', '["tensor",["w"]]', '["dict",3]',
    '["dict",[["a"]]]', '["value",[1]]', '["value",{}]', '["code","import os"]', '["float","x"]',
    '["complex",["1"]]', '["complex tensor","w"]', '["dict",[[["a",[]],["value",1]]]]',
    '["list",' * 5000 + '["value",1]' + "]" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda s: s[:30])
def test_a_forged_structure_with_a_right_checksum_is_refused(structure):
    """A checksum guards against damage; who makes a file can make the checksum too."""
    from lucid.saving.format import write_tensors

    file = io.BytesIO()
    write_tensors(file, {"w": np.zeros(3, "float32")}, structure)
    file.seek(0)
    with pytest.raises(FileFormatError):
        lucid.load(file)


# What cannot be saved


class Thing:
    pass


def circle():
    x = []
    x.append(x)
    return x


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ({"a": {"b": Thing()}}, "Thing at a.b"),
        (lambda x: x, "function"),
        ({"a": {1, 2}}, "set at a"),
        (b"bytes", "bytes"),
        ({1.5: 2}, "key 1.5"),
        ({None: 2}, "key None"),
        (np.array(["text"]), "dtype <U4"),
        (np.array([object()]), "dtype object"),
        (np.zeros(2, "longdouble"), "dtype"),
        (circle(), "too deeply"),
        (lucid.optim.SGD([lucid.ones(1)]), "save its state_dict()"),
        (lucid.nn.Linear(1, 1), "save its state_dict()"),
        (lucid.Generator(), "save its get_state()"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_what_cannot_be_saved_is_told_and_the_old_file_stays(value, part, path):
    lucid.save({"old": 1}, path)
    with pytest.raises(ArgumentError, match=r"save: ") as caught:
        lucid.save(value, path)
    assert part in str(caught.value)
    assert lucid.load(path) == {"old": 1} and os.listdir(path.parent) == [path.name]


def test_neither_path_nor_file_is_told():
    with pytest.raises(ArgumentError, match="neither a path nor a file"):
        lucid.save({}, 3)
    with pytest.raises(ArgumentError, match="neither a path nor a file"):
        lucid.load(3.5)


def test_an_absent_file_or_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.safetensors"):
        lucid.load(tmp_path / "absent.safetensors")
    with pytest.raises(FileNotFoundError, match=r"folder/w'"):
        lucid.save({}, tmp_path / "folder" / "w")


# Whole or not at all


def in_child(function):
    """The exit code of a forked process that runs a function."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = function()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_full_disk_leaves_the_old_file_and_no_draft(path):
    lucid.save({"old": 1}, path)

    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        try:
            lucid.save({"w": lucid.zeros(100_000)}, path)
        except OSError as error:
            return 0 if error.filename == str(path) else 2
        return 3

    assert in_child(fill) == 0
    assert lucid.load(path) == {"old": 1} and os.listdir(path.parent) == [path.name]


def test_an_unwritable_folder_is_an_error_and_leaves_the_old_file(path):
    lucid.save({"old": 1}, path)
    path.parent.chmod(0o555)

    def forbidden():
        if os.geteuid() == 0:
            os.setuid(65534)
        try:
            lucid.save({"new": 2}, path)
        except PermissionError:
            return 0
        return 3

    assert in_child(forbidden) == 0
    path.parent.chmod(0o755)
    assert lucid.load(path) == {"old": 1}


def test_an_interrupted_write_leaves_the_old_file(path, monkeypatch):
    lucid.save({"old": 1}, path)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lucid.save({"new": 2}, path)
    assert lucid.load(path) == {"old": 1} and os.listdir(path.parent) == [path.name]


def test_permissions_and_links_of_the_old_file_stay(path, tmp_path):
    lucid.save({"old": 1}, path)
    path.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(path)
    lucid.save({"new": 2}, link)
    assert link.is_symlink() and lucid.load(path) == {"new": 2}
    assert path.stat().st_mode & 0o777 == 0o640


def save_for_ever(path, version, started):
    os.write(started, b"!")
    while True:
        version += 1
        lucid.save({"version": version, "w": lucid.full((300_000,), float(version))}, path)


def test_kills_at_any_moment_leave_the_old_file_or_the_new_one(path, request):
    kills, wait = request.config.getoption("--kills"), random.Random(0)
    begin = time.perf_counter()
    lucid.save({"version": 0, "w": lucid.zeros(300_000)}, path)
    usual = time.perf_counter() - begin
    last, drafts, done = 0, 0, 0
    while done < kills or not (last and drafts):  # something was saved, and something interrupted
        done += 1
        assert done < 20 * kills
        hear, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                save_for_ever(path, last, tell)
            finally:
                os._exit(1)
        os.close(tell)
        assert os.read(hear, 1) == b"!"
        os.close(hear)
        time.sleep(wait.uniform(0.0, (3 + done / kills) * usual))  # a busy machine needs longer
        os.kill(pid, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        found = lucid.load(path)
        assert found["version"] >= last
        assert bool((found["w"] == float(found["version"])).all())
        last = found["version"]
        drafts += len(os.listdir(path.parent)) > 1
    lucid.save({"version": -1}, path)
    assert os.listdir(path.parent) == [path.name]


# A training that goes on


def training():
    model = lucid.nn.Sequential(
        lucid.nn.Linear(4, 8), lucid.nn.ReLU(), lucid.nn.Dropout(0.5), lucid.nn.Linear(8, 1)
    )
    optimizer = lucid.optim.AdamW(model.parameters(), lr=0.01)
    schedule = lucid.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)

    def step():
        x = lucid.randn(16, 4)
        optimizer.zero_grad()
        loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
        loss.backward()
        optimizer.step()
        schedule.step()
        return loss

    return {"model": model, "optimizer": optimizer, "schedule": schedule}, step


@pytest.mark.parametrize("compiled", [False, True])
def test_a_training_goes_on_bitwise_where_it_was_saved(compiled, path):
    lucid.manual_seed(3)
    parts, step = training()
    run = lucid.jit(step) if compiled else step
    for _ in range(5):
        run()
    states = {name: part.state_dict() for name, part in parts.items()}
    lucid.save({**states, "random": lucid.random.get_rng_state()}, path)
    expected = [run().item() for _ in range(8)]
    lucid.manual_seed(99)
    parts, step = training()
    run = lucid.jit(step) if compiled else step
    for _ in range(2):
        run()
    state = lucid.load(path)
    for name, part in parts.items():
        part.load_state_dict(state[name])
    lucid.random.set_rng_state(state["random"])
    assert [run().item() for _ in range(8)] == expected


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    import stat
    import threading

    path, found = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: found.append(lucid.load(path)))
    reader.start()
    lucid.save({"epoch": 3}, path)
    reader.join(10)
    assert found == [{"epoch": 3}] and stat.S_ISFIFO(path.stat().st_mode)


def test_bfloat16_of_other_programs_is_read_as_float32(tmp_path):
    values = np.array([1.0, -2.5, 3.140625, np.inf, 0.0, 1e-40], np.float32)
    halves = (values.view(np.uint32) >> 16).astype("<u2")
    empty = {"dtype": "BF16", "shape": [0, 3], "data_offsets": [12, 12]}
    header = {"w": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, "e": empty}
    text = json.dumps(header).encode()
    path = tmp_path / "other.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + halves.tobytes())
    found = lucid.load(path, map_location="cpu", weights_only=True)
    assert found["w"].dtype == lucid.float32 and found["e"].shape == (0, 3)
    expected = (halves.astype(np.uint32) << 16).view(np.float32).reshape(2, 3)
    np.testing.assert_array_equal(found["w"], expected)
    assert found["w"][0].tolist() == [1.0, -2.5, 3.140625]


RESTARTED = """
import os, sys
os.getpid = lambda: 1
import lucid
if sys.argv[2] == "killed":
    os.fsync = lambda _: os._exit(9)
lucid.save({"w": lucid.ones(2)}, sys.argv[1])
"""


def test_a_restarted_container_can_save_with_the_number_of_the_killed_process(path):
    for how in ("killed", "killed", "whole"):
        subprocess.run([sys.executable, "-c", RESTARTED, str(path), how], check=how == "whole")
    assert lucid.load(path)["w"].tolist() == [1.0, 1.0]


def test_old_drafts_are_removed_whoever_has_their_number_now(path):
    names = {age: path.with_name(f".{path.name}.{os.getpid()}.{age}.draft") for age in (0, 7200)}
    for age, draft in names.items():
        draft.write_bytes(b"part")
        os.utime(draft, (time.time() - age,) * 2)
    lucid.save({"w": 1}, path)
    assert sorted(os.listdir(path.parent)) == sorted([names[0].name, path.name])
