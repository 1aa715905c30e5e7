import errno
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime import cache, codegen
from lucid.compiler.runtime import threads as runtime
from tests.compiler import texts

KEY, CODE = cache.key(b"a kernel"), bytes(range(256)) * 20


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    """A cache of its own for each test; the runtime is loaded before."""
    runtime.native()
    path = tmp_path / "cache"
    monkeypatch.setenv("LUCID_CACHE_DIR", str(path))
    monkeypatch.setattr(cache._Counters, "has_warned", True)
    return path


def run_kernel():
    """Compile (or find) a kernel and use it: the result must be right whatever the cache does."""
    function = texts.load(texts.DOUBLE)["double"]
    b = Builder()
    b.call(function, [b.input(np.float32, (3,)), b.output(np.float32, (3,))], extent=3)
    np.testing.assert_array_equal(b.build()(np.ones(3, np.float32))[0], [2, 2, 2])


def entry(directory):
    (path,) = directory.glob("*.obj")
    return path


def test_what_was_put_is_got(directory):
    assert cache.get(KEY) is None
    assert cache.put(KEY, CODE)
    assert cache.get(KEY) == CODE
    assert directory.stat().st_mode & 0o777 == 0o700
    assert entry(directory).stat().st_mode & 0o777 == 0o600
    assert not list(directory.glob("*.tmp"))


def test_info_counts(directory):
    before = cache.info()
    cache.get(KEY)
    cache.put(KEY, CODE)
    cache.get(KEY)
    info = cache.info()
    assert (info.path, info.entries, info.problem) == (str(directory), 1, None)
    assert info.bytes == entry(directory).stat().st_size
    assert (info.hits - before.hits, info.misses - before.misses) == (1, 1)
    cache.clear()
    assert cache.info().entries == 0


def test_keys_separate_their_parts():
    keys = {cache.key(b"ab", b"c"), cache.key(b"a", b"bc"), cache.key(b"abc"), cache.key()}
    assert len(keys) == 4


def test_keys_cover_versions_flags_and_cpu(monkeypatch):
    import llvmlite

    seen = {cache.key(b"x")}
    for target, name, value in [
        (codegen, "VERSION", 999),
        (codegen, "FLAGS", "O0"),
        (llvmlite, "__version__", "0.0"),
        (cache, "_cpu", lambda: "another cpu"),
    ]:
        with monkeypatch.context() as patch:
            patch.setattr(target, name, value)
            cache.fingerprint.cache_clear()
            seen.add(cache.key(b"x"))
    cache.fingerprint.cache_clear()
    assert len(seen) == 5


def test_every_flipped_bit_is_a_miss(directory):
    cache.put(KEY, CODE[:300])
    path = entry(directory)
    good = path.read_bytes()
    for i in range(len(good)):
        damaged = bytearray(good)
        damaged[i] ^= 1 << (i % 8)
        path.write_bytes(damaged)
        assert cache.get(KEY) is None
    path.write_bytes(good)
    assert cache.get(KEY) == CODE[:300]


def test_every_truncation_is_a_miss(directory):
    cache.put(KEY, CODE[:300])
    path = entry(directory)
    good = path.read_bytes()
    for length in range(len(good)):
        path.write_bytes(good[:length])
        assert cache.get(KEY) is None
    path.write_bytes(good + b"x")
    assert cache.get(KEY) is None


def test_an_entry_under_another_key_is_a_miss(directory):
    cache.put(KEY, CODE)
    other = cache.key(b"another kernel")
    os.rename(entry(directory), directory / (other.hex() + cache.SUFFIX))
    assert cache.get(other) is None


def test_damaged_entries_are_compiled_again(directory):
    run_kernel()
    entry(directory).write_bytes(b"LUCIDOBJ but not really")
    run_kernel()
    before = cache.info().hits
    run_kernel()
    assert cache.info().hits == before + 1


def test_code_that_does_not_load_is_compiled_again(directory):
    names = texts.DOUBLE.encode()
    cache.put(cache.key(names), b"not an object file")
    run_kernel()
    assert cache.get(cache.key(names)) != b"not an object file"


def test_symbolic_links_are_not_followed(directory, tmp_path):
    cache.put(KEY, CODE)
    path = entry(directory)
    os.rename(path, tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert cache.get(KEY) is None
    assert cache.put(KEY, CODE)
    assert not path.is_symlink()
    assert cache.get(KEY) == CODE


def test_a_linked_directory_is_not_used(directory, tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    directory.symlink_to(tmp_path / "real")
    assert not cache.put(KEY, CODE)
    assert "not a directory" in cache.info().problem
    run_kernel()


def test_an_open_directory_is_not_used(directory):
    directory.mkdir()
    directory.chmod(0o755)
    assert not cache.put(KEY, CODE)
    assert "chmod 700" in cache.info().problem
    run_kernel()


@pytest.mark.parametrize("trouble", ["open", "read-only"])
def test_a_directory_that_is_not_used_warns_once(directory, monkeypatch, trouble):
    def refuse(*_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(cache._Counters, "has_warned", False)
    if trouble == "open":
        directory.mkdir()
        directory.chmod(0o755)
    else:
        cache.put(KEY, CODE)
        monkeypatch.setattr(os, "replace", refuse)
    words = "chmod 700" if trouble == "open" else "Read-only file system"
    with pytest.warns(RuntimeWarning, match=f"not used.*{words}.*LUCID_CACHE_DIR"):
        run_kernel()
    assert not cache.put(KEY, CODE)  # a second warning would be an error


def test_a_foreign_directory_is_not_used(directory, monkeypatch):
    cache.put(KEY, CODE)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert cache.get(KEY) is None
    assert not cache.put(KEY, CODE)
    assert "another user" in cache.info().problem
    run_kernel()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_foreign_entry_is_a_miss(directory):
    cache.put(KEY, CODE)
    os.chown(entry(directory), 12345, 12345)
    assert cache.get(KEY) is None


@pytest.mark.parametrize("function", ["open", "write", "fsync", "replace", "mkdir", "lstat"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_a_failing_disk_is_a_miss(directory, monkeypatch, function, error):
    run_kernel()
    code = cache.get(cache.key(texts.DOUBLE.encode()))
    if function == "mkdir":
        cache.clear()
        directory.rmdir()

    def fail(*_, **__):
        raise OSError(error, os.strerror(error))

    with monkeypatch.context() as patch:
        patch.setattr(os, function, fail)
        assert not cache.put(KEY, CODE)
        assert cache.get(KEY) is None
        run_kernel()
    assert not list(directory.glob("*.tmp"))
    assert function == "mkdir" or cache.get(cache.key(texts.DOUBLE.encode())) == code


def test_short_writes_are_finished(monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, bytes(data)[:100]))
    assert cache.put(KEY, CODE)
    assert cache.get(KEY) == CODE


def test_a_file_in_place_of_the_directory(directory):
    directory.write_text("in the way")
    assert not cache.put(KEY, CODE)
    run_kernel()


def test_the_least_recently_used_go_first(directory, monkeypatch):
    monkeypatch.setenv("LUCID_CACHE_BYTES", "60000")
    keys = [cache.key(b"%d" % i) for i in range(30)]
    for i, key in enumerate(keys):
        cache.put(key, CODE)
        os.utime(directory / (key.hex() + cache.SUFFIX), (0, time.time() - 1000 + i))
    cache.sweep()
    assert cache.info().bytes <= 60000
    kept = [cache.get(key) is not None for key in keys]
    assert kept == sorted(kept)
    assert any(kept)


def test_what_killed_processes_left_is_removed(directory):
    cache.put(KEY, CODE)
    for name, age in (("old", 3 * cache.DAY), ("new", 0)):
        path = directory / f"{name}{cache.SUFFIX}.1.1.tmp"
        path.write_bytes(b"x")
        os.utime(path, (0, time.time() - age))
    cache.sweep()
    assert sorted(path.name[:3] for path in directory.glob("*.tmp")) == ["new"]
    assert cache.get(KEY) == CODE


def test_use_is_noted_once_a_day(directory):
    cache.put(KEY, CODE)
    path = entry(directory)
    os.utime(path, (0, 0))
    cache.get(KEY)
    assert path.stat().st_mtime > time.time() - 100


WRITER = """
import os, sys
from lucid.compiler.runtime import cache
codes = [bytes([i]) * 5000 for i in range(8)]
keys = [cache.key(bytes([i])) for i in range(8)]
print("ready", flush=True)
for turn in range(int(sys.argv[1])):
    for key, code in zip(keys, codes):
        found = cache.get(key)
        assert found in (None, code), "wrong code"
        cache.put(key, code)
"""


def start_writer(turns):
    command = [sys.executable, "-c", WRITER, str(turns)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def assert_all_right():
    for i in range(8):
        assert cache.get(cache.key(bytes([i]))) in (None, bytes([i]) * 5000)


def test_eight_processes_race_on_a_cold_cache():
    writers = [start_writer(20) for _ in range(8)]
    for writer in writers:
        writer.communicate(timeout=60)
    assert [writer.returncode for writer in writers] == [0] * 8
    assert_all_right()
    assert cache.info().entries == 8


def test_killed_writers_leave_only_whole_entries():
    rng = np.random.default_rng(0)
    writer = None
    for _ in range(12):
        writer = start_writer(10**6)
        assert writer.stdout.readline() == b"ready\n"
        time.sleep(rng.uniform(0, 0.02))
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        assert_all_right()


def test_forks_killed_while_writing_leave_only_whole_entries():
    rng = np.random.default_rng(0)
    for _ in range(40):
        child = os.fork()
        if child == 0:
            while True:
                for i in range(8):
                    cache.put(cache.key(bytes([i])), bytes([i]) * 5000)
        time.sleep(rng.uniform(0, 0.005))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert_all_right()


def test_a_fifo_in_the_place_of_an_entry_is_a_miss(directory):
    cache.put(KEY, CODE)
    path = entry(directory)
    path.unlink()
    os.mkfifo(path, 0o600)
    signal.alarm(20)  # a reader of the FIFO would wait forever
    try:
        assert cache.get(KEY) is None
        assert cache.info().entries == 1
        assert cache.put(KEY, CODE) and cache.get(KEY) == CODE
    finally:
        signal.alarm(0)


@pytest.mark.parametrize("size", [1 << 20, 1 << 40])
def test_a_huge_sparse_file_in_the_place_of_an_entry_is_a_miss(directory, size):
    cache.put(KEY, CODE)
    path = entry(directory)
    os.truncate(path, 0)
    os.truncate(path, size)
    started = time.monotonic()
    assert cache.get(KEY) is None
    assert time.monotonic() - started < 5
    assert cache.put(KEY, CODE) and cache.get(KEY) == CODE


def test_an_entry_that_goes_on_is_a_miss(directory):
    cache.put(KEY, CODE)
    os.truncate(entry(directory), entry(directory).stat().st_size + (1 << 30))
    assert cache.get(KEY) is None


def test_a_relative_path_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LUCID_CACHE_DIR", "somewhere/cache")
    assert "relative path" in cache.info().problem
    assert not cache.put(KEY, CODE) and cache.get(KEY) is None
    assert not (tmp_path / "somewhere").exists()
    monkeypatch.delenv("LUCID_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "elsewhere")
    assert "relative path" in cache.info().problem
    run_kernel()
    assert not list(tmp_path.glob("elsewhere*"))
