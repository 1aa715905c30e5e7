"""The scalars against NumPy and SciPy in float64, and against mpmath: every value within its bound.

`LUCID_SCALAR_STRIDE=1` sweeps all 2**32 float32 patterns instead of every 4099th.
"""

import ctypes
import math
import os
import re
import struct

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest

import lucid
from lucid.compiler.kernels import scalars
from lucid.compiler.kernels.scalars import bitcode, lookup, symbol, table
from lucid.compiler.kernels.scalars.language import assemble, select
from tests.collect import collected
from tests.compiler.kernels.scalar_loops import Loops

STRIDE = int(os.environ.get("LUCID_SCALAR_STRIDE", "4099"))
DTYPES = ("f4", "f8")
UNARY = [name for name in table if table[name].arity == 1]
BINARY = [name for name in table if table[name].arity == 2]
KEYS = [(name, dtype) for name in table for dtype in DTYPES]
INF, NAN = math.inf, math.nan
HALF_PI = math.pi / 2

# Where SciPy is no source at the last bits of float64.
COARSE = {
    "erfc", "erfinv", "lgamma", "digamma", "sigmoid", "erfcx", "ndtr", "log_ndtr", "i0", "i1",
    "i0e", "i1e",
}  # fmt: skip
# Left of 0, the error counts in ulps of the larger term of the reflection formula, or of 1.
REFLECTED = {"lgamma", "digamma"}
REFLECTED_ULPS = 8

EXACT = {
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "log10": lambda x: mpmath.log(x) / mpmath.log(10),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "pow": mpmath.power,
    "logaddexp": lambda x, y: max(x, y) + mpmath.log1p(mpmath.exp(-abs(x - y))),
    "lgamma": lambda x: mpmath.re(mpmath.loggamma(x)),
    "erfcx": lambda x: scaled_erfc(x) if x > 0 else mpmath.exp(x * x) * mpmath.erfc(x),
    "ndtr": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "log_ndtr": lambda x: mpmath.log1p(-mpmath.erfc(x / mpmath.sqrt(2)) / 2) if x > 0 else
        mpmath.log(scaled_erfc(-x / mpmath.sqrt(2)) / 2) - x * x / 2,
    "entr": lambda x: -x * mpmath.log(x),
    "i0": lambda x: mpmath.besseli(0, x),
    "i1": lambda x: mpmath.besseli(1, x),
    "i0e": lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(0, x),
    "i1e": lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(1, x),
    "xlog1py": lambda x, y: x * mpmath.log1p(y),
}  # fmt: skip


for more in collected("SCALAR_EXACT"):
    EXACT |= more


def scaled_erfc(x):
    """e**(x**2) erfc(x) for x >= 0, of any size."""
    if x < 1e3:
        with mpmath.extraprec(int(3 * x * x) + 50 if x < 20 else 1300):
            return +(mpmath.exp(x * x) * mpmath.erfc(x))
    return (1 - 1 / (2 * x**2) + 3 / (4 * x**4) - 15 / (8 * x**6)) / (x * mpmath.sqrt(mpmath.pi))


@pytest.fixture(scope="session")
def loops():
    return Loops(KEYS)


def reference(name, *arrays):
    with np.errstate(all="ignore"):
        y = table[name].reference(*(a.astype("f8") for a in arrays))
    if name == "lgamma":  # SciPy gives -inf at -inf, C gives inf
        y = np.where(arrays[0] == -INF, INF, y)
    return y


def ulp(y, dtype):
    """The distance between the numbers of dtype around y, as float64."""
    info = np.finfo(dtype)
    with np.errstate(all="ignore"):
        y = np.clip(np.abs(y), float(info.tiny), float(info.max)).astype(dtype)
    below = np.where(y == info.max, np.nextafter(y, np.array(0, dtype)), y)
    return np.spacing(below).astype("f8")


def errors(got, want, dtype, scale=None):
    """|got - want| in ulps of dtype; inf where one is nan or infinite and the other is not."""
    with np.errstate(all="ignore"):
        rounded = want.astype(dtype)
        distance = np.abs(got.astype("f8") - want) / ulp(want if scale is None else scale, dtype)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return np.where(same, 0, np.where(np.isnan(distance), INF, distance))


def larger_term(name, arrays, want):
    """What the error is measured by where a formula adds terms that may cancel, else the value."""
    with np.errstate(all="ignore"):
        x = arrays[0].astype("f8")
        if name == "logaddexp":
            larger = np.maximum(x, arrays[1])
            return np.fmax(np.fmax(np.abs(larger), np.abs(want - larger)), np.abs(want))
        if name in REFLECTED:
            one = reference(name, 1 - x)
            other = want + one if name == "lgamma" else one - want
            return np.where(x < 0, np.fmax(np.fmax(np.abs(one), np.abs(other)), 1), want)
    return want


def check(name, dtype, got, want, arrays, bound):
    scale = larger_term(name, arrays, want)
    if name in REFLECTED:
        bound = np.where(arrays[0] < 0, REFLECTED_ULPS, bound)
    error = errors(got, want, dtype, scale)
    worst = np.argmax(error - bound)
    point = ", ".join(repr(a[worst].item()) for a in arrays)
    assert np.all(error <= bound), (
        f"{name}({point}) at {dtype} gave {got[worst].item()!r}, not {want[worst].item()!r}: "
        f"{error[worst]:.2f} ulp"
    )


def sample_f8(rng, count):
    """Random bit patterns, and the ranges where functions bend, overflow and underflow."""
    patterns = rng.integers(-(2**63), 2**63 - 1, count, dtype="i8", endpoint=True).view("f8")
    ranges = [rng.standard_normal(count // 4) * size for size in (1e-3, 0.1, 1, 10, 300, 1e5)]
    near_one = 1 + rng.standard_normal(count // 4) * 10.0 ** rng.uniform(-12, 0, count // 4)
    edges = [sign * edge + rng.standard_normal(count // 20) * 1e-3 * edge
             for edge in (1e-310, 2.0**-1022, 708.4, 709.78, 745.13, 1022.0, 1074.0, 26.5, 2.0**30)
             for sign in (1, -1)]  # fmt: skip
    return np.concatenate([patterns, *ranges, near_one, -near_one, *edges])


@pytest.mark.parametrize("name", UNARY)
def test_every_float32_is_within_the_bound(name, loops):
    chunk = STRIDE << 22
    for start in range(-(2**31), 2**31, chunk):
        stop = min(start + chunk, 2**31)
        x = np.arange(start, stop, STRIDE, dtype="i8").astype("i4").view("f4")
        got = loops[name, "f4"](np.empty_like(x), x)
        check(name, "f4", got, reference(name, x), [x], table[name].ulps)


@pytest.mark.parametrize("name", BINARY)
def test_pairs_of_float32_are_within_the_bound(name, loops):
    rng = np.random.default_rng(0)
    patterns = rng.integers(-(2**31), 2**31, (2, 300_000)).astype("i4").view("f4")
    ordinary = rng.standard_normal((2, 300_000)).astype("f4") * np.float32(8)
    powers = np.exp(rng.uniform(-80, 80, 300_000)), rng.uniform(-3, 3, 300_000)
    for x, y in (patterns, ordinary, np.abs(ordinary), np.array(powers, "f4")):
        got = loops[name, "f4"](np.empty_like(x), x, y)
        check(name, "f4", got, reference(name, x, y), [x, y], table[name].ulps)


@pytest.mark.parametrize("name", [name for name in table if name not in COARSE])
def test_float64_agrees_with_numpy_to_a_few_ulps(name, loops):
    rng = np.random.default_rng(1)
    arrays = [sample_f8(rng, 100_000) for _ in range(table[name].arity)]
    got = loops[name, "f8"](np.empty_like(arrays[0]), *arrays)
    margin = 4  # what NumPy's own vector functions allow themselves
    check(name, "f8", got, reference(name, *arrays), arrays, table[name].ulps + margin)


def exact_error(name, got, point):
    """The error of a float64 in ulps of the exact value, or of the larger term of its formula."""
    function = EXACT.get(name) or getattr(mpmath, name)
    x = [mpmath.mpf(float(v)) for v in point]
    want = function(*x)
    scale = want
    if name in REFLECTED and point[0] < 0:
        one = function(1 - x[0])
        scale = max(1, abs(one), abs(want + one if name == "lgamma" else one - want))
    if name == "logaddexp":
        scale = max(abs(max(x)), abs(want - max(x)), abs(want))
    unit = ulp(np.array(float(scale)), "f8").item()
    got = mpmath.mpf(float(got)) if math.isfinite(got) else mpmath.ldexp(np.sign(got), 1024)
    return float(min(abs(got - want) / unit, 1e30)), want


def in_domain(name, point):
    if not all(math.isfinite(v) for v in point):
        return False
    x = point[0]
    match name:
        case "log" | "log2" | "log10" | "sqrt" | "rsqrt":
            return x > 0
        case "pow":
            return x > 0 and x != 1 and abs(math.log(x) * float(point[1])) < 1e5
        case "log1p":
            return x > -1
        case "logaddexp":
            return abs(x) < 1e5 and abs(point[1]) < 1e5
        case "entr":
            return x > 0
        case "i0" | "i1" | "i0e" | "i1e":
            return abs(x) < 1e4
        case "erfcx" | "ndtr":
            return abs(x) < 1e4 if x < 0 else x < 1e150
        case "log_ndtr":
            return -1e150 < x < 30
        case "xlog1py":
            return point[1] > -1
        case "asin" | "acos" | "erfinv":
            return abs(x) < 1
        case "atanh":
            return abs(x) < 1
        case "acosh":
            return x >= 1
        case "exp" | "exp2" | "expm1" | "sinh" | "cosh" | "sigmoid" | "tanh" | "erf" | "erfc":
            return abs(x) < 1e4
        case "lgamma" | "digamma":
            return x > 0 or (x != round(x) and x > -1e3)
    return True


@pytest.mark.parametrize("name", list(table))
def test_float64_is_within_the_bound_of_the_exact_value(name, loops):
    rng = np.random.default_rng(2)
    arrays = [rng.permutation(sample_f8(rng, 1000)) for _ in range(table[name].arity)]
    if name in ("asin", "acos", "atanh", "erfinv"):
        arrays[0][::2] = np.tanh(arrays[0][::2])
    got = loops[name, "f8"](np.empty_like(arrays[0]), *arrays)
    points = [p for p in zip(got, *arrays, strict=True) if in_domain(name, p[1:])][:300]
    assert len(points) >= 100
    with mpmath.workprec(120):
        for y, *point in points:
            bound = REFLECTED_ULPS if name in REFLECTED and point[0] < 0 else table[name].ulps
            error, want = exact_error(name, y, point)
            beyond = math.isinf(y) and abs(want) >= (2 - 2.0**-53) * mpmath.mpf(2) ** 1023
            assert beyond or error <= bound, (name, point, y, want, error)


# point:value, with the signs of zero
SPECIAL = {
    "exp": "0:1 -0:1 inf:inf -inf:0 nan:nan",
    "exp2": "0:1 -0:1 3:8 -3:0.125 inf:inf -inf:0 nan:nan",
    "expm1": "0:0 -0:-0 inf:inf -inf:-1 nan:nan",
    "sigmoid": "0:0.5 -0:0.5 inf:1 -inf:0 nan:nan",
    "log": "1:0 0:-inf -0:-inf inf:inf -1:nan -inf:nan nan:nan",
    "log2": "1:0 8:3 0.0625:-4 0:-inf -0:-inf inf:inf -1:nan -inf:nan nan:nan",
    "log10": "1:0 0:-inf -0:-inf inf:inf -1:nan -inf:nan nan:nan",
    "log1p": "0:0 -0:-0 -1:-inf inf:inf -2:nan -inf:nan nan:nan",
    "sqrt": "0:0 -0:-0 4:2 inf:inf -1:nan -inf:nan nan:nan",
    "rsqrt": "0:inf -0:-inf 4:0.5 inf:0 -1:nan -inf:nan nan:nan",
    "cbrt": "0:0 -0:-0 27:3 -8:-2 inf:inf -inf:-inf nan:nan",
    "sin": "0:0 -0:-0 inf:nan -inf:nan nan:nan",
    "cos": "0:1 -0:1 inf:nan -inf:nan nan:nan",
    "tan": "0:0 -0:-0 inf:nan -inf:nan nan:nan",
    "asin": f"0:0 -0:-0 1:{HALF_PI} -1:-{HALF_PI} 1.5:nan -inf:nan nan:nan",
    "acos": f"1:0 0:{HALF_PI} -1:{math.pi} 1.5:nan -1.5:nan inf:nan nan:nan",
    "atan": f"0:0 -0:-0 inf:{HALF_PI} -inf:-{HALF_PI} nan:nan",
    "tanh": "0:0 -0:-0 inf:1 -inf:-1 100:1 nan:nan",
    "sinh": "0:0 -0:-0 inf:inf -inf:-inf 1000:inf -1000:-inf nan:nan",
    "cosh": "0:1 -0:1 inf:inf -inf:inf 1000:inf -1000:inf nan:nan",
    "asinh": "0:0 -0:-0 inf:inf -inf:-inf nan:nan",
    "acosh": "1:0 0.5:nan 0:nan -2:nan -inf:nan inf:inf nan:nan",
    "atanh": "0:0 -0:-0 1:inf -1:-inf 1.5:nan -1.5:nan inf:nan nan:nan",
    "erf": "0:0 -0:-0 inf:1 -inf:-1 nan:nan",
    "erfc": "0:1 -0:1 inf:0 -inf:2 30:0 -30:2 nan:nan",
    "erfinv": "0:0 -0:-0 1:inf -1:-inf 1.5:nan -inf:nan nan:nan",
    "lgamma": "1:0 2:0 0:inf -0:inf -3:inf -1e30:inf inf:inf -inf:inf nan:nan",
    "digamma": "0:-inf -0:inf -3:nan -1e30:nan inf:inf -inf:nan nan:nan",
    "erfcx": "0:1 -0:1 inf:0 -inf:inf -30:inf nan:nan",
    "ndtr": "0:0.5 -0:0.5 inf:1 -inf:0 50:1 -50:0 nan:nan",
    "log_ndtr": "inf:-0 -inf:-inf 50:-0 nan:nan",
    "entr": "0:0 -0:0 1:-0 -1:-inf inf:-inf -inf:-inf nan:nan",
    "i0": "0:1 -0:1 inf:inf -inf:inf 800:inf -800:inf nan:nan",
    "i1": "0:0 -0:-0 inf:inf -inf:-inf 800:inf -800:-inf nan:nan",
    "i0e": "0:1 -0:1 inf:0 -inf:0 nan:nan",
    "i1e": "0:0 -0:-0 inf:0 -inf:-0 nan:nan",
}
for more in collected("SCALAR_SPECIAL"):
    SPECIAL |= more


def assert_same(got, want, message):
    nan = math.isnan(want)
    same = math.isnan(got) if nan else got == want
    assert same and (nan or math.copysign(1, got) == math.copysign(1, want)), (message, got, want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_special_values_are_exact(name, dtype, loops):
    pairs = [pair.split(":") for pair in SPECIAL[name].split()]
    x, expected = (
        np.array([float(part) for part in column], dtype) for column in zip(*pairs, strict=True)
    )
    # Twice: the vector body and the scalar remainder of a loop are different code.
    for repeat in (1, 64):
        many = np.repeat(x, repeat)
        got = loops[name, dtype](np.empty_like(many), many)[::repeat]
        for point, y, want in zip(x, got, expected, strict=True):
            assert_same(y, want, f"{name}({point})")


@pytest.mark.parametrize("dtype", DTYPES)
def test_odd_functions_are_odd_to_the_last_bit(dtype, loops):
    x = np.exp(np.random.default_rng(3).uniform(-80, 80, 4096)).astype(dtype)
    for name in ("sin", "tan", "asin", "atan", "tanh", "sinh", "asinh", "atanh", "erf", "erfinv"):
        function = loops[name, dtype]
        plus, minus = function(np.empty_like(x), x), function(np.empty_like(x), -x)
        np.testing.assert_array_equal(plus, -minus, err_msg=name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_special_pairs_follow_ieee(name, dtype, loops):
    finite = [0.0, 0.5, 1, 1.5, 2, 3, 7, 1e-42, 1e-30, 1e30, 3e38, 2.0**24 - 1, 2.0**24]
    values = [*finite, *(-v for v in finite), INF, -INF, NAN]
    x, y = (np.ascontiguousarray(a.ravel()) for a in np.meshgrid(*[np.array(values, dtype)] * 2))
    got = loops[name, dtype](np.empty_like(x), x, y)
    want = reference(name, x, y)
    check(name, dtype, got, want, [x, y], table[name].ulps)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])


def test_pow_is_one_for_exponent_zero_and_base_one(loops):
    x = np.array([NAN, INF, -INF, 0.0, -0.0, -2.0, 1.0, 1.0, 1.0, -1.0, -1.0])
    y = np.array([0.0, -0.0, 0.0, 0.0, -0.0, 0.0, NAN, INF, -INF, INF, -INF])
    for dtype in DTYPES:
        a, b = x.astype(dtype), y.astype(dtype)
        np.testing.assert_array_equal(loops["pow", dtype](np.empty_like(a), a, b), 1)


@pytest.mark.parametrize("cpu", [None, "haswell", "x86-64-v4"])
def test_every_loop_is_vectorised(cpu, loops):
    if cpu and llvm.get_process_triple().split("-")[0] != "x86_64":
        pytest.skip("names a CPU of another architecture")
    text = (Loops(KEYS, cpu) if cpu else loops).llvm
    bodies = dict(re.findall(r"define void @loop_(\w+)\(.*?\{\n(.*?)\n\}", text, re.DOTALL))
    for name, dtype in KEYS:
        vector = "float" if dtype == "f4" else "double"
        body = bodies[symbol(name, dtype)]
        assert re.search(rf"store <\d+ x {vector}>", body), (name, dtype, cpu)


LOOP = """
declare float @lucid_exp_f4(float)
define void @exp_all(ptr noalias %out, ptr noalias %in, i64 %n) {
entry:
  br label %body
body:
  %i = phi i64 [0, %entry], [%next, %body]
  %from = getelementptr float, ptr %in, i64 %i
  %x = load float, ptr %from
  %y = call float @lucid_exp_f4(float %x)
  %to = getelementptr float, ptr %out, i64 %i
  store float %y, ptr %to
  %next = add nuw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %body, label %exit
exit:
  ret void
}
"""


def test_a_module_of_llvmlite_alone_links_and_vectorises_a_scalar():
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
    module = llvm.parse_assembly(LOOP)
    module.link_in(llvm.parse_assembly(bitcode("exp", "f4")))
    options = llvm.create_pipeline_tuning_options(3)
    options.loop_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    assert re.search(r"call <\d+ x float> @llvm.fma.v\d+f32", str(module))
    assert "@lucid_exp_f4" not in str(module)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    pointers = [ctypes.c_void_p] * 2 + [ctypes.c_int64]
    function = ctypes.CFUNCTYPE(None, *pointers)(engine.get_function_address("exp_all"))
    x = np.linspace(-100, 90, 1001, dtype="f4")
    out = np.empty_like(x)
    function(out.ctypes.data, x.ctypes.data, x.size)
    check("exp", "f4", out, reference("exp", x), [x], 2)


@pytest.mark.parametrize("key", KEYS, ids="-".join)
def test_the_text_of_a_scalar_calls_nothing_but_intrinsics(key):
    text = bitcode(*key)
    assert set(re.findall(r"declare .*? @([a-z]+)\.", text)) <= {"llvm"}
    type = {"f4": "float", "f8": "double"}[key[1]]
    parameters = ", ".join(f"{type} %x{i}" for i in range(table[key[0]].arity))
    assert f"define linkonce_odr hidden {type} @{symbol(*key)}({parameters}) alwaysinline" in text
    assert text == assemble(symbol(*key), table[key[0]].body, key[1], table[key[0]].arity)


@pytest.mark.parametrize("name", ["tanh", "sin", "pow"])
def test_numba_calls_a_scalar(name):
    numba = pytest.importorskip("numba")
    function, count = lookup(name, "f4"), table[name].arity

    @numba.njit(error_model="numpy")
    def one(out, x):
        for i in range(x.size):
            out[i] = function(x[i])

    @numba.njit(error_model="numpy")
    def two(out, x):
        for i in range(x.size):
            out[i] = function(x[i], x[i])

    x = np.linspace(0.1, 1e6 if count == 1 else 20, 1000, dtype="f4")
    out = np.empty_like(x)
    (one if count == 1 else two)(out, x)
    check(name, "f4", out, reference(name, *[x] * count), [x] * count, table[name].ulps)


def test_the_version_is_a_hash_of_the_source():
    assert re.fullmatch("[0-9a-f]{64}", scalars.VERSION)
    assert scalars.VERSION == scalars._version()


def test_a_scalar_with_a_python_branch_is_refused():
    with pytest.raises(TypeError, match="use select"):
        assemble("f", lambda x: x if x > 0 else -x, "f4", 1)


def test_literals_take_the_precision_of_the_value_they_meet():
    text = assemble("f", lambda x: select(x > 0, x * 0.1, 0), "f4", 1)
    tenth = struct.unpack("Q", struct.pack("d", np.float32(0.1)))[0]
    assert f"fmul float %x0, 0x{tenth:016X}" in text


def test_an_unknown_scalar_is_an_error_that_lists_the_known_ones():
    with pytest.raises(KeyError, match=r"no scalar .gamma. for f4.*exp.*digamma"):
        bitcode("gamma", "f4")


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_of_zero_and_minus_zero_the_second_is_taken_as_in_numpy(name):
    a, b = np.array([-0.0, 0.0, 1.0, np.nan]), np.array([0.0, -0.0, np.nan, 2.0])
    f = lucid.jit(lambda x, y: getattr(lucid, name)(x * 1.0, y))
    want = getattr(np, name)(a, b)
    for _ in range(3):
        got = f(lucid.tensor(a), lucid.tensor(b)).numpy()
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
