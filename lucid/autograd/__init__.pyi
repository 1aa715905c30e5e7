# Written by `python -m lucid.public.build`.

import builtins as _b
import collections.abc as _abc
import typing as _t

import numpy as _np

from lucid.autograd import forward_ad as forward_ad
from lucid.autograd import functional as functional
from lucid.autograd import graph as graph
from lucid.autograd.engine import backward as backward
from lucid.autograd.engine import grad as grad
from lucid.autograd.functions.function import Function as Function
from lucid.autograd.functions.function import FunctionCtx as FunctionCtx
from lucid.autograd.functions.function import once_differentiable as once_differentiable
from lucid.autograd.gradient_check import GradcheckError as GradcheckError
from lucid.autograd.gradient_check import gradcheck as gradcheck
from lucid.autograd.gradient_check import gradgradcheck as gradgradcheck
from lucid.autograd.modes import detect_anomaly as detect_anomaly
from lucid.autograd.modes import enable_grad as enable_grad
from lucid.autograd.modes import inference_mode as inference_mode
from lucid.autograd.modes import is_anomaly_enabled as is_anomaly_enabled
from lucid.autograd.modes import is_grad_enabled as is_grad_enabled
from lucid.autograd.modes import is_inference_mode_enabled as is_inference_mode_enabled
from lucid.autograd.modes import no_grad as no_grad
from lucid.autograd.modes import set_detect_anomaly as set_detect_anomaly
from lucid.autograd.modes import set_grad_enabled as set_grad_enabled


