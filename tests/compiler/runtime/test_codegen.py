"""What is compiled, how, and by how many threads."""

from __future__ import annotations

import os
import threading

import llvmlite.binding as llvm
import numpy as np
import pytest

import lucid
from lucid.compiler.compile import compile_graph
from lucid.compiler.kernels import scalars
from lucid.compiler.runtime import codegen, kernel_table, native_kernel
from lucid.ir import trace

TERMS = 128


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """The LLVM IR that is compiled, with the thread that does it."""
    monkeypatch.setenv("LUCID_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(kernel_table, "_loaded", {})
    found, compile_object = [], codegen.compile_object

    def compile(*texts, optimize=True):
        found.append(("".join(map(str, texts)), threading.get_ident(), optimize))
        return compile_object(*texts, optimize=optimize)

    monkeypatch.setattr(codegen, "compile_object", compile)
    return found


@pytest.fixture
def tuning(monkeypatch):
    """The options of every run of LLVM's pipeline."""
    found, create = [], llvm.create_pipeline_tuning_options

    def recorded(**options):
        found.append(create(**options))
        return found[-1]

    monkeypatch.setattr(llvm, "create_pipeline_tuning_options", recorded)
    return found


def misfit(x):
    """The squared misfit of a polynomial with TERMS coefficients; the gradient is long."""
    t = lucid.linspace(-1.0, 1.0, 500, dtype=lucid.float64)
    value = lucid.zeros_like(t)
    for i in range(TERMS):
        value = value * t + x[i]
    return ((lucid.sign(t) - value) ** 2).sum()


def test_long_kernels_are_compiled_on_all_cores_without_slp(compiled, tuning):
    gradient = lucid.jit(lucid.func.grad(misfit))
    gradient(lucid.ones(TERMS, dtype=lucid.float64))
    kernels = [(text, thread) for text, thread, optimize in compiled if optimize]
    is_long = [codegen.longest_function([text]) >= codegen.LONG_FUNCTION for text, _ in kernels]
    assert any(is_long)
    optimized = [options for options in tuning if options.speed_level]
    assert sum(not options.slp_vectorization for options in optimized) == sum(is_long)
    if (os.cpu_count() or 1) > 1:
        assert len({thread for _, thread in kernels}) > 1
    t = np.linspace(-1, 1, 500)
    powers = t[:, None] ** np.arange(TERMS)[::-1]
    for scale in (1.0, 0.5):
        x = scale * np.linspace(0.5, 1.5, TERMS)
        expected = 2 * powers.T @ (powers @ x - np.sign(t))
        np.testing.assert_allclose(gradient(lucid.tensor(x)), expected, rtol=1e-9, atol=1e-9)


def test_short_kernels_have_slp(tuning, compiled):
    compile_graph(trace(lambda x: lucid.exp(x) + 1.0)(lucid.ones(3)))
    assert [o.slp_vectorization for o in tuning if o.speed_level] == [True]


def test_hand_written_text_is_compiled_without_passes(compiled, tuning):
    text = """
    define internal i64 @twice(i64 %x) alwaysinline {
      %y = add i64 %x, %x
      ret i64 %y
    }
    define void @double_of(ptr %args, i64 %lo, i64 %hi) nounwind {
      %p = load ptr, ptr %args
      %x = load i64, ptr %p
      %y = call i64 @twice(i64 %x)
      store i64 %y, ptr %p
      ret void
    }
    """
    assert native_kernel.load(["double_of"], text, optimize=False)["double_of"].address
    assert [options.speed_level for options in tuning] == [0]
    assert b"twice" not in codegen.compile_object(text, optimize=False)


def test_what_the_vectorizer_did_not_call_is_removed():
    kernel = """
    declare double @lucid_sin_f8(double)
    define void @one(ptr %args, i64 %lo, i64 %hi) nounwind {
      %p = load ptr, ptr %args
      %x = load double, ptr %p
      %y = call double @lucid_sin_f8(double %x)
      store double %y, ptr %p
      ret void
    }
    """
    text = str(scalars.bitcode("sin", "f8"))
    assert "@lucid_sin_huge_or_f8_4(" in text
    optimized = codegen.optimized_ir(kernel, text)
    assert "@lucid_sin_huge_or_f8(" in optimized
    assert "@lucid_sin_huge_or_f8_4(" not in optimized
