"""Methods of Tensor that are functions of `lucid` with the same name."""

from __future__ import annotations

from typing import Any

from lucid.ops.elementwise import (
    arithmetic,
    blending,
    closeness,
    complexes,
    conditional,
    digits,
    exponential,
    logarithms,
    logic,
    power,
    rounding,
    trigonometric,
)
from lucid.ops.index import gather_scatter as indexing
from lucid.ops.index import lookup, replacing, searching, subscript
from lucid.ops.index import scatter_reduce as combining
from lucid.ops.linalg import adding_products, contraction, distances, products
from lucid.ops.nn.softmax import log_softmax, softmax
from lucid.ops.reduce import (
    counting,
    covariance,
    cumulative,
    extrema,
    quantiles,
    reduction,
    sorting,
    statistics,
)
from lucid.ops.shape import arranging, copying, diagonals, joining, movement, shaping
from lucid.ops.special import bessel, incomplete_gamma
from lucid.ops.special import error_and_gamma as special_functions
from lucid.tape.node import Traced
from lucid.tensors.inplace import InPlace
from lucid.tensors.lazy_methods import LazyMethods
from lucid.tensors.properties import Attributes, Casts
from lucid.tensors.random_methods import RandomMethods
from lucid.tensors.reshaping import ReshapingMethods


class ElementwiseMethods(Traced):
    """Elementwise functions."""

    __slots__ = ()

    add = arithmetic.add
    subtract = sub = arithmetic.subtract
    multiply = mul = arithmetic.multiply
    divide = div = true_divide = arithmetic.divide
    negative = neg = arithmetic.negative
    positive = arithmetic.positive
    absolute = abs = arithmetic.abs
    sgn = arithmetic.sgn
    copysign = arithmetic.copysign

    floor = rounding.floor
    ceil = rounding.ceil
    trunc = fix = rounding.trunc
    round = rounding.round
    frac = rounding.frac
    sign = rounding.sign
    floor_divide = rounding.floor_divide
    remainder = rounding.remainder
    fmod = rounding.fmod

    pow = power.pow
    square = power.square
    float_power = power.float_power
    reciprocal = power.reciprocal

    exp = exponential.exp
    exp2 = exponential.exp2
    expm1 = exponential.expm1
    log = exponential.log
    log2 = exponential.log2
    log10 = exponential.log10
    log1p = exponential.log1p
    logaddexp = exponential.logaddexp
    sqrt = exponential.sqrt
    rsqrt = exponential.rsqrt
    cbrt = exponential.cbrt
    sigmoid = exponential.sigmoid

    sin = trigonometric.sin
    cos = trigonometric.cos
    tan = trigonometric.tan
    asin = arcsin = trigonometric.asin
    acos = arccos = trigonometric.acos
    atan = arctan = trigonometric.atan
    atan2 = arctan2 = trigonometric.atan2
    hypot = trigonometric.hypot
    sinh = trigonometric.sinh
    cosh = trigonometric.cosh
    tanh = trigonometric.tanh
    asinh = arcsinh = trigonometric.asinh
    acosh = arccosh = trigonometric.acosh
    atanh = arctanh = trigonometric.atanh
    deg2rad = trigonometric.deg2rad
    rad2deg = trigonometric.rad2deg

    erf = special_functions.erf
    erfc = special_functions.erfc
    erfinv = special_functions.erfinv
    lgamma = special_functions.lgamma
    digamma = special_functions.digamma
    mvlgamma = special_functions.mvlgamma
    i0 = bessel.i0

    def polygamma(self, n: int) -> Any:
        """Return the `n`-th derivative of digamma, elementwise."""
        return special_functions.polygamma(n, self)

    igamma = incomplete_gamma.igamma
    igammac = incomplete_gamma.igammac

    relu = conditional.relu
    clamp = clip = conditional.clamp
    maximum = conditional.maximum
    minimum = conditional.minimum
    nan_to_num = closeness.nan_to_num
    clamp_min = blending.clamp_min
    clamp_max = blending.clamp_max
    addcmul = blending.addcmul
    addcdiv = blending.addcdiv
    lerp = blending.lerp
    rsub = blending.rsub
    fmax = blending.fmax
    fmin = blending.fmin
    heaviside = blending.heaviside
    isreal = blending.isreal
    fill = blending.fill
    logaddexp2 = logarithms.logaddexp2
    xlogy = logarithms.xlogy
    logit = logarithms.logit
    sinc = logarithms.sinc
    frexp = digits.frexp
    ldexp = digits.ldexp
    nextafter = digits.nextafter
    signbit = digits.signbit
    gcd = digits.gcd
    lcm = digits.lcm

    conj = conjugate = conj_physical = complexes.conj
    angle = complexes.angle

    eq = logic.eq
    ne = not_equal = logic.ne
    lt = less = logic.lt
    le = less_equal = logic.le
    gt = greater = logic.gt
    ge = greater_equal = logic.ge
    isnan = logic.isnan
    isinf = logic.isinf
    isfinite = logic.isfinite
    isposinf = logic.isposinf
    isneginf = logic.isneginf
    isclose = closeness.isclose
    allclose = closeness.allclose
    equal = closeness.equal
    logical_and = logic.logical_and
    logical_or = logic.logical_or
    logical_xor = logic.logical_xor
    logical_not = logic.logical_not
    bitwise_and = logic.bitwise_and
    bitwise_or = logic.bitwise_or
    bitwise_xor = logic.bitwise_xor
    bitwise_not = logic.bitwise_not
    bitwise_left_shift = logic.left_shift
    bitwise_right_shift = logic.right_shift

    def where(self, condition: Any, other: Any) -> Any:
        """Return this tensor where `condition` is True, and `other` elsewhere."""
        return conditional.where(condition, self, other)


class ShapeMethods(Traced):
    """Functions that rearrange, reshape, index and copy."""

    __slots__ = ()

    __getitem__ = subscript.getitem

    reshape = movement.reshape
    view = shaping.view
    view_as = reshape_as = shaping.view_as
    permute = movement.permute
    transpose = shaping.transpose
    swapaxes = shaping.swapaxes
    swapdims = shaping.swapdims
    movedim = moveaxis = shaping.movedim
    t = shaping.t
    squeeze = shaping.squeeze
    unsqueeze = shaping.unsqueeze
    expand = shaping.expand
    expand_as = shaping.expand_as
    broadcast_to = movement.broadcast_to
    flatten = shaping.flatten
    unflatten = shaping.unflatten
    ravel = shaping.ravel
    flip = shaping.flip
    fliplr = shaping.fliplr
    flipud = shaping.flipud
    rot90 = shaping.rot90
    unbind = shaping.unbind
    repeat = shaping.repeat
    tile = shaping.tile
    repeat_interleave = joining.repeat_interleave
    split = unsafe_split = joining.split
    chunk = unsafe_chunk = joining.chunk
    tensor_split = joining.tensor_split
    roll = joining.roll
    hsplit = arranging.hsplit
    vsplit = arranging.vsplit
    dsplit = arranging.dsplit
    split_with_sizes = unsafe_split_with_sizes = arranging.split_with_sizes
    narrow_copy = arranging.narrow_copy
    diagflat = arranging.diagflat
    unfold = arranging.unfold
    adjoint = arranging.adjoint
    sum_to_size = arranging.sum_to_size

    diagonal = diagonals.diagonal
    diag = diagonals.diag
    diag_embed = diagonals.diag_embed
    trace = diagonals.trace
    tril = diagonals.tril
    triu = diagonals.triu

    gather = lookup.gather
    scatter = lookup.scatter
    scatter_add = lookup.scatter_add
    index_select = lookup.index_select
    index_add = lookup.index_add
    index_copy = lookup.index_copy
    index_fill = lookup.index_fill
    take = lookup.take
    take_along_dim = lookup.take_along_dim
    select = lookup.select
    narrow = lookup.narrow
    masked_select = lookup.masked_select
    masked_fill = lookup.masked_fill
    nonzero = indexing.nonzero
    argwhere = lookup.argwhere
    nonzero_static = searching.nonzero_static
    diff = lookup.diff
    scatter_reduce = combining.scatter_reduce
    index_reduce = combining.index_reduce
    index_put = replacing.index_put
    put = replacing.put
    masked_scatter = replacing.masked_scatter
    select_scatter = replacing.select_scatter
    slice_scatter = replacing.slice_scatter
    diagonal_scatter = replacing.diagonal_scatter
    unique = searching.unique
    unique_consecutive = searching.unique_consecutive

    clone = copying.clone
    contiguous = copying.contiguous

    @property
    def T(self) -> Any:
        """The tensor with its axes in reverse order."""
        return shaping.transpose(self)

    @property
    def mT(self) -> Any:
        """The tensor with its last two axes swapped."""
        return shaping.mT(self)

    @property
    def H(self) -> Any:
        """The conjugate transpose of a matrix."""
        return complexes.conj(shaping.t(self))

    @property
    def mH(self) -> Any:
        """The conjugate, with the last two axes swapped."""
        return complexes.conj(shaping.mT(self))

    @property
    def real(self) -> Any:
        """The real part."""
        return complexes.real(self)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return complexes.imag(self)

    @property
    def flat(self) -> Any:
        """An iterator over the elements in row-major order."""
        return iter(shaping.ravel(self))

    def copy(self) -> Any:
        """Return a copy through which gradients flow, like `clone`."""
        return copying.clone(self)


class ReductionMethods(Traced):
    """Functions that reduce, accumulate, sort and multiply."""

    __slots__ = ()

    sum = reduction.sum
    prod = reduction.prod
    any = reduction.any
    all = reduction.all
    count_nonzero = reduction.count_nonzero
    logsumexp = reduction.logsumexp
    max = extrema.max
    min = extrema.min
    amax = extrema.amax
    amin = extrema.amin
    aminmax = extrema.aminmax
    argmax = extrema.argmax
    argmin = extrema.argmin
    mean = statistics.mean
    var = statistics.var
    std = statistics.std
    norm = statistics.norm
    softmax = softmax
    log_softmax = log_softmax
    nansum = statistics.nansum
    nanmean = statistics.nanmean
    median = statistics.median
    nanmedian = quantiles.nanmedian
    mode = quantiles.mode
    kthvalue = quantiles.kthvalue
    msort = quantiles.msort
    quantile = quantiles.quantile
    nanquantile = quantiles.nanquantile
    cov = covariance.cov
    corrcoef = covariance.corrcoef
    bincount = counting.bincount
    histc = counting.histc
    histogram = counting.histogram
    dist = distances.dist
    renorm = distances.renorm
    cumsum = cumulative.cumsum
    cumprod = cumulative.cumprod
    cummax = cumulative.cummax
    cummin = cumulative.cummin
    logcumsumexp = cumulative.logcumsumexp
    sort = sorting.sort
    argsort = sorting.argsort
    topk = sorting.topk

    matmul = contraction.matmul
    mm = products.mm
    bmm = products.bmm
    mv = products.mv
    dot = products.dot
    vdot = products.vdot
    inner = products.inner
    outer = ger = products.outer
    tensordot = products.tensordot
    kron = products.kron
    addmm = adding_products.addmm
    addmv = adding_products.addmv
    addr = adding_products.addr
    addbmm = adding_products.addbmm
    baddbmm = adding_products.baddbmm
    cross = adding_products.cross


class Methods(
    ElementwiseMethods,
    InPlace,
    RandomMethods,
    ShapeMethods,
    ReshapingMethods,
    ReductionMethods,
    LazyMethods,
    Attributes,
    Casts,
):
    """All named methods of Tensor."""

    __slots__ = ()
