# Written by `python -m lucid.public.build`.

import builtins as _b
import collections.abc as _abc
import typing as _t

import numpy as _np

from lucid.compiler.kernels.scalars import code as code
from lucid.compiler.kernels.scalars import register as scalar
from lucid.compiler.kernels.scalars.dispatch import numba_scalar as numba_scalar
from lucid.compiler.lowering.external.native_calls import NativeCall as NativeCall
from lucid.compiler.lowering.external.numba_calls import NumbaCall as NumbaCall
from lucid.ir.primitive import Primitive as Primitive
from lucid.ir.types import Type as Type
from lucid.ops.core.errstate import quiet as quiet
from lucid.ops.core.kinds import Bilinear as Bilinear
from lucid.ops.core.kinds import Constant as Constant
from lucid.ops.core.kinds import Elementwise as Elementwise
from lucid.ops.core.kinds import Linear as Linear
from lucid.ops.core.kinds import times as times
from lucid.ops.core.promote import as_tensor as as_tensor
from lucid.ops.core.promote import promote as promote
from lucid.ops.core.promote import to_floating as to_floating
from lucid.tape.bind import bind as bind


