"""Where every public name is defined. Written by `python -m lucid.public.build`.

Entries are names, or `name:attribute` if the object has another name in its module.
"""

NAMES: dict[str, dict[str, str]] = {
    "Tensor": {
        "fft.spectrograms": "istft stft",
        "linalg.determinants": "logdet",
        "linalg.products": "matrix_exp matrix_power",
        "linalg.reflections": "geqrf ormqr",
        "linalg.solving": "cholesky_solve",
        "linalg.torch_names": (
            "cholesky cholesky_inverse det inverse lu lu_solve orgqr pinverse qr slogdet svd "
            "triangular_solve"
        ),
        "nn.functional.activations": "hardshrink prelu",
        "ops.core.predicates": (
            "is_complex is_conj is_floating_point is_inference is_neg is_nonzero is_same_size "
            "is_signed nelement:numel numel resolve_conj resolve_neg"
        ),
        "ops.elementwise.arithmetic": (
            "abs absolute:abs add copysign div:divide divide mul:multiply multiply neg:negative "
            "negative positive sgn sub:subtract subtract true_divide:divide"
        ),
        "ops.elementwise.blending": (
            "addcdiv addcmul clamp_max clamp_min fill fmax fmin heaviside isreal lerp rsub"
        ),
        "ops.elementwise.closeness": "allclose equal isclose nan_to_num",
        "ops.elementwise.complexes": "angle conj conj_physical:conj conjugate:conj",
        "ops.elementwise.conditional": "clamp clip:clamp maximum minimum relu",
        "ops.elementwise.digits": "frexp gcd lcm ldexp nextafter signbit",
        "ops.elementwise.exponential": (
            "cbrt exp exp2 expm1 log log10 log1p log2 logaddexp rsqrt sigmoid sqrt"
        ),
        "ops.elementwise.logarithms": "logaddexp2 logit sinc sinhc xlogy",
        "ops.elementwise.logic": (
            "bitwise_and bitwise_left_shift:left_shift bitwise_not bitwise_or "
            "bitwise_right_shift:right_shift bitwise_xor eq ge greater:gt greater_equal:ge gt "
            "isfinite isinf isnan isneginf isposinf le less:lt less_equal:le logical_and "
            "logical_not logical_or logical_xor lt ne not_equal:ne"
        ),
        "ops.elementwise.power": "float_power pow reciprocal square",
        "ops.elementwise.rounding": (
            "ceil fix:trunc floor floor_divide fmod frac remainder round sign trunc"
        ),
        "ops.elementwise.trigonometric": (
            "acos acosh arccos:acos arccosh:acosh arcsin:asin arcsinh:asinh arctan2:atan2 "
            "arctan:atan arctanh:atanh asin asinh atan atan2 atanh cos cosh deg2rad hypot rad2deg "
            "sin sinh tan tanh"
        ),
        "ops.index.gather_scatter": "nonzero",
        "ops.index.lookup": (
            "argwhere diff gather index_add index_copy index_fill index_select masked_fill "
            "masked_select narrow scatter scatter_add select take take_along_dim"
        ),
        "ops.index.replacing": (
            "diagonal_scatter index_put masked_scatter put select_scatter slice_scatter"
        ),
        "ops.index.scatter_reduce": "index_reduce scatter_reduce",
        "ops.index.searching": "nonzero_static unique unique_consecutive",
        "ops.linalg.adding_products": "addbmm addmm addmv addr baddbmm cross",
        "ops.linalg.contraction": "matmul",
        "ops.linalg.distances": "dist renorm",
        "ops.linalg.products": "bmm dot ger:outer inner kron mm mv outer tensordot vdot",
        "ops.nn.softmax": "log_softmax softmax",
        "ops.reduce.counting": "bincount histc histogram",
        "ops.reduce.covariance": "corrcoef cov",
        "ops.reduce.cumulative": "cummax cummin cumprod cumsum logcumsumexp",
        "ops.reduce.extrema": "amax amin aminmax argmax argmin max min",
        "ops.reduce.quantiles": "kthvalue mode msort nanmedian nanquantile quantile",
        "ops.reduce.reduction": "all any count_nonzero logsumexp prod sum",
        "ops.reduce.sorting": "argsort sort topk",
        "ops.reduce.statistics": "mean median nanmean nansum norm std var",
        "ops.shape.arranging": (
            "adjoint diagflat dsplit hsplit narrow_copy split_with_sizes sum_to_size unfold "
            "unsafe_split_with_sizes:split_with_sizes vsplit"
        ),
        "ops.shape.copying": "clone contiguous",
        "ops.shape.diagonals": "diag diag_embed diagonal trace tril triu",
        "ops.shape.joining": (
            "chunk repeat_interleave roll split tensor_split unsafe_chunk:chunk "
            "unsafe_split:split"
        ),
        "ops.shape.movement": "broadcast_to permute reshape",
        "ops.shape.shaping": (
            "expand expand_as flatten flip fliplr flipud moveaxis:movedim movedim ravel repeat "
            "reshape_as:view_as rot90 squeeze swapaxes swapdims t tile transpose unbind unflatten "
            "unsqueeze view view_as"
        ),
        "ops.shape.striding": "as_strided as_strided_scatter",
        "ops.special.bessel": "i0",
        "ops.special.error_and_gamma": "digamma erf erfc erfinv lgamma mvlgamma",
        "ops.special.incomplete_gamma": "igamma:gammainc igammac:gammaincc",
        "random.draws": "bernoulli multinomial",
        "tensors.inplace": "copy_ fill_ fill_diagonal_ masked_fill_ zero_",
        "tensors.random_methods": (
            "bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ uniform_"
        ),
        "tensors.reshaping": "detach_",
    },
    "autograd": {
        "autograd.engine": "backward grad",
        "autograd.functions.function": "Function FunctionCtx once_differentiable",
        "autograd.gradient_check": "GradcheckError gradcheck gradgradcheck",
        "autograd.modes": (
            "detect_anomaly enable_grad inference_mode is_anomaly_enabled is_grad_enabled "
            "is_inference_mode_enabled no_grad set_detect_anomaly set_grad_enabled"
        ),
    },
    "autograd.forward_ad": {
        "autograd.forward_ad": (
            "UnpackedDualTensor dual_level enter_dual_level exit_dual_level make_dual unpack_dual"
        ),
    },
    "autograd.functional": {
        "autograd.functional": "hessian hvp jacobian jvp vhp vjp",
    },
    "autograd.graph": {
        "autograd.graph": "GradientEdge Node get_gradient_edge register_multi_grad_hook",
        "autograd.saved_tensors": "disable_saved_tensors_hooks save_on_cpu saved_tensors_hooks",
    },
    "distributed": {
        "distributed.bulk": "pmap",
        "distributed.checkpoint": "load_checkpoint save_checkpoint",
        "distributed.functions": (
            "all_gather all_reduce all_to_all barrier broadcast gather recv reduce reduce_scatter "
            "scatter send sendrecv"
        ),
        "distributed.parallel": "DataParallel data_parallel",
        "distributed.runtime": "Group init manual_seed new_group rank world_size",
        "distributed.sampler": "DistributedSampler",
    },
    "distributions": {
        "distributions.continuous": (
            "Cauchy Exponential Gumbel HalfNormal Laplace Normal StudentT Uniform Weibull"
        ),
        "distributions.discrete": (
            "Bernoulli Binomial Categorical Geometric Multinomial OneHotCategorical Poisson"
        ),
        "distributions.distribution": "Distribution",
        "distributions.event_transforms": (
            "AbsTransform CatTransform CorrCholeskyTransform CumulativeDistributionTransform "
            "IndependentTransform LogisticNormal LowerCholeskyTransform PositiveDefiniteTransform "
            "ReshapeTransform SoftmaxTransform StackTransform StickBreakingTransform biject_to "
            "identity_transform transform_to"
        ),
        "distributions.gammas": "Beta Chi2 Dirichlet Gamma",
        "distributions.joint": "Independent MixtureSameFamily MultivariateNormal",
        "distributions.kl.registry": "kl_divergence register_kl",
        "distributions.matrices": "LKJCholesky LowRankMultivariateNormal Wishart",
        "distributions.relaxed": (
            "ContinuousBernoulli NegativeBinomial OneHotCategoricalStraightThrough "
            "RelaxedBernoulli RelaxedOneHotCategorical"
        ),
        "distributions.tails": (
            "FisherSnedecor GeneralizedPareto HalfCauchy InverseGamma Kumaraswamy Pareto VonMises"
        ),
        "distributions.transforms": (
            "AffineTransform ComposeTransform ExpTransform LogNormal PowerTransform "
            "SigmoidTransform SoftplusTransform TanhTransform Transform TransformedDistribution"
        ),
    },
    "extend": {
        "compiler.kernels.scalars": "code scalar:register",
        "compiler.kernels.scalars.dispatch": "numba_scalar",
        "compiler.lowering.external.native_calls": "NativeCall",
        "compiler.lowering.external.numba_calls": "NumbaCall",
        "ir.primitive": "Primitive",
        "ir.types": "Type",
        "ops.core.errstate": "quiet",
        "ops.core.kinds": "Bilinear Constant Elementwise Linear times",
        "ops.core.promote": "as_tensor promote to_floating",
        "tape.bind": "bind",
    },
    "fft": {
        "fft.dft": (
            "fft fft2 fftfreq fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft "
            "ihfft2 ihfftn irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn"
        ),
    },
    "func": {
        "debugging.graph_functions": "from_graph",
        "func.associative": "associative_scan",
        "func.checkpointing": "checkpoint checkpoint_name saved_residuals",
        "func.control_flow": "cond fori_loop map scan switch while_loop",
        "func.custom_rules.forward": "custom_jvp",
        "func.custom_rules.reverse": "custom_vjp",
        "func.derivatives": (
            "grad grad_and_value hvp jvp linear_transpose linearize stop_gradient value_and_grad "
            "vjp"
        ),
        "func.jacobians": "hessian jacfwd jacobian jacrev",
        "func.mapping.batching": "vmap",
        "func.mapping.collectives": (
            "all_gather all_to_all axis_index axis_size pmax pmean pmin ppermute psum "
            "psum_scatter"
        ),
        "func.mapping.custom_batching": "custom_vmap",
        "func.mapping.vectorization": "vectorize",
        "func.numba_functions": "from_numba",
        "func.solvers.implicit": "fixed_point linear_solve root",
        "func.solvers.odes": "odeint",
        "nn.stateless": "functional_call replace_all_batch_norm_modules_ stack_module_state",
        "tape.recording.trace": "closure_convert eval_shape make_jaxpr:trace",
    },
    "ir": {
        "debugging.graph_diff": "diff:compare",
        "ir.graph": "Equation Graph Literal Var",
        "ir.interpret": "Program evaluate",
        "ir.primitive": "Primitive REGISTRY",
        "ir.text": "parse to_text",
        "ir.types": "Type",
        "ir.verify": "verify",
        "saving.graphs": "load save",
        "tape.bind": "bind",
        "tape.node": "Node",
        "tape.recording.trace": "replay trace",
    },
    "linalg": {
        "errors": "LinAlgError",
        "linalg.decompositions": "cholesky cholesky_ex lu lu_factor lu_factor_ex qr",
        "linalg.determinants": "det logdet slogdet",
        "linalg.eigenvalues": (
            "eig eigh eigvals eigvalsh matrix_rank pinv pinverse:pinv svd svdvals"
        ),
        "linalg.ldl_systems": "ldl_factor ldl_factor_ex ldl_solve",
        "linalg.norms": "cond matrix_norm norm vector_norm",
        "linalg.products": "cross diagonal matrix_exp matrix_power multi_dot vander vecdot",
        "linalg.reflections": "householder_product",
        "linalg.solving": (
            "cholesky_solve inv inv_ex inverse:inv lstsq lu_solve solve solve_ex solve_triangular "
            "tensorinv tensorsolve"
        ),
        "ops.linalg.contraction": "matmul",
    },
    "lucid": {
        "autograd.modes": (
            "enable_grad inference_mode is_grad_enabled is_inference_mode_enabled no_grad "
            "set_grad_enabled"
        ),
        "compiler.api": "get_num_threads profile set_num_threads",
        "compiler.jit.budget": "memory_budget",
        "compiler.jit.jit": "compile:jit jit",
        "debugging.bad_values": "find_nan",
        "debugging.graph_diff": "diff",
        "debugging.memory_use": "memory",
        "debugging.missing_gradient": "explain_no_grad",
        "debugging.rounding": "precision",
        "debugging.rule_check": "verify",
        "exporters.export": "export",
        "fft.spectrograms": "istft stft",
        "func.mapping.batching": "vmap",
        "linalg.determinants": "logdet",
        "linalg.products": "matrix_exp matrix_power",
        "linalg.reflections": "geqrf ormqr",
        "linalg.solving": "cholesky_solve",
        "linalg.torch_names": (
            "cholesky cholesky_inverse det inverse lu lu_solve lu_unpack orgqr pca_lowrank "
            "pinverse qr slogdet svd svd_lowrank triangular_solve"
        ),
        "nn.functional.activations": (
            "celu celu_ hardshrink prelu rrelu rrelu_ selu selu_ threshold threshold_"
        ),
        "nn.functional.convolutions": (
            "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"
        ),
        "nn.functional.distances": "cosine_similarity pairwise_distance",
        "nn.functional.dropouts": "alpha_dropout dropout feature_alpha_dropout",
        "nn.functional.images.vision": "channel_shuffle pixel_shuffle pixel_unshuffle",
        "nn.functional.linear_maps": "bilinear",
        "nn.functional.normalization": "group_norm layer_norm rms_norm",
        "nn.functional.pooling.adaptive": "adaptive_avg_pool1d",
        "nn.functional.pooling.windows": "avg_pool1d max_pool1d max_pool2d max_pool3d",
        "ops.core.constants": (
            "bool:bool_ bool_ cdouble:complex128 cfloat:complex64 complex128 complex64 "
            "double:float64 e float16 float32 float64 float:float32 half:float16 inf int16 int32 "
            "int64 int8 int:int32 long:int64 nan newaxis pi short:int16 uint16 uint32 uint64 "
            "uint8"
        ),
        "ops.core.limits": "finfo iinfo",
        "ops.core.predicates": (
            "can_cast detach is_complex is_conj is_floating_point is_inference is_neg is_nonzero "
            "is_same_size is_signed is_tensor numel promote_types resolve_conj resolve_neg"
        ),
        "ops.core.promote": "get_default_dtype result_type set_default_dtype",
        "ops.elementwise.arithmetic": (
            "abs absolute:abs add copysign div:divide divide mul:multiply multiply neg:negative "
            "negative positive sgn sub:subtract subtract true_divide:divide"
        ),
        "ops.elementwise.blending": (
            "addcdiv addcmul clamp_max clamp_min fill fmax fmin heaviside isreal lerp rsub"
        ),
        "ops.elementwise.closeness": "allclose array_equal:equal equal isclose nan_to_num",
        "ops.elementwise.complexes": (
            "angle complex conj conj_physical:conj conjugate:conj imag polar real"
        ),
        "ops.elementwise.conditional": "clamp clip:clamp maximum minimum relu where",
        "ops.elementwise.digits": "frexp gcd lcm ldexp nextafter signbit",
        "ops.elementwise.exponential": (
            "cbrt exp exp2 expit:sigmoid expm1 log log10 log1p log2 logaddexp rsqrt sigmoid sqrt"
        ),
        "ops.elementwise.logarithms": "logaddexp2 logit sinc sinhc xlogy",
        "ops.elementwise.logic": (
            "bitwise_and bitwise_left_shift:left_shift bitwise_not bitwise_or "
            "bitwise_right_shift:right_shift bitwise_xor eq ge greater:gt greater_equal:ge gt "
            "invert:bitwise_not isfinite isinf isnan isneginf isposinf le left_shift less:lt "
            "less_equal:le logical_and logical_not logical_or logical_xor lt ne not_equal:ne "
            "right_shift"
        ),
        "ops.elementwise.power": "float_power pow power:pow reciprocal square",
        "ops.elementwise.rounding": (
            "ceil fix:trunc floor floor_divide fmod frac mod:remainder remainder round sign trunc"
        ),
        "ops.elementwise.trigonometric": (
            "acos acosh arccos:acos arccosh:acosh arcsin:asin arcsinh:asinh arctan2:atan2 "
            "arctan:atan arctanh:atanh asin asinh atan atan2 atanh cos cosh deg2rad "
            "degrees:rad2deg hypot rad2deg radians:deg2rad sin sinh tan tanh"
        ),
        "ops.index.gather_scatter": "nonzero",
        "ops.index.lookup": (
            "argwhere gather index_add index_copy index_fill index_select masked_fill "
            "masked_select narrow scatter scatter_add select take take_along_axis take_along_dim"
        ),
        "ops.index.replacing": (
            "diagonal_scatter index_put masked_scatter put select_scatter slice_scatter"
        ),
        "ops.index.scatter_reduce": "index_reduce scatter_reduce",
        "ops.index.searching": (
            "bucketize isin nonzero_static searchsorted unique unique_consecutive unravel_index"
        ),
        "ops.linalg.adding_products": "addbmm addmm addmv addr baddbmm chain_matmul cross",
        "ops.linalg.contraction": "einsum matmul",
        "ops.linalg.distances": "cdist dist pdist renorm",
        "ops.linalg.products": "bmm dot ger:outer inner kron mm mv outer tensordot vdot",
        "ops.nn.softmax": "log_softmax softmax",
        "ops.reduce.counting": "bincount histc histogram",
        "ops.reduce.covariance": "corrcoef cov",
        "ops.reduce.cumulative": "cummax cummin cumprod cumsum logcumsumexp",
        "ops.reduce.extrema": "amax amin aminmax argmax argmin max min",
        "ops.reduce.histogramdd": "histogramdd",
        "ops.reduce.integrals": "cumulative_trapezoid gradient trapezoid trapz:trapezoid",
        "ops.reduce.quantiles": "kthvalue mode msort nanmedian nanquantile quantile",
        "ops.reduce.reduction": "all any count_nonzero logsumexp prod sum",
        "ops.reduce.segments": "segment_reduce",
        "ops.reduce.sorting": "argsort sort topk",
        "ops.reduce.statistics": "mean median nanmean nansum norm std std_mean var var_mean",
        "ops.shape.arranging": (
            "adjoint block_diag broadcast_shapes cartesian_prod combinations constant_pad_nd "
            "diagflat dsplit hsplit narrow_copy split_with_sizes "
            "unsafe_split_with_sizes:split_with_sizes vander view_as_complex view_as_real vsplit"
        ),
        "ops.shape.copying": "clone",
        "ops.shape.creation": (
            "arange as_tensor:convert asarray empty empty_like eye frombuffer full full_like "
            "linspace logspace ones ones_like scalar_tensor zeros zeros_like"
        ),
        "ops.shape.diagonals": "diag diag_embed diagonal trace tril tril_indices triu triu_indices",
        "ops.shape.joining": (
            "array_split:tensor_split cat chunk column_stack concat:cat concatenate dstack hstack "
            "meshgrid pad repeat_interleave roll row_stack:vstack split stack tensor_split "
            "unsafe_chunk:chunk unsafe_split:split vstack"
        ),
        "ops.shape.movement": "broadcast_to permute reshape",
        "ops.shape.shaping": (
            "atleast_1d atleast_2d atleast_3d broadcast_arrays:broadcast_tensors "
            "broadcast_tensors expand_dims flatten flip fliplr flipud moveaxis:movedim movedim "
            "ravel rot90 squeeze swapaxes swapdims t tile transpose unbind unflatten unsqueeze"
        ),
        "ops.shape.striding": "as_strided as_strided_copy as_strided_scatter",
        "ops.special.bessel": "i0",
        "ops.special.error_and_gamma": (
            "digamma erf erfc erfinv gammaln:lgamma lgamma mvlgamma polygamma psi:digamma"
        ),
        "ops.special.incomplete_gamma": "igamma:gammainc igammac:gammaincc",
        "ops.special.signal_windows": (
            "bartlett_window blackman_window hamming_window hann_window kaiser_window"
        ),
        "random.distributions": "binomial poisson",
        "random.draws": (
            "Generator bernoulli get_rng_state initial_seed manual_seed multinomial normal rand "
            "rand_like randint randint_like randn randn_like randperm seed set_rng_state"
        ),
        "saving": "load save",
        "support.caches": "clear_caches",
        "tape.scopes": "named_scope",
        "tensors.inplace_functions": (
            "abs_ absolute_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ "
            "arctanh_ asin_ asinh_ atan_ atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ "
            "conj_physical_ cos_ cosh_ deg2rad_ detach_ erf_ erfc_ exp2_ exp_ expm1_ fill_ fix_ "
            "floor_ frac_ gcd_ i0_ index_put_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ "
            "nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ round_ rsqrt_ sigmoid_ sin_ "
            "sinc_ sinh_ sinhc_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_ zero_"
        ),
        "tensors.numpy_protocols": "from_dlpack from_numpy",
        "tensors.printing": "set_printoptions",
        "tensors.tensor": "Tensor tensor",
        "viewer.show": "view",
    },
    "nn": {
        "nn.containers": "ModuleDict ModuleList ParameterDict ParameterList Sequential",
        "nn.functional.losses.linear_classes": "LinearCrossEntropyOptions",
        "nn.layers.activation": (
            "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid "
            "LogSoftmax Mish PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin "
            "Softplus Softshrink Softsign Tanh Tanhshrink Threshold"
        ),
        "nn.layers.adaptive_softmax": "AdaptiveLogSoftmaxWithLoss LinearCrossEntropyLoss",
        "nn.layers.conv": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
        "nn.layers.dropout": (
            "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout"
        ),
        "nn.layers.lazy": (
            "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d "
            "LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d "
            "LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear"
        ),
        "nn.layers.linear": (
            "Bilinear CosineSimilarity Embedding EmbeddingBag Flatten Identity Linear "
            "PairwiseDistance Unflatten"
        ),
        "nn.layers.loss": (
            "BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss "
            "GaussianNLLLoss HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss MSELoss "
            "MarginRankingLoss MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss "
            "NLLLoss PoissonNLLLoss SmoothL1Loss SoftMarginLoss TripletMarginLoss "
            "TripletMarginWithDistanceLoss"
        ),
        "nn.layers.norm": (
            "BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm InstanceNorm1d InstanceNorm2d "
            "InstanceNorm3d LayerNorm LocalResponseNorm RMSNorm"
        ),
        "nn.layers.pool": (
            "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d "
            "AdaptiveMaxPool2d AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d "
            "FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d LPPool3d MaxPool1d "
            "MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d"
        ),
        "nn.layers.sequences.attention": "MultiheadAttention",
        "nn.layers.sequences.cells": "GRUCell LSTMCell RNNCell",
        "nn.layers.sequences.recurrent": "GRU LSTM RNN",
        "nn.layers.sequences.transformer": (
            "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder "
            "TransformerEncoderLayer"
        ),
        "nn.layers.vision": (
            "ChannelShuffle CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d "
            "ConstantPad3d Fold PixelShuffle PixelUnshuffle ReflectionPad1d ReflectionPad2d "
            "ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d Unfold Upsample "
            "UpsamplingBilinear2d UpsamplingNearest2d ZeroPad1d ZeroPad2d ZeroPad3d"
        ),
        "nn.module": "Module",
        "nn.parameter": "Buffer Parameter",
        "nn.uninitialized": "UninitializedBuffer UninitializedParameter",
    },
    "nn.functional": {
        "nn.functional.activations": (
            "celu celu_ elu elu_ gelu glu gumbel_softmax hardshrink hardsigmoid hardswish "
            "hardtanh hardtanh_ leaky_relu leaky_relu_ logsigmoid mish prelu relu relu6 relu_ "
            "rrelu rrelu_ selu selu_ silu softmin softplus softshrink softsign tanhshrink "
            "threshold threshold_"
        ),
        "nn.functional.attention": "scaled_dot_product_attention",
        "nn.functional.convolutions": (
            "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"
        ),
        "nn.functional.distances": "cosine_similarity pairwise_distance",
        "nn.functional.dropouts": (
            "alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout"
        ),
        "nn.functional.embeddings": "embedding embedding_bag one_hot",
        "nn.functional.images.resampling": (
            "affine_grid grid_sample interpolate upsample upsample_bilinear upsample_nearest"
        ),
        "nn.functional.images.vision": (
            "channel_shuffle fold pad pixel_shuffle pixel_unshuffle unfold"
        ),
        "nn.functional.linear_maps": "bilinear linear",
        "nn.functional.losses.classes": "cross_entropy nll_loss",
        "nn.functional.losses.linear_classes": "linear_cross_entropy",
        "nn.functional.losses.margins": (
            "cosine_embedding_loss hinge_embedding_loss margin_ranking_loss multi_margin_loss "
            "multilabel_margin_loss multilabel_soft_margin_loss soft_margin_loss "
            "triplet_margin_loss triplet_margin_with_distance_loss"
        ),
        "nn.functional.losses.numbers": (
            "gaussian_nll_loss huber_loss l1_loss mse_loss poisson_nll_loss smooth_l1_loss"
        ),
        "nn.functional.losses.probabilities": (
            "binary_cross_entropy binary_cross_entropy_with_logits kl_div"
        ),
        "nn.functional.losses.sequences": "ctc_loss",
        "nn.functional.multihead": "multi_head_attention_forward",
        "nn.functional.normalization": (
            "batch_norm group_norm instance_norm layer_norm local_response_norm normalize "
            "rms_norm"
        ),
        "nn.functional.pooling.adaptive": (
            "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d "
            "adaptive_max_pool1d_with_indices adaptive_max_pool2d "
            "adaptive_max_pool2d_with_indices adaptive_max_pool3d "
            "adaptive_max_pool3d_with_indices"
        ),
        "nn.functional.pooling.fractional": (
            "fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d "
            "fractional_max_pool3d_with_indices"
        ),
        "nn.functional.pooling.windows": (
            "avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d lp_pool3d max_pool1d "
            "max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d "
            "max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d"
        ),
        "ops.elementwise.exponential": "sigmoid",
        "ops.elementwise.trigonometric": "tanh",
        "ops.linalg.distances": "pdist",
        "ops.nn.softmax": "log_softmax softmax",
    },
    "nn.init": {
        "nn.init": (
            "calculate_gain constant_ dirac_ eye_ kaiming_normal_ kaiming_uniform_ normal_ ones_ "
            "orthogonal_ sparse_ trunc_normal_ uniform_ xavier_normal_ xavier_uniform_ zeros_"
        ),
    },
    "nn.utils": {
        "nn.utils.clipping": (
            "clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm "
            "parameters_to_vector vector_to_parameters"
        ),
        "nn.utils.fusion": (
            "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights"
        ),
        "nn.utils.init": "skip_init",
        "nn.utils.parametrizations": (
            "remove_spectral_norm remove_weight_norm spectral_norm weight_norm"
        ),
    },
    "nn.utils.parametrizations": {
        "nn.utils.parametrizations": "orthogonal spectral_norm weight_norm",
    },
    "nn.utils.parametrize": {
        "nn.utils.parametrize": "is_parametrized register_parametrization remove_parametrizations",
    },
    "nn.utils.prune": {
        "nn.utils.prune": (
            "BasePruningMethod CustomFromMask Identity L1Unstructured LnStructured "
            "PruningContainer RandomStructured RandomUnstructured custom_from_mask "
            "global_unstructured identity is_pruned l1_unstructured ln_structured "
            "random_structured random_unstructured remove"
        ),
    },
    "nn.utils.rnn": {
        "nn.utils.rnn": (
            "PackedSequence pack_padded_sequence pack_sequence pad_packed_sequence pad_sequence "
            "unpack_sequence unpad_sequence"
        ),
    },
    "optim": {
        "optim.adam": "Adam AdamW Adamax NAdam RAdam",
        "optim.adaptive": "Adadelta Adafactor Adagrad RMSprop",
        "optim.lbfgs": "LBFGS",
        "optim.optimizer": "Optimizer",
        "optim.sgd": "ASGD SGD",
        "optim.signs": "Lion Muon Rprop",
    },
    "optim.functional": {
        "optim.functional": (
            "adadelta adafactor adagrad adam adamax adamw asgd lion muon nadam radam rmsprop "
            "rprop sgd"
        ),
    },
    "optim.lr_scheduler": {
        "optim.lr_scheduler.base": "LRScheduler",
        "optim.lr_scheduler.cosine": "CosineAnnealingLR CosineAnnealingWarmRestarts",
        "optim.lr_scheduler.cycles": "CyclicLR OneCycleLR",
        "optim.lr_scheduler.decay": (
            "ConstantLR ExponentialLR LambdaLR LinearLR MultiStepLR MultiplicativeLR PolynomialLR "
            "StepLR"
        ),
        "optim.lr_scheduler.joined": "ChainedScheduler SequentialLR",
        "optim.lr_scheduler.plateau": "ReduceLROnPlateau",
    },
    "optim.swa_utils": {
        "optim.swa_utils": (
            "AveragedModel SWALR get_ema_avg_fn get_ema_multi_avg_fn get_swa_avg_fn "
            "get_swa_multi_avg_fn update_bn"
        ),
    },
    "random": {
        "ops.random.keyed": (
            "fold_in key keyed_bernoulli:bernoulli keyed_normal:normal permutation random_bits "
            "split uniform"
        ),
        "random.distributions": (
            "beta binomial categorical cauchy dirichlet exponential gamma geometric gumbel "
            "laplace log_normal poisson truncated_normal"
        ),
        "random.draws": (
            "Generator bernoulli default_generator fork_rng get_rng_state initial_seed "
            "manual_seed multinomial normal rand rand_like randint randint_like randn randn_like "
            "randperm seed set_rng_state"
        ),
    },
    "signal.windows": {
        "signal.windows": (
            "bartlett blackman cosine exponential gaussian general_cosine general_hamming hamming "
            "hann kaiser nuttall"
        ),
    },
    "special": {
        "ops.elementwise.exponential": "exp2 expit:sigmoid expm1 log1p",
        "ops.elementwise.logarithms": "logit sinc xlogy",
        "ops.elementwise.rounding": "round",
        "ops.nn.softmax": "log_softmax softmax",
        "ops.reduce.reduction": "logsumexp",
        "ops.special.bessel": (
            "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 i0 i0e i1 i1e modified_bessel_i0:i0 "
            "modified_bessel_i1:i1 modified_bessel_k0 modified_bessel_k1 "
            "scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0"
        ),
        "ops.special.bessel_orders": "iv ive jv yv",
        "ops.special.beta_functions": (
            "beta betainc betaincinv betaln gamma gammaincinv gammasgn pdtrik rgamma stdtr "
            "stdtrit"
        ),
        "ops.special.entropies": "entr xlog1py",
        "ops.special.error_and_gamma": (
            "digamma erf erfc erfinv gammaln:lgamma multigammaln:mvlgamma polygamma psi:digamma"
        ),
        "ops.special.incomplete_gamma": "gammainc gammaincc",
        "ops.special.normal": "erfcinv erfcx log_ndtr ndtr ndtri",
        "ops.special.polynomials": (
            "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v "
            "chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he "
            "laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t "
            "shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v "
            "shifted_chebyshev_polynomial_w"
        ),
        "ops.special.zeta": "zeta",
    },
    "testing": {
        "testing": "assert_close",
    },
    "tree": {
        "tree": (
            "all:tree_all flatten leaves leaves_with_path map:tree_map map_with_path "
            "reduce:tree_reduce register_dataclass register_node register_node_class "
            "register_pytree_node:register_node register_pytree_node_class:register_node_class "
            "register_static structure transpose unflatten"
        ),
    },
    "utils": {
        "utils.progress_bar": "Progress progress",
    },
    "utils.checkpoint": {
        "utils.checkpoint": "checkpoint checkpoint_sequential",
    },
    "utils.data": {
        "utils.data.collate": "default_collate default_convert",
        "utils.data.dataset": (
            "ChainDataset ConcatDataset Dataset IterableDataset StackDataset Subset TensorDataset "
            "random_split"
        ),
        "utils.data.loader": "DataLoader",
        "utils.data.samplers": (
            "BatchSampler RandomSampler Sampler SequentialSampler SubsetRandomSampler "
            "WeightedRandomSampler"
        ),
        "utils.data.workers": "WorkerError get_worker_info",
    },
}

INPLACE: dict[str, dict[str, str]] = {
    "assign": {
        "ops.elementwise.arithmetic": "copysign_:copysign sgn_:sgn",
        "ops.elementwise.blending": (
            "addcdiv_:addcdiv addcmul_:addcmul clamp_max_:clamp_max clamp_min_:clamp_min "
            "heaviside_:heaviside lerp_:lerp"
        ),
        "ops.elementwise.closeness": "nan_to_num_:nan_to_num",
        "ops.elementwise.complexes": "conj_:conj conj_physical_:conj",
        "ops.elementwise.conditional": "clamp_:clamp clip_:clamp relu_:relu",
        "ops.elementwise.digits": "gcd_:gcd lcm_:lcm ldexp_:ldexp nextafter_:nextafter",
        "ops.elementwise.exponential": (
            "cbrt_:cbrt exp2_:exp2 expm1_:expm1 log10_:log10 log1p_:log1p log2_:log2 rsqrt_:rsqrt "
            "sigmoid_:sigmoid"
        ),
        "ops.elementwise.logarithms": "logit_:logit sinc_:sinc sinhc_:sinhc xlogy_:xlogy",
        "ops.elementwise.logic": (
            "bitwise_left_shift_:left_shift bitwise_not_:bitwise_not "
            "bitwise_right_shift_:right_shift eq_:eq ge_:ge greater_:gt greater_equal_:ge gt_:gt "
            "le_:le less_:lt less_equal_:le logical_and_:logical_and logical_not_:logical_not "
            "logical_or_:logical_or logical_xor_:logical_xor lt_:lt ne_:ne not_equal_:ne"
        ),
        "ops.elementwise.power": "float_power_:float_power reciprocal_:reciprocal",
        "ops.elementwise.rounding": (
            "ceil_:ceil fix_:trunc floor_:floor fmod_:fmod frac_:frac round_:round sign_:sign "
            "trunc_:trunc"
        ),
        "ops.elementwise.trigonometric": (
            "acos_:acos acosh_:acosh arccos_:acos arccosh_:acosh arcsin_:asin arcsinh_:asinh "
            "arctan2_:atan2 arctan_:atan arctanh_:atanh asin_:asin asinh_:asinh atan2_:atan2 "
            "atan_:atan atanh_:atanh cos_:cos cosh_:cosh deg2rad_:deg2rad hypot_:hypot "
            "rad2deg_:rad2deg sin_:sin sinh_:sinh tan_:tan"
        ),
        "ops.index.lookup": (
            "index_add_:index_add index_copy_:index_copy index_fill_:index_fill scatter_:scatter "
            "scatter_add_:scatter_add"
        ),
        "ops.index.replacing": "index_put_:index_put masked_scatter_:masked_scatter put_:put",
        "ops.index.scatter_reduce": "index_reduce_:index_reduce scatter_reduce_:scatter_reduce",
        "ops.linalg.adding_products": (
            "addbmm_:addbmm addmm_:addmm addmv_:addmv addr_:addr baddbmm_:baddbmm"
        ),
        "ops.linalg.distances": "renorm_:renorm",
        "ops.reduce.cumulative": "cumprod_:cumprod cumsum_:cumsum",
        "ops.shape.diagonals": "tril_:tril triu_:triu",
        "ops.special.bessel": "i0_:i0",
        "ops.special.error_and_gamma": (
            "digamma_:digamma erf_:erf erfc_:erfc erfinv_:erfinv lgamma_:lgamma "
            "mvlgamma_:mvlgamma"
        ),
        "ops.special.incomplete_gamma": "igamma_:gammainc igammac_:gammaincc",
    },
    "ufunc": {
        "ops.elementwise.arithmetic": (
            "abs_:abs absolute_:abs add_:add div_:divide divide_:divide mul_:multiply "
            "multiply_:multiply neg_:negative negative_:negative sub_:subtract subtract_:subtract "
            "true_divide_:divide"
        ),
        "ops.elementwise.exponential": "exp_:exp log_:log sqrt_:sqrt",
        "ops.elementwise.logic": (
            "bitwise_and_:bitwise_and bitwise_or_:bitwise_or bitwise_xor_:bitwise_xor"
        ),
        "ops.elementwise.power": "pow_:pow square_:square",
        "ops.elementwise.rounding": "floor_divide_:floor_divide remainder_:remainder",
        "ops.elementwise.trigonometric": "tanh_:tanh",
    },
    "view": {
        "ops.shape.shaping": (
            "squeeze_:squeeze swapaxes_:swapaxes swapdims_:swapdims t_:t transpose_:transpose "
            "unsqueeze_:unsqueeze"
        ),
    },
}

NUMPY: dict[str, str] = {
    "ops.elementwise.arithmetic": (
        "absolute:abs add copysign divide multiply negative positive sign:sgn subtract"
    ),
    "ops.elementwise.blending": "fmax fmin",
    "ops.elementwise.closeness": "allclose isclose",
    "ops.elementwise.complexes": "conjugate:conj imag real",
    "ops.elementwise.conditional": "maximum minimum where",
    "ops.elementwise.digits": "frexp gcd lcm ldexp nextafter signbit",
    "ops.elementwise.exponential": "cbrt exp exp2 expm1 log log10 log1p log2 logaddexp sqrt",
    "ops.elementwise.logarithms": "logaddexp2 sinc",
    "ops.elementwise.logic": (
        "bitwise_and bitwise_or bitwise_xor equal:eq greater:gt greater_equal:ge "
        "invert:bitwise_not isfinite isinf isnan isneginf isposinf left_shift less:lt "
        "less_equal:le logical_and logical_not logical_or logical_xor not_equal:ne right_shift"
    ),
    "ops.elementwise.power": "float_power power:pow reciprocal square",
    "ops.elementwise.rounding": "ceil fix:trunc floor floor_divide fmod remainder trunc",
    "ops.elementwise.trigonometric": (
        "arccos:acos arccosh:acosh arcsin:asin arcsinh:asinh arctan2:atan2 arctan:atan "
        "arctanh:atanh cos cosh deg2rad degrees:rad2deg hypot rad2deg radians:deg2rad sin sinh "
        "tan tanh"
    ),
    "ops.index.lookup": "argwhere take_along_axis",
    "ops.linalg.contraction": "matmul",
    "ops.linalg.products": "kron",
    "ops.shape.shaping": "expand_dims fliplr flipud moveaxis:movedim swapaxes",
}

PRIMITIVES: dict[str, str] = {
    "autograd.functions.eager": "function_backward function_call",
    "autograd.watch": "posthooks prehooks watch watch_node watched",
    "distributed.collectives": (
        "all_gather all_reduce all_reduce_extremum all_reduce_prod all_to_all barrier "
        "broadcast_from gather_to recv reduce_scatter reduce_to scatter_from send send_recv"
    ),
    "func.mapping.custom_batching": "custom_batch",
    "ops.core.kinds": "scale",
    "ops.core.runtime_check": "refuse",
    "ops.elementwise.arithmetic": "abs add cast copysign div mul neg sub",
    "ops.elementwise.complexes": "complex conj imag real",
    "ops.elementwise.conditional": "clamp maximum minimum relu where",
    "ops.elementwise.digits": "frexp gcd nextafter",
    "ops.elementwise.exponential": (
        "cbrt exp exp2 expm1 log log10 log1p log2 logaddexp rsqrt sigmoid sqrt"
    ),
    "ops.elementwise.logarithms": "logaddexp2 sinhc",
    "ops.elementwise.logic": (
        "bitwise_and bitwise_not bitwise_or bitwise_xor eq ge gt isfinite isinf isnan le "
        "left_shift lt ne right_shift"
    ),
    "ops.elementwise.power": "pow",
    "ops.elementwise.rounding": "ceil floor floor_divide fmod remainder round sign trunc",
    "ops.elementwise.trigonometric": (
        "acos acosh asin asinh atan atan2 atanh cos cosh hypot sin sinh tan tanh"
    ),
    "ops.higher_order.call": "call",
    "ops.higher_order.checkpoint_op": "checkpoint named optimization_barrier",
    "ops.higher_order.control.scan": "scan",
    "ops.higher_order.control.switch": "switch",
    "ops.higher_order.control.while_loop": "while",
    "ops.higher_order.custom_derivative": "custom_function custom_jvp custom_vjp",
    "ops.higher_order.implicit_solve": "linear_solve root",
    "ops.higher_order.numba_ops": "from_numba numba_arrays",
    "ops.higher_order.region": "region",
    "ops.index.gather_scatter": "gather put_along scatter_add take_along",
    "ops.index.scatter_reduce": "combine_along",
    "ops.index.searching": "searchsorted",
    "ops.index.selection": "take_one",
    "ops.index.writing": "last_write scatter_set slice_set",
    "ops.linalg.contraction": "einsum matmul",
    "ops.linalg.decompositions.eig": "eig eigvals",
    "ops.linalg.decompositions.eigh_svd": "eigh eigvalsh svd svdvals",
    "ops.linalg.decompositions.factorizations": "cholesky geqrf lu_factor permutation qr",
    "ops.linalg.decompositions.ldl": "ldl_factor ldl_solve",
    "ops.linalg.decompositions.triangular": "lu_solve triangular_solve",
    "ops.linalg.fourier": "fft irfft rfft",
    "ops.linalg.known_derivatives": "precomputed_det precomputed_pinv precomputed_slogdet",
    "ops.linalg.matrix_exp": "matrix_exp repeated_square",
    "ops.nn.convolution": "convolution convolution_transpose convolution_weight",
    "ops.nn.max_pool": "max_pool",
    "ops.nn.resample": "resample",
    "ops.nn.softmax": "log_softmax log_softmax_at softmax",
    "ops.random.keyed": "random_bits",
    "ops.reduce.cumulative": "cummax cummin cumprod cumsum logcumsumexp recurrence",
    "ops.reduce.extrema": "argmax argmin max min",
    "ops.reduce.named_axes": "axis_gather axis_max axis_scatter axis_sum",
    "ops.reduce.reduction": "all any logsumexp prod sum",
    "ops.reduce.sorting": "argsort sort topk",
    "ops.reduce.statistics": "var",
    "ops.shape.bitcast": "bitcast",
    "ops.shape.concatenate": "concatenate stack",
    "ops.shape.copying": "copy",
    "ops.shape.full_and_iota": "full iota",
    "ops.shape.movement": "broadcast flip pad reshape slice transpose",
    "ops.shape.strided": "strided",
    "ops.special.bessel": (
        "airy_ai airy_slope bessel_i bessel_j i0 i0e i1 i1e j0 j1 k0 k0e k1 k1e scaled_bessel_i "
        "y0 y1"
    ),
    "ops.special.bessel_orders": "bessel_y",
    "ops.special.beta_functions": (
        "beta betainc betaincinv betaln gamma gammaincinv pdtrik rgamma stdtr stdtrit"
    ),
    "ops.special.entropies": "entr xlog1py",
    "ops.special.error_and_gamma": "digamma erf erfc erfinv lgamma polygamma",
    "ops.special.incomplete_gamma": "gammainc gammaincc",
    "ops.special.normal": "erfcinv erfcx log_ndtr ndtr ndtri",
    "ops.special.polynomials": "orthogonal_polynomial",
    "ops.special.zeta": "zeta",
    "tape.markers": "alias once_differentiable overwritten replaced saved stop_gradient",
}
