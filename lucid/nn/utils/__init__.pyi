# Written by `python -m lucid.public.build`.

import builtins as _b
import collections.abc as _abc
import typing as _t

import numpy as _np

from lucid.nn.utils import parametrizations as parametrizations
from lucid.nn.utils import parametrize as parametrize
from lucid.nn.utils import prune as prune
from lucid.nn.utils import rnn as rnn
from lucid.nn.utils.clipping import clip_grad_norm_ as clip_grad_norm_
from lucid.nn.utils.clipping import clip_grad_value_ as clip_grad_value_
from lucid.nn.utils.clipping import clip_grads_with_norm_ as clip_grads_with_norm_
from lucid.nn.utils.clipping import get_total_norm as get_total_norm
from lucid.nn.utils.clipping import parameters_to_vector as parameters_to_vector
from lucid.nn.utils.clipping import vector_to_parameters as vector_to_parameters
from lucid.nn.utils.fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
from lucid.nn.utils.fusion import fuse_conv_bn_weights as fuse_conv_bn_weights
from lucid.nn.utils.fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
from lucid.nn.utils.fusion import fuse_linear_bn_weights as fuse_linear_bn_weights
from lucid.nn.utils.init import skip_init as skip_init
from lucid.nn.utils.parametrizations import remove_spectral_norm as remove_spectral_norm
from lucid.nn.utils.parametrizations import remove_weight_norm as remove_weight_norm
from lucid.nn.utils.parametrizations import spectral_norm as spectral_norm
from lucid.nn.utils.parametrizations import weight_norm as weight_norm


