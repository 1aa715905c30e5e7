"""Numba's lowering of a listing to LLVM text, with what a listing promises about its loops.

- `+=` and `*=` on floats are marked `reassoc`: such sums may be added in any order.
- Accesses of an innermost loop are marked as independent, as in the LLVM backend, so that LLVM
  vectorizes a kernel that writes its result over an operand. Only our own listings promise this.
"""

from __future__ import annotations

import operator
import re
from typing import Any

from numba import types
from numba.core import ir as numba_ir
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from numba.core.untyped_passes import LiteralPropagationSubPipelinePass, LiteralUnroll

from lucid.compiler.backends.numba.buffers import ACCESS

LOOP = "lucid.loop"


class ListingLower(Lower):
    """Lowers one function, with marks on its innermost loops and its accumulations."""

    def lower_function_body(self) -> Any:
        loops = compute_cfg_from_blocks(self.blocks).loops().values()
        headers = {loop.header for loop in loops}
        self.innermost = {
            loop.header: loop.body for loop in loops if not loop.body & headers - {loop.header}
        }
        self.labels = {id(block): label for label, block in self.blocks.items()}
        return super().lower_function_body()

    def lower_block(self, block: Any) -> None:
        self.label = self.labels[id(block)]
        super().lower_block(block)

    def lower_inst(self, inst: Any) -> None:
        super().lower_inst(inst)
        if not isinstance(inst, numba_ir.Jump | numba_ir.Branch):
            return
        for target in inst.get_targets():
            if self.label in self.innermost.get(target, ()):
                latch = self.builder.block.terminator
                latch.set_metadata("llvm.loop", self.module.add_metadata([f"{LOOP}{target}"]))

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        kinds = {operator.add: "fadd", operator.mul: "fmul"}
        operands = [self.typeof(x.name) for x in (expr.lhs, expr.rhs)]
        any_order = expr.op == "inplace_binop" and op in kinds and isinstance(resty, types.Float)
        if not any_order or operands != [resty, resty]:
            return super().lower_binop(resty, expr, op)
        values = [self.loadvar(x.name) for x in (expr.lhs, expr.rhs)]
        return getattr(self.builder, kinds[op])(*values, flags=("reassoc",))


@register_pass(mutates_CFG=True, analysis_only=False)
class ListingLowering(NativeLowering):
    """NativeLowering by `ListingLower`."""

    _name = "lucid_listing_lowering"

    @property
    def lowering_class(self) -> Any:
        return ListingLower


class ListingCompiler(CompilerBase):
    """Numba's nopython pipeline, without passes that no listing needs, up to LLVM text."""

    def define_pipelines(self) -> list[Any]:
        builder = DefaultPassBuilder
        manager = PassManager("lucid_listing")
        for part in (
            builder.define_untyped_pipeline(self.state),
            builder.define_typed_pipeline(self.state),
            builder.define_nopython_lowering_pipeline(self.state),
        ):
            skipped = (LiteralPropagationSubPipelinePass, LiteralUnroll)
            manager.passes.extend(p for p in part.passes if p[0] not in skipped)
        manager.passes = [
            (ListingLowering, text) if step is NativeLowering else (step, text)
            for step, text in manager.passes
        ]
        manager.finalize()
        return [manager]


class TextLibrary(JITCodeLibrary):
    """A library that keeps the LLVM text it is given; our own pipeline optimizes and loads it."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.texts: list[str] = []

    def add_ir_module(self, ir_module: Any) -> None:
        self.texts.append(str(ir_module))

    def modules(self) -> list[str]:
        """The LLVM texts of this library and of those that it links."""
        linked = dict.fromkeys(self._linking_libraries)
        return [*self.texts, *[str(lib._get_module_for_linking()) for lib in linked]]


def annotate(text: str, parallel: bool) -> str:
    """LLVM text with the metadata of its accesses and loops written out, or without it."""
    if not parallel:
        return re.sub(r", !llvm\.(?:loop|access\.group) !\d+", "", text)
    access = re.search(rf'^!(\d+) = !{{ !"{ACCESS}" }}$', text, re.MULTILINE)
    if access is None:
        return annotate(text, parallel=False)
    group = access[1]
    text = text.replace(access[0], f"!{group} = distinct !{{}}")
    note = 1 + max(map(int, re.findall(r"^!(\d+) =", text, re.MULTILINE)))
    text = re.sub(
        rf'^!(\d+) = !{{ !"{LOOP}\d+" }}$',
        rf"!\1 = distinct !{{!\1, !{note}}}",
        text,
        flags=re.MULTILINE,
    )
    return f'{text}\n!{note} = !{{!"llvm.loop.parallel_accesses", !{group}}}\n'
