"""The scalar functions of kernels as NumPy and as C: their LLVM text, instruction by instruction.

The text is the one that compiled kernels run (`compiler/kernels/scalars`), so C gives the same bits
on a processor with fused multiply-add. NumPy has no fma; `_fma` computes it in float64, or in two
parts.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

from lucid.compiler.kernels import scalars
from lucid.errors import ExportError

_LINE = re.compile(r"^  (?:(%[\w.]+) = )?(.*)$")
_ARITHMETIC = {"fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/", "add": "+", "sub": "-",
               "mul": "*", "and": "&", "or": "|", "xor": "^"}  # fmt: skip
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_C_TYPES = {
    "float": "float", "double": "double", "i1": "bool", "i8": "int8_t", "i16": "int16_t",
    "i32": "int32_t", "i64": "int64_t", "i128": "unsigned __int128", "ptr": "void *",
}  # fmt: skip
_MATH = {"fabs": "fabs", "copysign": "copysign", "fma": "fma", "rint": "rint", "floor": "floor",
         "ceil": "ceil", "trunc": "trunc", "sqrt": "sqrt", "roundeven": "rint"}  # fmt: skip


def functions_of(text: str) -> dict[str, tuple[str, list[tuple[str, str]], list[str]]]:
    """The functions of an LLVM text: name -> (result type, [(type, parameter)], lines)."""
    found = {}
    pattern = r"^define [\w ]*?(\S+|<[^>]*>) @([\w.]+)\(([^)]*)\)[^{]*\{\n(.*?)^\}"
    for result, name, given, body in re.findall(pattern, text, re.M | re.S):
        if "<" in given or "ptr" in given or "<" in result:
            continue  # variants for vectors
        parameters = [tuple(part.split()) for part in given.split(", ") if part]
        found[name] = (result, parameters, body.splitlines())
    return found  # type: ignore[return-value]


def number_text(type: str, text: str, integer: Callable[[str, str], str]) -> str:
    """An operand that is a number."""
    if type in ("float", "double"):
        if text.startswith("0x"):
            value = struct.unpack("d", struct.pack("Q", int(text, 16)))[0]
            return "INF" if value == float("inf") else "-INF" if value == -float("inf") else (
                "NAN" if value != value else repr(value)
            )  # fmt: skip
        return text
    if type == "i1":
        return {"true": "1", "false": "0"}.get(text, text)
    return integer(type, text)


# -- NumPy ---------------------------------------------------------------------------------------


def numpy_scalar(name: str, code: str, symbol: str) -> str:
    """A Python function of arrays that computes a scalar function; `code` is f4 or f8."""
    _, parameters, lines = functions_of(scalars.bitcode(name, code))[scalars.symbol(name, code)]
    kind = "np.float32" if code == "f4" else "np.float64"
    given = [parameter.strip("%") for _, parameter in parameters]
    out = [f"def {symbol}({', '.join(given)}):", f'    """{name} of arrays."""']
    out += [f"    {x} = np.asarray({x}, {kind})" for x in given]
    for line in lines:
        match = _LINE.match(line)
        assert match is not None
        target, instruction = match[1], match[2]
        if instruction.startswith("ret "):
            out.append(f"    return {instruction.split()[-1].strip('%')}")
        else:
            out.append(f"    {target.strip('%')} = {numpy_instruction(instruction, name)}")
    return "\n".join(out)


def numpy_atom(type: str, text: str) -> str:
    if text.startswith("%"):
        return text.strip("%")
    kinds = {"float": "np.float32", "double": "np.float64", "i32": "np.int32", "i64": "np.int64"}
    value = number_text(type, text, lambda _, x: x)
    value = {"INF": "np.inf", "-INF": "-np.inf", "NAN": "np.nan"}.get(value, value)
    return f"{kinds[type]}({value})" if type in kinds else f"bool({value})"


def numpy_instruction(text: str, name: str) -> str:
    """One instruction as a NumPy expression."""
    op, rest = text.split(" ", 1)
    if op in ("fcmp", "icmp"):
        kind, type, a, b = re.match(r"(\w+) (\w+) ([^,]+), (.+)", rest).groups()  # type: ignore[union-attr]
        x, y = numpy_atom(type, a), numpy_atom(type, b)
        return f"{x} {_COMPARE[kind[-2:]]} {y}"
    if op == "select":
        condition, a, b = split_arguments(rest)
        return f"np.where({numpy_atom(*condition)}, {numpy_atom(*a)}, {numpy_atom(*b)})"
    if op == "bitcast":
        type, x, _, target = rest.split()
        return f"{'_bits' if target[0] == 'i' else '_float'}({numpy_atom(type, x)})"
    if op == "fneg":
        return f"-{numpy_atom(*rest.split())}"
    if op == "call":
        function, given = re.match(r"\w+ @llvm\.(\w+)\.\w+\((.*)\)", rest).groups()  # type: ignore[union-attr]
        args = ", ".join(numpy_atom(*x) for x in split_arguments(given))
        names = {"fma": "_fma", "fabs": "np.abs", "roundeven": "np.rint"}
        return f"{names.get(function, f'np.{function}')}({args})"
    if op in (*_ARITHMETIC, "shl", "lshr", "ashr"):
        type, a, b = re.match(r"(\w+) ([^,]+), (.+)", rest).groups()  # type: ignore[union-attr]
        x, y = numpy_atom(type, a), numpy_atom(type, b)
        if op == "lshr":
            unsigned = f"np.uint{type[1:]}"
            return (
                f"(np.asarray({x}).astype({unsigned}) >> {unsigned}({y})).astype(np.int{type[1:]})"
            )
        return f"{x} {({'shl': '<<', 'ashr': '>>'} | _ARITHMETIC)[op]} {y}"
    if op == "sitofp":
        type, x, _, target = rest.split()
        return f"{numpy_atom(type, x)}.astype(np.float{32 if target == 'float' else 64})"
    raise ExportError(f"export: {name} has no NumPy text: {text}")


def split_arguments(text: str) -> list[tuple[str, str]]:
    return [tuple(part.split()) for part in text.split(", ")]  # type: ignore[misc]


# -- C -------------------------------------------------------------------------------------------


def c_functions(modules: list[str]) -> str:
    """The functions of LLVM modules as static C functions, each after those that it calls."""
    found: dict[str, Any] = {}
    tables: dict[str, str] = {}
    for text in modules:
        found |= functions_of(text)
        for name, items in re.findall(r"^@(\w+) = .*?constant \[\d+ x i64\] \[(.*)\]$", text, re.M):
            words = ", ".join(f"UINT64_C({int(x.split()[1]) % 2**64})" for x in items.split(", "))
            tables[name] = f"static const uint64_t {name}[] = {{{words}}};"
    written: dict[str, str] = {}

    def add(name: str) -> None:
        if name in written or name not in found:
            return
        result, parameters, lines = found[name]
        written[name] = ""
        for called in re.findall(r"call \S+ @(lucid\w+)\(", "\n".join(lines)):
            add(called)
        written[name] = ""  # after what it calls
        del written[name]
        written[name] = c_function(name, result, parameters, lines)

    for name in found:
        add(name)
    return "\n\n".join([*tables.values(), *written.values()])


def c_atom(type: str, text: str) -> str:
    if text.startswith("%"):
        return c_name(text)
    if text.startswith("@"):
        return text[1:]

    def integer(type: str, x: str) -> str:
        if type == "i128":
            return f"((unsigned __int128){x})"
        value = int(x)
        if type == "i64":
            return "INT64_MIN" if value == -(2**63) else f"INT64_C({value})"
        return "INT32_MIN" if value == -(2**31) else str(value)

    value = number_text(type, text, integer)
    value = {"INF": "INFINITY", "-INF": "-INFINITY", "NAN": "NAN"}.get(value, value)
    if type == "float" and value[-1].isdigit():
        value = float(value).hex() + "f"
    elif type == "double" and value[-1].isdigit():
        value = float(value).hex()
    return value


def c_name(text: str) -> str:
    return text.strip("%").replace(".", "_")


def c_function(name: str, result: str, parameters: Any, lines: list[str]) -> str:
    """A static C function of the same instructions; branches are gotos."""
    given = ", ".join(f"{_C_TYPES[t]} {c_name(x)}" for t, x in parameters)
    declared: list[str] = []
    phis: dict[str, list[tuple[str, str]]] = {}  # label -> [(variable, value)] by predecessor
    block = "entry"
    for line in lines:
        match = re.match(r"  (%\S+) = phi (\w+) (.*)", line)
        if match:
            for value, origin in re.findall(r"\[ ?([^,]+), %([\w.]+) ?\]", match[3]):
                phis.setdefault(origin, []).append((c_name(match[1]), c_atom(match[2], value)))
            declared.append(f"{_C_TYPES[match[2]]} {c_name(match[1])};")
    body: list[str] = []
    for line in lines:
        if line.rstrip().endswith(":") and not line.startswith(" "):
            block = line.strip().rstrip(":")
            body.append(f"{c_name(block)}:;")
            continue
        if line.strip().startswith(("}", ";")) or not line.strip() or " = phi " in line:
            continue
        statement = c_instruction(line, phis.get(block, []), name)
        body.append(statement)
    head = f"static inline {_C_TYPES[result]} {name}({given}) {{"
    return "\n    ".join([head, *declared, *body]) + "\n}"


def c_instruction(line: str, phis: list[tuple[str, str]], name: str) -> str:
    match = _LINE.match(re.sub(r", !.*$", "", line))
    assert match is not None
    target, text = match[1], match[2]
    op, _, rest = text.partition(" ")
    if op == "ret":
        return f"return {c_atom(*rest.split())};"
    if op == "br":
        moves = "".join(f"{a} = {b}; " for a, b in phis)
        labels = [c_name(x) for x in re.findall(r"label (%[\w.]+)", rest)]
        if len(labels) == 1:
            return f"{moves}goto {labels[0]};"
        condition = c_atom("i1", rest.split()[1].rstrip(","))
        return f"{moves}if ({condition}) goto {labels[0]}; else goto {labels[1]};"
    type, value = c_expression(op, rest, name)
    return f"const {_C_TYPES[type]} {c_name(target)} = {value};"


def c_expression(op: str, rest: str, name: str) -> tuple[str, str]:
    """The type and the C text of an instruction's result."""
    rest = re.sub(r"^((?:nuw|nsw|reassoc|exact|disjoint) )+", "", rest)
    if op in ("fcmp", "icmp"):
        kind, type, a, b = re.match(r"(\w+) (\w+) ([^,]+), (.+)", rest).groups()  # type: ignore[union-attr]
        x, y = c_atom(type, a), c_atom(type, b)
        if kind == "uno":
            return "i1", f"({x} != {x} || {y} != {y})"
        if kind == "one":
            return "i1", f"({x} < {y} || {x} > {y})"
        if kind[0] == "u" and op == "icmp":
            x, y = f"(u{_C_TYPES[type]}){x}", f"(u{_C_TYPES[type]}){y}"
        return "i1", f"({x} {_COMPARE[kind[-2:]]} {y})"
    if op == "select":
        condition, a, b = split_arguments(rest)
        return a[0], f"({c_atom(*condition)} ? {c_atom(*a)} : {c_atom(*b)})"
    if op == "bitcast":
        type, x, _, target = rest.split()
        return target, f"bits_{type}_{target}({c_atom(type, x)})"
    if op == "fneg":
        type, x = rest.split()
        return type, f"-{c_atom(type, x)}"
    if op == "call":
        return c_call(rest, name)
    if op in ("sitofp", "uitofp", "fpext", "fptrunc", "trunc", "zext", "sext"):
        type, x, _, target = rest.split()
        unsigned = op in ("uitofp", "zext") and type not in ("i1", "i128")
        value = f"(u{_C_TYPES[type]}){c_atom(type, x)}" if unsigned else c_atom(type, x)
        return target, f"({_C_TYPES[target]})({value})"
    if op == "load":
        type, _, x = rest.replace(",", "").split()
        return type, f"(*(const {_C_TYPES[type]} *){c_atom('ptr', x)})"
    if op == "getelementptr":
        table, index = re.match(r".*ptr @(\w+), i64 0, i64 (%\w+)", rest).groups()  # type: ignore[union-attr]
        return "ptr", f"&{table}[{c_name(index)}]"
    type, a, b = re.match(r"(\w+) ([^,]+), (.+)", rest).groups()  # type: ignore[union-attr]
    x, y, kind = c_atom(type, a), c_atom(type, b), _C_TYPES[type]
    if op == "frem":
        return type, f"fmod{'f' * (type == 'float')}({x}, {y})"
    if op[0] == "f" or type == "i1":
        return type, f"({x} {_ARITHMETIC[op]} {y})"
    if type == "i128":
        return type, f"({x} {'>>' if op == 'lshr' else _ARITHMETIC[op]} {y})"
    if op in ("sdiv", "srem", "ashr"):
        sign = {"sdiv": "/", "srem": "%", "ashr": ">>"}[op]
        return type, f"({kind})({x} {sign} {y})"
    signs = {"shl": "<<", "lshr": ">>", "udiv": "/", "urem": "%"} | _ARITHMETIC
    return type, f"({kind})((u{kind}){x} {signs[op]} (u{kind}){y})"


def c_call(rest: str, name: str) -> tuple[str, str]:
    type, function, given = re.match(r"(\w+) @([\w.]+)\((.*?)\)", rest).groups()  # type: ignore[union-attr]
    arguments = split_arguments(given)
    args = ", ".join(c_atom(*x) for x in arguments)
    if not function.startswith("llvm."):
        return type, f"{function}({args})"
    short = function.split(".")[1]
    if short in _MATH:
        return type, f"{_MATH[short]}{'f' * (type == 'float')}({args})"
    if short in ("fptosi", "fptoui"):
        return type, f"to_{'u' * (short == 'fptoui')}int64((double)({args}))"
    if short in ("fshl", "ctpop", "smax", "smin", "umax", "umin"):
        return type, f"{short}_{type}({args})"
    raise ExportError(f"export: {name} has no C text: {function}")
