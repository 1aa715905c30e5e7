"""The dtypes and the mathematical constants of the namespace `lucid`."""

from __future__ import annotations

import math

import numpy as np

from lucid.public.declare import public

bool_ = public(aliases=("bool",))(np.dtype(np.bool_))
int8 = public()(np.dtype(np.int8))
int16 = public(aliases=("short",))(np.dtype(np.int16))
int32 = public(aliases=("int",))(np.dtype(np.int32))
int64 = public(aliases=("long",))(np.dtype(np.int64))
uint8 = public()(np.dtype(np.uint8))
uint16 = public()(np.dtype(np.uint16))
uint32 = public()(np.dtype(np.uint32))
uint64 = public()(np.dtype(np.uint64))
float16 = public(aliases=("half",))(np.dtype(np.float16))
float32 = public(aliases=("float",))(np.dtype(np.float32))
float64 = public(aliases=("double",))(np.dtype(np.float64))
complex64 = public(aliases=("cfloat",))(np.dtype(np.complex64))
complex128 = public(aliases=("cdouble",))(np.dtype(np.complex128))

pi = public()(math.pi)
e = public()(math.e)
inf = public()(math.inf)
nan = public()(math.nan)
newaxis = public()(None)
