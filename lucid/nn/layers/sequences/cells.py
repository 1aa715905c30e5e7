"""One step of recurrent networks: the update rules of the state, and the cells that apply them."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import lucid.nn.functional as F
from lucid.errors import ArgumentError, ShapeError
from lucid.nn import init
from lucid.nn.module import Module
from lucid.nn.parameter import Parameter
from lucid.nn.registered import registered
from lucid.ops.core.arguments import accepts_device
from lucid.ops.core.promote import as_tensor, result_type
from lucid.ops.higher_order.expected_call import expect_calls
from lucid.ops.higher_order.region import compile_when_hot
from lucid.ops.shape.creation import empty, zeros
from lucid.ops.shape.joining import chunk
from lucid.ops.shape.shaping import t
from lucid.public.declare import public


class Weights(NamedTuple):
    """The parameters of one direction of one layer; hr projects the state of an LSTM."""

    ih: Any = None
    hh: Any = None
    bias_ih: Any = None
    bias_hh: Any = None
    hr: Any = None

    def transposed(self) -> Weights:
        """Return the weights for a step, which multiplies by hh and hr from the right."""
        return self._replace(hh=t(self.hh), hr=None if self.hr is None else t(self.hr))


class Rule:
    """h = act(W x + V h + b), the rule of an RNN and the base of the others.

    reads    the weights that a step reads
    """

    gates: ClassVar[int] = 1
    states: ClassVar[int] = 1
    reads: ClassVar[tuple[str, ...]] = ("hh", "hr")

    def __init__(self, activation: Any = F.tanh) -> None:
        self.activation = activation
        self.next_state = expect_calls()(self.checked_state)

    def input_gates(self, x: Any, w: Weights) -> Any:
        """Return the contribution of the input to the gates, for all steps at once."""
        return F.linear(x, w.ih, None if w.bias_ih is None else w.bias_ih + w.bias_hh)

    def step(self, x: Any, state: tuple[Any, ...], w: Weights) -> tuple[Any, ...]:
        """Return the next state, given transposed weights; `x` is the contribution of the input."""
        return (self.activation(x + state[0] @ w.hh),)

    def cell(self, x: Any, state: tuple[Any, ...], w: Weights) -> tuple[Any, ...]:
        """Return the next state of a cell that reads `x`."""
        return (self.activation(cell_gates(x, state[0], *w)),)

    def checked_state(
        self, name: str, inputs: int, units: int, input: Any, ih: Any, hh: Any, bias_ih: Any,
        bias_hh: Any, *given: Any,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Return the next state of a cell, after a check of its arguments; None is one of zeros."""
        x = as_tensor(input)
        if x.ndim not in (1, 2) or x.shape[-1] != inputs:
            facts = f"input of shape {x.shape}; its last axis must be {inputs}"
            raise ShapeError(f"{name}: {facts}")
        shape = (*x.shape[:-1], units)
        state = given
        if len(given) == 1 and given[0] is None:
            state = (zeros(shape, dtype=result_type(x, ih)),) * self.states
        if [s.shape for s in state] != [shape] * self.states:
            shapes = ", ".join(str(s.shape) for s in state)
            facts = f"{self.states} of shape {shape} expected"
            raise ShapeError(f"{name}: states of shapes {shapes}; {facts}")
        return self.cell(x, state, Weights(ih, hh, bias_ih, bias_hh))


@compile_when_hot
def cell_gates(x: Any, h: Any, ih: Any, hh: Any, bias_ih: Any, bias_hh: Any, hr: Any) -> Any:
    """Return the gates of a cell: the input and the state, each by its weights."""
    return F.linear(x, ih, None if bias_ih is None else bias_ih + bias_hh) + h @ t(hh)


class LSTMRule(Rule):
    """c = σ(f) c + σ(i) tanh(g), h = σ(o) tanh(c), with i, f, g, o linear in x and h."""

    gates, states = 4, 2

    def step(self, x: Any, state: tuple[Any, ...], w: Weights) -> tuple[Any, ...]:
        h, c = state
        gates = x + h @ w.hh
        c = lstm_memory(gates, c)
        h = lstm_output(gates, c)
        return (h if w.hr is None else h @ w.hr, c)

    def cell(self, x: Any, state: tuple[Any, ...], w: Weights) -> tuple[Any, ...]:
        h, c = state
        gates = cell_gates(x, h, *w)
        c = lstm_memory(gates, c)
        return lstm_output(gates, c), c


@compile_when_hot
def lstm_memory(gates: Any, c: Any) -> Any:
    """Return the next memory of an LSTM."""
    i, f, g, _ = chunk(gates, 4, -1)
    return F.sigmoid(f) * c + F.sigmoid(i) * F.tanh(g)


@compile_when_hot
def lstm_output(gates: Any, c: Any) -> Any:
    """Return what an LSTM shows of its memory."""
    return F.sigmoid(chunk(gates, 4, -1)[3]) * F.tanh(c)


class GRURule(Rule):
    """h = (1 - z) n + z h with n = tanh(W x + r V h); r and z are σ of linear maps of x and h."""

    gates = 3
    reads = ("hh", "bias_hh")

    def input_gates(self, x: Any, w: Weights) -> Any:
        return F.linear(x, w.ih, w.bias_ih)

    def step(self, x: Any, state: tuple[Any, ...], w: Weights) -> tuple[Any, ...]:
        return (gru_state(x, state[0], w.hh, w.bias_hh),)

    def cell(self, x: Any, state: tuple[Any, ...], w: Weights) -> tuple[Any, ...]:
        h = state[0]
        return (gru_update(self.input_gates(x, w), F.linear(h, w.hh, w.bias_hh), h),)


@compile_when_hot
def gru_state(x: Any, h: Any, hh: Any, bias_hh: Any) -> Any:
    """Return the next state of a GRU, given transposed weights."""
    gates = h @ hh
    return gru_update(x, gates if bias_hh is None else gates + bias_hh, h)


@compile_when_hot
def gru_update(x: Any, gates: Any, h: Any) -> Any:
    """Return the next state of a GRU, given what the input and the state give to its gates."""
    rx, zx, nx = chunk(x, 3, -1)
    rh, zh, nh = chunk(gates, 3, -1)
    z = F.sigmoid(zx + zh)
    n = F.tanh(nx + F.sigmoid(rx + rh) * nh)
    return n + z * (h - n)


TANH_RULE, RELU_RULE, LSTM_RULE, GRU_RULE = Rule(), Rule(F.relu), LSTMRule(), GRURule()
RNN_RULES = {"tanh": TANH_RULE, "relu": RELU_RULE}


class Cell(Module):
    """The base of cells: one step for (batch, features) or (features,)."""

    rule: Any = TANH_RULE
    weight_ih: Parameter = registered()
    weight_hh: Parameter = registered()
    bias_ih: Any = registered()
    bias_hh: Any = registered()

    @accepts_device
    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = self.rule.gates * hidden_size
        self.weight_ih = Parameter(empty(rows, input_size, dtype=dtype))
        self.weight_hh = Parameter(empty(rows, hidden_size, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(empty(rows, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize all parameters."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def forward(self, input: Any, hx: Any = None) -> Any:
        state = (None,) if hx is None else hx
        if state.__class__ is not tuple:
            state = tuple(hx) if isinstance(hx, (tuple, list)) else (as_tensor(hx),)
        rule = self.rule
        new = rule.next_state(
            type(self).__name__, self.input_size, self.hidden_size, input,
            self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh, *state,
        )  # fmt: skip
        return new if rule.states > 1 else new[0]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        return text if self.bias else f"{text}, bias=False"


@public("nn")
class RNNCell(Cell):
    """One step of an RNN: `h = cell(x, h)`."""

    @accepts_device
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        dtype: Any = None,
    ) -> None:
        check_nonlinearity("RNNCell", nonlinearity)
        super().__init__(input_size, hidden_size, bias, dtype=dtype)
        self.nonlinearity = nonlinearity

    @property
    def rule(self) -> Rule:  # type: ignore[override]
        return RNN_RULES[getattr(self, "nonlinearity", "tanh")]


@public("nn")
class LSTMCell(Cell):
    """One step of an LSTM: `h, c = cell(x, (h, c))`."""

    rule = LSTM_RULE


@public("nn")
class GRUCell(Cell):
    """One step of a GRU: `h = cell(x, h)`."""

    rule = GRU_RULE


def check_nonlinearity(name: str, nonlinearity: Any) -> None:
    if nonlinearity not in RNN_RULES:
        raise ArgumentError(f"{name}: nonlinearity must be 'tanh' or 'relu', not {nonlinearity!r}")
