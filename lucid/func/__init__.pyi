# Written by `python -m lucid.public.build`.

import builtins as _b
import collections.abc as _abc
import typing as _t

import numpy as _np

from lucid.debugging.graph_functions import from_graph as from_graph
from lucid.func.associative import associative_scan as associative_scan
from lucid.func.checkpointing import checkpoint as checkpoint
from lucid.func.checkpointing import checkpoint_name as checkpoint_name
from lucid.func.checkpointing import saved_residuals as saved_residuals
from lucid.func.control_flow import cond as cond
from lucid.func.control_flow import fori_loop as fori_loop
from lucid.func.control_flow import map as map
from lucid.func.control_flow import scan as scan
from lucid.func.control_flow import switch as switch
from lucid.func.control_flow import while_loop as while_loop
from lucid.func.custom_rules.forward import custom_jvp as custom_jvp
from lucid.func.custom_rules.reverse import custom_vjp as custom_vjp
from lucid.func.derivatives import grad as grad
from lucid.func.derivatives import grad_and_value as grad_and_value
from lucid.func.derivatives import hvp as hvp
from lucid.func.derivatives import jvp as jvp
from lucid.func.derivatives import linear_transpose as linear_transpose
from lucid.func.derivatives import linearize as linearize
from lucid.func.derivatives import stop_gradient as stop_gradient
from lucid.func.derivatives import value_and_grad as value_and_grad
from lucid.func.derivatives import vjp as vjp
from lucid.func.jacobians import hessian as hessian
from lucid.func.jacobians import jacfwd as jacfwd
from lucid.func.jacobians import jacobian as jacobian
from lucid.func.jacobians import jacrev as jacrev
from lucid.func.mapping.batching import vmap as vmap
from lucid.func.mapping.collectives import all_gather as all_gather
from lucid.func.mapping.collectives import all_to_all as all_to_all
from lucid.func.mapping.collectives import axis_index as axis_index
from lucid.func.mapping.collectives import axis_size as axis_size
from lucid.func.mapping.collectives import pmax as pmax
from lucid.func.mapping.collectives import pmean as pmean
from lucid.func.mapping.collectives import pmin as pmin
from lucid.func.mapping.collectives import ppermute as ppermute
from lucid.func.mapping.collectives import psum as psum
from lucid.func.mapping.collectives import psum_scatter as psum_scatter
from lucid.func.mapping.custom_batching import custom_vmap as custom_vmap
from lucid.func.mapping.vectorization import vectorize as vectorize
from lucid.func.numba_functions import from_numba as from_numba
from lucid.func.solvers.implicit import fixed_point as fixed_point
from lucid.func.solvers.implicit import linear_solve as linear_solve
from lucid.func.solvers.implicit import root as root
from lucid.func.solvers.odes import odeint as odeint
from lucid.nn.stateless import functional_call as functional_call
from lucid.nn.stateless import replace_all_batch_norm_modules_ as replace_all_batch_norm_modules_
from lucid.nn.stateless import stack_module_state as stack_module_state
from lucid.tape.recording.trace import closure_convert as closure_convert
from lucid.tape.recording.trace import eval_shape as eval_shape
from lucid.tape.recording.trace import trace as make_jaxpr


