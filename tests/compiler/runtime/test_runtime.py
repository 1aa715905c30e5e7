import concurrent.futures.thread
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime import codegen, loader
from lucid.compiler.runtime import native_kernel as kernel
from lucid.compiler.runtime import threads as runtime
from tests.compiler import texts


def unary_plan(function, n, dtype=np.float32, **options):
    b = Builder()
    x, y = b.input(dtype, (n,)), b.output(dtype, (n,))
    b.call(function, [x, y], extent=n, **options)
    return b.build()


def burn_plan(units, ns):
    """About ns nanoseconds of work in each of the units."""
    b = Builder()
    b.call(texts.load(texts.BURN)["burn"], [int(ns / 0.3)], extent=units, cost=ns)
    return b.build()


def run_script(body, **environment):
    """The output of a Python program in a process of its own."""
    script = "import numpy as np\nfrom lucid.compiler.runtime import threads as runtime\n"
    script += "from lucid.compiler.plan.plan import Builder\nfrom tests.compiler import texts\n"
    script += "from tests.compiler.runtime.test_runtime import burn_plan, unary_plan\n" + body
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# -- code --------------------------------------------------------------------------------------


def test_kernels_may_call_the_c_library():
    text = "declare double @cos(double)\n"
    text += texts.elementwise("cosine", "%y = call double @cos(double %x0)", 1, "double")
    x = np.linspace(-3, 3, 50)
    plan = unary_plan(texts.load(text)["cosine"], 50, np.float64)
    np.testing.assert_allclose(plan(x)[0], np.cos(x), rtol=1e-15)


def test_kernels_may_have_tables_and_variables():
    text = """
@table = constant [4 x float] [float 1.0, float 2.0, float 4.0, float 8.0]
@count = global i64 0
"""
    body = """%k = and i64 %i, 3
  %t = getelementptr float, ptr @table, i64 %k
  %w = load float, ptr %t
  %c = load i64, ptr @count
  %c1 = add i64 %c, 1
  store volatile i64 %c1, ptr @count
  %f = sitofp i64 %c to float
  %wx = fmul float %w, %x0
  %y = fadd float %wx, %f"""
    function = texts.load(text + texts.elementwise("weigh", body, 1))["weigh"]
    x = np.ones(6, np.float32)
    np.testing.assert_array_equal(unary_plan(function, 6)(x)[0], [1, 3, 6, 11, 5, 7])


def test_functions_of_several_texts_are_linked_and_inlined():
    scalar = "define linkonce_odr float @twice(float %x) {\n%y = fadd float %x, %x\nret float %y\n}"
    user = "declare float @twice(float)\n"
    user += texts.elementwise("use", "%y = call float @twice(float %x0)", 1)
    function = kernel.load(["use"], (user, scalar))["use"]
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(unary_plan(function, 3)(x)[0], 2 * x)
    assert "call" not in codegen.assembly(user, scalar)


def test_many_kernels_are_compiled_at_once():
    requests = []
    for i in range(6):
        text = texts.elementwise("shift", f"%y = fadd float %x0, {i}.0", 1)
        requests.append(kernel.Request(("shift",), lambda text=text: text, b"shift %d" % i))
    x = np.zeros(3, np.float32)
    for _ in range(2):
        for i, loaded in enumerate(kernel.load_all(requests)):
            assert unary_plan(loaded["shift"], 3)(x)[0].tolist() == [i, i, i]


def test_many_kernels_are_compiled_while_a_fork_holds_the_lock_of_executors():
    """A thread that forks takes it first, and then waits for those that compile."""
    text = [texts.elementwise("shift", f"%y = fadd float %x0, {i}.5", 1) for i in range(4)]
    requests = [kernel.Request(("shift",), each) for each in text]
    found = []
    thread = threading.Thread(target=lambda: found.append(kernel.load_all(requests)))
    with concurrent.futures.thread._global_shutdown_lock:
        thread.start()
        thread.join(60)
        assert found
    x = np.zeros(3, np.float32)
    values = [unary_plan(loaded["shift"], 3)(x)[0][0] for loaded in found[0]]
    assert values == [0.5, 1.5, 2.5, 3.5]


def test_an_error_in_one_of_many_kernels_is_raised_and_no_thread_goes_on():
    good = kernel.Request(("negate",), texts.NEGATE)
    before = set(threading.enumerate())
    with pytest.raises(RuntimeError, match="parsing error"):
        kernel.load_all([good, kernel.Request(("wrong",), "this is no LLVM IR"), good])
    for thread in set(threading.enumerate()) - before:
        thread.join(10)  # an error for a thread that Python only knows by its number
    assert set(threading.enumerate()) <= before


def test_loops_are_vectorised():
    assert "x float>" in codegen.optimized_ir(texts.DOUBLE)


def test_orc_loads_the_same_code(monkeypatch):
    monkeypatch.setattr(loader, "_is_native_elf", lambda: False)
    function = kernel.load(["negate"], texts.NEGATE)["negate"]
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(unary_plan(function, 5)(x)[0], -x)


def test_damaged_code_is_refused():
    code = codegen.compile_object(texts.NEGATE)
    for damaged in (b"", b"\x7fELF", code[:100], code[:-200], b"x" * 500):
        with pytest.raises(loader.LoadError):
            loader.Library(damaged, ["negate"])


def test_missing_symbols_are_named():
    text = "declare float @no_such_thing(float)\n"
    text += texts.elementwise("use", "%y = call float @no_such_thing(float %x0)", 1)
    with pytest.raises(loader.LoadError, match="no_such_thing"):
        kernel.load(["use"], text)
    with pytest.raises(loader.LoadError, match="other"):
        kernel.load(["other"], texts.NEGATE)


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_dropped_programs_leave_no_memory():
    def program(i):
        body = f"%y = fadd float %x0, {float(i)}"
        function = kernel.load(["shift"], texts.elementwise("shift", body, 1))["shift"]
        plan = unary_plan(function, 3)
        assert plan(np.ones(3, np.float32))[0][0] == i + 1

    for i in range(50):
        program(i)
    before = resident_bytes()
    for i in range(250):
        program(i)
    assert resident_bytes() - before < 10 << 20


def test_a_warm_process_imports_neither_llvm_nor_numba():
    body = """
import sys
kernels = texts.load(texts.DOUBLE)
print(unary_plan(kernels["double"], 3)(np.ones(3, np.float32))[0].tolist())
print(any(name.startswith(("llvmlite.binding", "numba")) for name in sys.modules))
"""
    run_script(body)
    assert run_script(body).split("\n") == ["[2.0, 2.0, 2.0]", "False"]


# -- threads -----------------------------------------------------------------------------------


def test_the_number_of_threads_is_settable(threads):
    threads(3)
    assert runtime.get_num_threads() == 3
    with pytest.raises(ValueError, match="expected at least 1"):
        runtime.set_num_threads(0)


def test_the_environment_sets_the_number_of_threads():
    assert run_script("print(runtime.get_num_threads())", LUCID_NUM_THREADS="5") == "5"
    body = "try: runtime.get_num_threads()\nexcept ValueError as error: print(error)"
    assert "'many': expected a positive integer" in run_script(body, LUCID_NUM_THREADS="many")


def test_results_do_not_depend_on_the_number_of_threads(threads):
    n = 300_000
    plan = unary_plan(texts.load(texts.DOUBLE)["double"], n, cost=1.0)
    x = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    for count in (1, 2, 4, 3, 1):
        threads(count)
        for _ in range(20):
            np.testing.assert_array_equal(plan(x)[0], 2 * x)


def test_every_chunk_runs_exactly_once(threads):
    """Each call adds one to every element in place: a chunk run twice or never would show."""
    n = 4096
    function = texts.load(texts.INCREMENT)["increment"]
    b = Builder()
    x = b.input(np.int64, (n,), writeable=True)
    b.call(function, [x, x], extent=n, cost=100.0, grain=16)
    plan = b.build()
    x = np.zeros(n, np.int64)
    threads(4)
    for i in range(500):
        plan.run(x)
        assert (x == i + 1).all()


def test_eight_python_threads_use_the_pool_at_once(threads):
    threads(4)
    n = 50_000
    plan = unary_plan(texts.load(texts.DOUBLE)["double"], n, cost=2.0)
    wrong = []

    def work(seed):
        x = np.full(n, seed, np.float32)
        for _ in range(50):
            if not (plan(x)[0] == 2 * seed).all():
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_the_gil_is_released():
    plan = burn_plan(300, 1e6)
    done = threading.Event()
    worker = threading.Thread(target=lambda: (plan.run(), done.set()))
    worker.start()
    steps = 0
    while not done.is_set() and steps < 3:
        time.sleep(0.005)
        steps += 1
    assert steps == 3
    worker.join()


def test_a_forked_child_has_a_pool_of_its_own(threads):
    threads(2)
    n = 200_000
    plan = unary_plan(texts.load(texts.DOUBLE)["double"], n, cost=1.0)
    x = np.ones(n, np.float32)
    plan(x)
    for _ in range(10):
        child = os.fork()
        if child == 0:
            right = all((plan(x)[0] == 2).all() for _ in range(5))
            os._exit(0 if right else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (plan(x)[0] == 2).all()


def test_a_fork_while_another_thread_computes():
    body = """
import os, threading
runtime.set_num_threads(2)
long, short = burn_plan(2000, 1e5), burn_plan(20, 1e5)
threading.Thread(target=long.run).start()
for _ in range(5):
    child = os.fork()
    if child == 0:
        short.run()
        os._exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run_script(body).split() == ["7"] * 5


def test_the_interpreter_exits_while_a_plan_runs():
    body = """
import threading, time
runtime.set_num_threads(3)
plan = burn_plan(10_000, 1e6)
threading.Thread(target=plan.run, daemon=True).start()
time.sleep(0.05)
print("leaving")
"""
    assert run_script(body) == "leaving"


# -- interrupts --------------------------------------------------------------------------------


@pytest.mark.parametrize("threads_wanted", [1, 2])
def test_ctrl_c_is_answered_within_a_quarter_of_a_second(threads_wanted):
    body = f"""
import os, signal, threading, time
runtime.set_num_threads({threads_wanted})
plan = burn_plan(100_000, 1e6)
pressed = []
def press():
    time.sleep(0.3)
    pressed.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=press).start()
try:
    plan.run()
except KeyboardInterrupt:
    print(time.perf_counter() - pressed[0])
short = burn_plan(10, 1e5)
print(short.run())
"""
    delay, result = run_script(body).split("\n")
    assert float(delay) < 0.25
    assert result == "()"


def test_ctrl_c_ends_a_loop_of_small_kernels():
    body = """
import os, signal, threading, time
b = Builder()
n = b.arena(0)
loop = b.loop(trips=10**12)
with loop.body:
    b.call(texts.load(texts.INCREMENT)["increment"], [n, n], extent=1)
plan = b.build(arena_bytes=64)
pressed = []
def press():
    time.sleep(0.3)
    pressed.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=press).start()
try:
    plan.run()
except KeyboardInterrupt:
    print(time.perf_counter() - pressed[0])
"""
    assert float(run_script(body)) < 0.25


def test_other_signal_handlers_run_and_the_plan_goes_on():
    heard = []
    before = signal.signal(signal.SIGUSR1, lambda *_: heard.append(time.perf_counter()))
    try:
        plan = burn_plan(400, 1e6)
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        assert plan.run() == ()
        assert len(heard) == 1
        assert heard[0] < time.perf_counter()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_signal_handler_may_run_plans(threads):
    threads(2)
    heard = []
    small = burn_plan(40, 1e5)
    before = signal.signal(signal.SIGUSR1, lambda *_: heard.append((small.run(), plan.run(*[]))))
    plan = burn_plan(200, 1e6)
    try:
        threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        assert plan.run() == ()
        assert heard == [((), ())]
    finally:
        signal.signal(signal.SIGUSR1, before)


STEPS = """
import resource
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def step():
    return [np.ones(100_000, np.float32) for _ in range(10)]
{}
for _ in range(5):
    step()
before = faults()
for _ in range(20):
    step()
print((faults() - before) // 20)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of the GNU C library")
def test_results_are_made_of_memory_that_was_freed_before():
    assert int(run_script(STEPS.format("runtime.native()"))) < 50
    chosen = {"MALLOC_TRIM_THRESHOLD_": "131072"}
    assert int(run_script(STEPS.format("runtime.native()"), **chosen)) > 500


def test_release_memory_returns_freed_memory():
    body = """
import os, resource
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
runtime.native()
held = [np.ones(1_000_000) for _ in range(20)]
del held
before = resident()
runtime.release_memory()
print(before - resident())
"""
    assert int(run_script(body)) > 100_000_000
