"""LLVM IR of small kernels, for the tests of what lies below the emitter."""

from lucid.compiler.runtime import native_kernel as kernel


def elementwise(name: str, body: str, inputs: int, kind: str = "float") -> str:
    """A kernel y[i] = body(x0[i], x1[i], ...); the body's lines define %y."""
    addresses = "\n".join(
        f"""
  %p{j} = getelementptr ptr, ptr %args, i64 {j}
  %a{j} = load ptr, ptr %p{j}"""
        for j in range(inputs + 1)
    )
    loads = "\n".join(
        f"""
  %q{j} = getelementptr {kind}, ptr %a{j}, i64 %i
  %x{j} = load {kind}, ptr %q{j}"""
        for j in range(inputs)
    )
    return f"""
define void @{name}(ptr %args, i64 %lo, i64 %hi) nounwind {{
entry:{addresses}
  br label %next
next:
  %i = phi i64 [ %lo, %entry ], [ %i1, %run ]
  %more = icmp slt i64 %i, %hi
  br i1 %more, label %run, label %done
run:{loads}
  {body}
  %out = getelementptr {kind}, ptr %a{inputs}, i64 %i
  store {kind} %y, ptr %out
  %i1 = add i64 %i, 1
  br label %next
done:
  ret void
}}
"""


ADD = elementwise("add", "%y = fadd float %x0, %x1", 2)
DOUBLE = elementwise("double", "%y = fadd float %x0, %x0", 1)
NEGATE = elementwise("negate", "%y = fneg float %x0", 1)
INCREMENT = elementwise("increment", "%y = add i64 %x0, 1", 1, "i64")

# One partial sum a chunk: args are x, the partial sums, and the length of a chunk.
PARTIAL_SUMS = """
define void @partial_sums(ptr %args, i64 %lo, i64 %hi) nounwind {
entry:
  %x = load ptr, ptr %args
  %p1 = getelementptr ptr, ptr %args, i64 1
  %partial = load ptr, ptr %p1
  %p2 = getelementptr i64, ptr %args, i64 2
  %grain = load i64, ptr %p2
  br label %next
next:
  %i = phi i64 [ %lo, %entry ], [ %i1, %run ]
  %sum = phi float [ 0.0, %entry ], [ %sum1, %run ]
  %more = icmp slt i64 %i, %hi
  br i1 %more, label %run, label %done
run:
  %q = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %q
  %sum1 = fadd float %sum, %v
  %i1 = add i64 %i, 1
  br label %next
done:
  %chunk = sdiv i64 %lo, %grain
  %out = getelementptr float, ptr %partial, i64 %chunk
  store float %sum, ptr %out
  ret void
}
"""

# *args[1] = *args[0] < args[2], all int64 but the result, a bool.
BELOW = """
define void @below(ptr %args, i64 %lo, i64 %hi) nounwind {
  %a = load ptr, ptr %args
  %p1 = getelementptr ptr, ptr %args, i64 1
  %b = load ptr, ptr %p1
  %p2 = getelementptr i64, ptr %args, i64 2
  %limit = load i64, ptr %p2
  %x = load i64, ptr %a
  %less = icmp slt i64 %x, %limit
  %y = zext i1 %less to i8
  store i8 %y, ptr %b
  ret void
}
"""

# Burns args[0] rounds of a loop for each unit of its extent: about 0.3 ns each.
BURN = """
define void @burn(ptr %args, i64 %lo, i64 %hi) nounwind {
entry:
  %rounds = load i64, ptr %args
  br label %next
next:
  %unit = phi i64 [ %lo, %entry ], [ %unit1, %end ]
  %more = icmp slt i64 %unit, %hi
  br i1 %more, label %burn, label %done
burn:
  %i = phi i64 [ 0, %next ], [ %i1, %burn ]
  call void asm sideeffect "nop", ""()
  %i1 = add i64 %i, 1
  %again = icmp slt i64 %i1, %rounds
  br i1 %again, label %burn, label %end
end:
  %unit1 = add i64 %unit, 1
  br label %next
done:
  ret void
}
"""


def load(*texts: str) -> dict[str, kernel.Kernel]:
    """The kernels that the texts define, through the cache."""
    names = [
        line.split("@")[1].split("(")[0]
        for text in texts
        for line in text.splitlines()
        if line.startswith("define void @")
    ]
    return kernel.load(names, tuple(texts), key="".join(texts).encode())
