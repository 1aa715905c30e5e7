"""The Numba backend gives what the interpreter gives, from the listings that people read.

By default a sample of the compiler's cases is tried: every 16th of every family, in float32, ten
random programs, and four of the campaign's. LUCID_TEST_ALL=1 tries all cases in both precisions,
200 random programs and 100 of the campaign's; LUCID_BACKEND=numba runs any other test on it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import lucid
from lucid.compiler.backends.selection import Backend, current, using
from lucid.compiler.compile import compile_graph
from lucid.compiler.inspect.stages import kernels_of_graph
from lucid.compiler.runtime import cache, kernel_table
from lucid.errors import ArgumentError, LucidError
from lucid.ir import evaluate, parse
from tests.campaign import programs, tiers
from tests.compiler import agreement, test_random_programs
from tests.compiler.test_compiled import ONE_EACH, assert_agree

ALL = os.environ.get("LUCID_TEST_ALL", "") not in ("", "0")
FAMILIES = agreement.families()
STEP = 1 if ALL else 16
DTYPES = ("float32", "float64") if ALL else ("float32",)


@pytest.fixture
def numba_backend():
    with using(Backend("numba")):
        yield


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
def test_cases_equal_interpreted_ones(family, dtype, threads, numba_backend):
    assert_agree(agreement.jobs(FAMILIES[family][::STEP], dtype), threads)


def test_large_cases_are_split_and_equal_interpreted_ones(threads, numba_backend):
    for case in ONE_EACH[:: STEP * 2]:
        assert_agree(agreement.jobs([agreement.scaled(case, 200_000)], "float32"), threads)


@pytest.mark.parametrize("part", range(20 if ALL else 1))
def test_random_programs_equal_interpreted_ones(part, numba_backend):
    test_random_programs.test_programs_that_fuse(part)


@pytest.mark.parametrize("seed", range(100 if ALL else 4))
def test_programs_of_the_campaign_equal_interpreted_ones(seed):
    program = programs.make(seed)
    arrays = program.arrays()
    f = lucid.func.value_and_grad(program.function(), tuple(range(len(arrays))))
    compiled = lucid.jit(f, backend="numba")
    for scale in (1.0, 1.0, 0.9):  # the first call records
        given = [lucid.as_tensor(x * scale) for x in arrays]
        with tiers.cold(), np.errstate(all="ignore"):
            value, gradients = f(*given)
        got, pulled = compiled(*given)
        for a, b in zip((got, *pulled), (value, *gradients), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-9, 1e-9, err_msg=program.text())


def softmax_loss(x, w):
    return lucid.softmax(x @ w, 1).log().sum()


def random(*shape, dtype="float32"):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def test_a_jitted_gradient_is_the_same_to_the_bit_by_both_backends():
    f = lucid.func.grad(softmax_loss, argnums=(0, 1))
    fast, readable = lucid.jit(f), lucid.jit(f, backend="numba")
    for n in (5, 5, 9, 64):  # the first call records, later ones run compiled code
        x, w = lucid.tensor(random(n, 8)), lucid.tensor(random(8, 33))
        for a, b in zip(fast(x, w), readable(x, w)):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_a_second_batch_size_needs_no_new_kernel(new_kernels):
    f = lucid.jit(lambda x: lucid.tanh(x * 2).sum(1), backend="numba")
    f(lucid.tensor(random(4, 6)))
    assert new_kernels
    new_kernels.clear()
    x = random(7, 5)
    for _ in range(2):
        np.testing.assert_allclose(f(lucid.tensor(x)).numpy(), np.tanh(x * 2).sum(1), rtol=1e-5)
    assert not new_kernels


def test_an_unknown_backend_is_named_with_the_known_ones():
    with pytest.raises(ArgumentError, match="'cuda' is not a backend; choose one of llvm, numba"):
        lucid.jit(lambda x: x, backend="cuda")


def test_the_backend_is_that_of_the_innermost_context():
    assert current().name == "llvm"
    with using(Backend("numba")):
        assert current().name == "numba"
        with using(None):
            assert current().name == "numba"
    assert current().name == "llvm"


def test_kernels_of_the_two_backends_are_apart_in_memory_and_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("LUCID_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(kernel_table, "_loaded", {})
    graph = lucid.ir.trace(lambda x: lucid.exp(x) * 3)(lucid.ones(5))
    compile_graph(graph)
    with using(Backend("numba")):
        compile_graph(graph)
    assert cache.info().entries == 2
    assert len({kernel.address for kernel in kernel_table._loaded.values()}) == 2


def test_an_index_out_of_bounds_is_an_error():
    f = lucid.jit(lambda x, i: x[i] * 2, backend="numba")
    x = lucid.tensor(random(5))
    f(x, lucid.tensor([0, -1]))
    np.testing.assert_array_equal(f(x, lucid.tensor([4, -5])), 2 * x.numpy()[[4, 0]])
    with pytest.raises((IndexError, LucidError), match="index 5 is out of range"):
        f(x, lucid.tensor([0, 5]))


def test_extrema_treat_nan_and_signed_zeros_as_numpy_does():
    f = lucid.jit(lambda x: (x.amax(1), x.amin(1)), backend="numba")
    x = np.array(
        [[1, np.nan, 2], [-np.inf, -3, -4], [np.inf, 0, 5], [-1e-40, -2e-40, 0]], "float32"
    )
    for _ in range(2):
        high, low = f(lucid.tensor(x))
        np.testing.assert_array_equal(high.numpy(), x.max(1))
        np.testing.assert_array_equal(low.numpy(), x.min(1))


@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "u16", "i32", "u32", "u64"])
def test_narrow_integers_wrap_around(dtype):
    text = f"""graph f(x: {dtype}[4], y: {dtype}[4]):
    %0: {dtype}[4] = mul x y
    %1: {dtype}[4] = add %0 x
    %2: bool[4] = lt %1 y
    return %1, %2"""
    graph = parse(text)
    kind = graph.inputs[0].type.dtype
    x, y = np.arange(100, 104).astype(kind), np.array([3, 200, 250, 7]).astype(kind)
    with using(Backend("numba")):
        got = compile_graph(graph)([x, y])
    with np.errstate(all="ignore"):
        for a, b in zip(got, evaluate(graph, x, y)):
            np.testing.assert_array_equal(a, b)


# Tiered eager code, warm processes, and plain Python

SCRIPT = """
import sys
import numpy as np
import lucid
from lucid.compiler.runtime import kernel_table

def loss(x):
    return (lucid.tanh(x) * x).sum()

x = lucid.tensor(np.linspace(-1, 1, 50).astype("float32"), requires_grad=True)
for _ in range(40):
    x.grad = None
    loss(x).backward()
t = np.tanh(x.detach().numpy())
np.testing.assert_allclose(x.grad.numpy(), t + (1 - t * t) * x.detach().numpy(), rtol=1e-5)
names = {slot[0] for slot in kernel_table._loaded if isinstance(slot[1], bool)}
print(names, "numba" in sys.modules)
"""


def run(script, **env):
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **env}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_hot_eager_code_is_compiled_by_it_and_a_warm_process_does_not_import_numba(tmp_path):
    env = {"LUCID_BACKEND": "numba", "LUCID_CACHE_DIR": str(tmp_path / "c"), "LUCID_VERIFY": "0"}
    assert run(SCRIPT, **env) == "{'numba'} True"
    assert run(SCRIPT, **env) == "{'numba'} False"


STEPPED = """
import sys
import numpy as np
import lucid

lines = set()
def trace(frame, event, arg):
    if frame.f_code.co_filename.startswith("<lucid kernel"):
        lines.add(frame.f_lineno)
    return trace

f = lucid.jit(lambda x, i: (lucid.softmax(x, 1)[i].sum(), (x * x).sum()), backend="numba")
x = np.random.default_rng(0).standard_normal((40, 300)).astype("float32")
i = lucid.tensor([3, -1])
f(lucid.tensor(x), i)
sys.settrace(trace)
a, b = f(lucid.tensor(x), i)
sys.settrace(None)
e = np.exp(x - x.max(1, keepdims=True))
np.testing.assert_allclose(a.item(), (e / e.sum(1, keepdims=True))[[3, -1]].sum(), rtol=1e-5)
np.testing.assert_allclose(b.item(), (x * x).sum(), rtol=1e-4)
print(len(lines) > 10)
kernel = f.kernels(lucid.tensor(x), i)[0]
lines = kernel.listing.splitlines()
text = "\\n".join([lines[0], "    raise ValueError('stop here')", *lines[1:]])
try:
    kernel.replace(text)
except ValueError as error:
    print(error)
"""


def test_without_jit_kernels_are_python_that_can_be_traced():
    shown = run(STEPPED, NUMBA_DISABLE_JIT="1", LUCID_VERIFY="0").splitlines()
    assert shown[0] == "True"
    assert shown[1] == "stop here"


# Replacing a kernel's text


def test_a_replaced_kernel_runs_and_keeps_its_arguments():
    f = lucid.jit(lambda x: (x * 2.0).sum(1))
    x = random(6, 5)
    (kernel,) = f.kernels(lucid.tensor(x))
    text = kernel.listing.replace("range(n1)", "range(n1 - 1, -1, -1)")
    result = kernel.replace(text)
    assert result.agrees and "agrees" in repr(result)
    for n in (6, 3):
        y = random(n, 5)
        np.testing.assert_allclose(f(lucid.tensor(y)).numpy(), (y * 2).sum(1), rtol=1e-5)
        assert f.kernels(lucid.tensor(y))[0].listing == text
    assert f.backend.name == "numba"


def test_a_replacement_with_other_results_is_refused_unless_forced():
    f = lucid.jit(lambda x: x * 2.0)
    x = lucid.ones(4)
    (kernel,) = f.kernels(x)
    wrong = kernel.listing.replace("* c0", "* c0 + f32(1)")
    with pytest.raises(ArgumentError, match=r"differs, largest difference 0\.5"):
        kernel.replace(wrong)
    np.testing.assert_array_equal(f(x).numpy(), np.full(4, 2.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LUCID_VERIFY", "0")
        assert not kernel.replace(wrong, force=True).agrees
        f(x)  # records
        np.testing.assert_array_equal(f(x).numpy(), np.full(4, 3.0))


def test_a_replacement_must_have_the_same_parameters():
    f = lucid.jit(lambda x: x * 2.0)
    (kernel,) = f.kernels(lucid.ones(4))
    with pytest.raises(ArgumentError, match=r"they must be \(b0, b1, n0, c0, lo, hi\)"):
        kernel.replace("def kernel(b0, b1):\n    pass")
    with pytest.raises(ArgumentError, match="one function `kernel`"):
        kernel.replace("x = 1")


def test_an_editor_may_change_a_kernel(monkeypatch, tmp_path):
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import sys; p = sys.argv[1]; t = open(p).read(); "
        "open(p, 'w').write(t.replace('* c0', '* c0 * f32(1)'))"
    )
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor}")
    f = lucid.jit(lambda x: x * 2.0)
    assert f.kernels(lucid.ones(4))[0].edit().agrees
    assert "f32(1)" in f.kernels(lucid.ones(4))[0].listing


def test_the_llvm_text_of_a_kernel_is_that_of_its_backend():
    graph = lucid.ir.trace(lambda x: lucid.exp(x) * 3)(lucid.ones(5))
    (fast,) = kernels_of_graph(graph)
    with using(Backend("numba")):
        (readable,) = kernels_of_graph(graph)
    assert fast.listing == readable.listing
    assert "_ZN" in readable.llvm and "_ZN" not in fast.llvm


def test_scalar_functions_vectorize_in_the_code_of_users():
    import numba

    exp, hypot = lucid.extend.numba_scalar("exp"), lucid.extend.numba_scalar("hypot")

    @numba.njit(error_model="numpy")
    def fill(x, y):
        for i in range(x.size):
            y[i] = exp(x[i])

    @numba.njit
    def length(a, b):
        return hypot(a, b)

    for dtype in ("float32", "float64"):
        x = np.linspace(-3, 3, 1000).astype(dtype)
        y = np.empty_like(x)
        fill(x, y)
        np.testing.assert_array_max_ulp(y, np.exp(x.astype("float64")).astype(dtype), 2)
    assert re.search(r"<\d+ x float>", "".join(fill.inspect_llvm().values()))
    assert length(3.0, 4.0) == 5.0
    with pytest.raises(ArgumentError, match="no scalar 'exq'"):
        lucid.extend.numba_scalar("exq")
