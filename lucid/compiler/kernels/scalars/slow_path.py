"""A slow path that keeps the loop around it vectorized: a call with vector variants of its own."""

from __future__ import annotations

from collections.abc import Callable

from .language import PURE, Value, define, literal

_SLOW_PATH = """\
define linkonce_odr hidden {llvm} @{symbol}({llvm} %x, {llvm} %y) noinline {pure} {{
  %a = call {llvm} @llvm.fabs.{suffix}({llvm} %x)
  %above = fcmp ogt {llvm} %a, {limit}
  %finite = fcmp olt {llvm} %a, 0x7FF0000000000000
  %rare = and i1 %above, %finite
  br i1 %rare, label %slow, label %fast
slow:
{call}
  ret {llvm} %z
fast:
  ret {llvm} %y
}}
define linkonce_odr hidden void @{symbol}_each(ptr %x, ptr %y, i64 %n) noinline nounwind {{
entry:
  br label %lane
lane:
  %i = phi i64 [0, %entry], [%next, %lane]
  %xp = getelementptr {llvm}, ptr %x, i64 %i
  %yp = getelementptr {llvm}, ptr %y, i64 %i
  %xi = load {llvm}, ptr %xp
  %yi = load {llvm}, ptr %yp
  %zi = call {llvm} @{symbol}({llvm} %xi, {llvm} %yi)
  store {llvm} %zi, ptr %yp
  %next = add i64 %i, 1
  %last = icmp eq i64 %next, %n
  br i1 %last, label %done, label %lane
done:
  ret void
}}
"""
_SLOW_PATH_LANES = """\
define linkonce_odr hidden {vector} @{symbol}_{n}({vector} %x, {vector} %y) alwaysinline {pure} {{
entry:
  %xs = alloca {vector}
  %ys = alloca {vector}
  %a = call {vector} @llvm.fabs.v{n}{suffix}({vector} %x)
  %above = fcmp ogt {vector} %a, splat ({llvm} {limit})
  %finite = fcmp olt {vector} %a, splat ({llvm} 0x7FF0000000000000)
  %rare = and <{n} x i1> %above, %finite
  %mask = bitcast <{n} x i1> %rare to i{n}
  %none = icmp eq i{n} %mask, 0
  br i1 %none, label %done, label %slow, !prof !0
slow:
  store {vector} %x, ptr %xs
  store {vector} %y, ptr %ys
  call void @{symbol}_each(ptr %xs, ptr %ys, i64 {n})
  %new = load {vector}, ptr %ys
  br label %done
done:
  %z = phi {vector} [%y, %entry], [%new, %slow]
  ret {vector} %z
}}
"""
# The lanes of one register, from SSE to AVX-512.
_LANES = {"f4": (4, 8, 16), "f8": (2, 4, 8)}


def slow_path(name: str, body: Callable[[Value], Value], x: Value, y: Value, limit: float) -> Value:
    """`y`, but `body(x)` in float64 where limit < |x| < inf: a real branch, outside the loop.

    The call has vector variants (`vector-function-abi-variant`), so the loop around it is still
    vectorized; a variant visits its lanes one by one only if one of them takes the slow path. They
    are marked alwaysinline for an inliner that runs after the vectorizer, and work without it.
    """
    code, llvm, suffix = x.code, x.format.llvm, x.format.suffix
    slow, symbol = f"lucid_{name}_f8", f"lucid_{name}_or_{x.type}"
    call = f"  %z = call double @{slow}(double %x)"
    if x.type == "f4":
        call = f"""\
  %xd = fpext float %x to double
  %zd = call double @{slow}(double %xd)
  %z = fptrunc double %zd to float"""
    fields = {"llvm": llvm, "suffix": suffix, "symbol": symbol, "pure": PURE, "call": call}
    fields["limit"] = literal(x.type, limit)
    code.attach(symbol, lambda: _SLOW_PATH.format(**fields))
    for n in _LANES[x.type]:
        vector = f"<{n} x {llvm}>"
        code.attach(f"{symbol}_{n}", lambda: _SLOW_PATH_LANES.format(vector=vector, n=n, **fields))  # noqa: B023
        code.declarations.add(f"declare {vector} @llvm.fabs.v{n}{suffix}({vector})")
    code.attach(slow, lambda: define(code, slow, body, "f8", 1, f"noinline {PURE}"))
    code.attach("weights", lambda: '!0 = !{!"branch_weights", i32 2000, i32 1}')
    # Nothing calls the variants before the vectorizer does: keep them until then.
    used = ", ".join(f"ptr @{symbol}_{n}" for n in _LANES[x.type])
    size = f"[{len(_LANES[x.type])} x ptr]"
    used = f'@llvm.compiler.used = appending global {size} [{used}], section "llvm.metadata"'
    code.attach("used", lambda: used)
    variants = ",".join(f"_ZGV_LLVM_N{n}vv_{symbol}({symbol}_{n})" for n in _LANES[x.type])
    return code.write(
        x.type,
        f"call {llvm} @{symbol}({llvm} {x.name}, {llvm} {y.name}) {PURE}"
        f' "vector-function-abi-variant"="{variants}"',
    )
