"""Recurrent layers: a state carried along sequences, in one or both directions.

Every direction of every layer is one `scan` over the steps, so a compiled program does not grow
with the sequence length. The contribution of the input is one product for all steps, before the
loop. Packed sequences run padded: after its end a sequence keeps its state, so the loop returns
the final state of each, and a backward direction starts from there.
"""

from __future__ import annotations

import math
from typing import Any

import lucid.nn.functional as F
from lucid.errors import ArgumentError, ShapeError
from lucid.func.control_flow import trace_body
from lucid.ir.graph import Graph
from lucid.ir.pytree import flatten
from lucid.ir.types import Type
from lucid.nn import init
from lucid.nn.layers.sequences.cells import (
    GRU_RULE,
    LSTM_RULE,
    RNN_RULES,
    TANH_RULE,
    Rule,
    Weights,
    check_nonlinearity,
)
from lucid.nn.module import Module
from lucid.nn.parameter import Parameter
from lucid.nn.utils.rnn import PackedSequence, pack_rows, packed_layout, pad_packed
from lucid.ops.core.arguments import accepts_device
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise.conditional import where
from lucid.ops.higher_order.control.scan import Scan, run_scan
from lucid.ops.index.lookup import index_select
from lucid.ops.shape.creation import empty, zeros
from lucid.ops.shape.joining import cat, stack
from lucid.ops.shape.shaping import transpose
from lucid.public.declare import public
from lucid.support.caches import memoize
from lucid.tape.node import wrap


@memoize(maxsize=256)
def step_graph(rule: Rule, given: tuple[str, ...], types: tuple[Type, ...], masked: bool) -> Graph:
    """Return one step as the Graph of a Scan: (weights, states, row) -> (states, output)."""

    def step(weights: Any, state: Any, x: Any, inside: Any) -> Any:
        new = rule.step(x, state, Weights(**dict(zip(given, weights))))
        if masked:
            new = tuple([where(inside, a, b) for a, b in zip(new, state)])
        return new, where(inside, new[0], 0.0) if masked else new[0]

    args = ((0,) * len(given), (0,) * rule.states, 0, 0 if masked else None)
    return trace_body("scan", step, flatten(args)[1], types).graph


class Recurrent(Module):
    """The base of recurrent layers: parameters per layer and direction, and the loops over them."""

    rule: Any = TANH_RULE

    @accepts_device
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self.check_settings()
        for layer in range(num_layers):
            for suffix in self.directions(layer):
                self.add_weights(layer, suffix, dtype)
        self.reset_parameters()

    def check_settings(self) -> None:
        name = type(self).__name__
        if min(self.input_size, self.hidden_size, self.num_layers) < 1:
            raise ArgumentError(f"{name}: input_size, hidden_size and num_layers must be positive")
        if not 0 <= self.dropout <= 1:
            raise ArgumentError(f"{name}: dropout={self.dropout}; it must be between 0 and 1")
        if not 0 <= self.proj_size < self.hidden_size:
            facts = f"proj_size={self.proj_size} must be less than hidden_size={self.hidden_size}"
            raise ArgumentError(f"{name}: {facts}")

    def directions(self, layer: int) -> list[str]:
        """Return the suffixes of the names of a layer's parameters, forward first."""
        return [f"_l{layer}", f"_l{layer}_reverse"] if self.bidirectional else [f"_l{layer}"]

    def add_weights(self, layer: int, suffix: str, dtype: Any) -> None:
        rows, out = self.rule.gates * self.hidden_size, self.proj_size or self.hidden_size
        entering = out * len(self.directions(0)) if layer else self.input_size
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (rows, entering), "weight_hh": (rows, out)
        }  # fmt: skip
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if self.proj_size:
            shapes["weight_hr"] = (out, self.hidden_size)
        for name, shape in shapes.items():
            self.register_parameter(name + suffix, Parameter(empty(*shape, dtype=dtype)))

    def reset_parameters(self) -> None:
        """Reinitialize all parameters."""
        bound = 1 / math.sqrt(self.hidden_size)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters of every direction of every layer."""
        every = [s for layer in range(self.num_layers) for s in self.directions(layer)]
        return [[w for w in self.weights(suffix) if w is not None] for suffix in every]

    def weights(self, suffix: str) -> Weights:
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        return Weights(*[getattr(self, name + suffix, None) for name in names])

    def flatten_parameters(self) -> None:
        """Do nothing; accepted for compatibility with PyTorch."""

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        if isinstance(input, PackedSequence):
            return self.forward_packed(input, hx)
        x = as_tensor(input)
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            raise ShapeError(
                f"{type(self).__name__}: input of shape {x.shape}; its last axis must be "
                f"{self.input_size}, after steps and an optional batch axis"
            )
        if x.ndim == 2:
            y, last = self.run_layers(x.unsqueeze(1), self.initial_state(hx, 1, True), None)
            return y.squeeze(1), self.final_state([s.squeeze(1) for s in last])
        x = transpose(x, 0, 1) if self.batch_first else x
        y, last = self.run_layers(x, self.initial_state(hx, x.shape[1]), None)
        return (transpose(y, 0, 1) if self.batch_first else y), self.final_state(last)

    def forward_packed(self, x: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        """Run on a PackedSequence."""
        if x.data.ndim != 2 or x.data.shape[-1] != self.input_size:
            raise ShapeError(
                f"{type(self).__name__}: packed rows of shape {x.data.shape}; they must be "
                f"(rows, {self.input_size})"
            )
        layout = packed_layout(x.batch_sizes)
        state = self.initial_state(hx, layout.inside.shape[1])
        if state and x.sorted_indices is not None:
            state = [index_select(s, 1, x.sorted_indices) for s in state]
        y, last = self.run_layers(pad_packed(x, layout), state, wrap(layout.inside[:, :, None]))
        if x.unsorted_indices is not None:
            last = [index_select(s, 1, x.unsorted_indices) for s in last]
        return x._replace(data=pack_rows(y, layout)), self.final_state(last)

    def initial_state(self, hx: Any, count: int, single: bool = False) -> list[Any]:
        """Return the given states, one tensor of all layers each; empty if none are given."""
        if hx is None:
            return []
        given = [as_tensor(s) for s in (hx if isinstance(hx, (tuple, list)) else (hx,))]
        sizes = (self.proj_size or self.hidden_size, self.hidden_size)[: self.rule.states]
        rows = self.num_layers * len(self.directions(0))
        wanted = [(rows, n) if single else (rows, count, n) for n in sizes]
        if [s.shape for s in given] != wanted:
            shapes = ", ".join(str(s.shape) for s in given)
            raise ShapeError(
                f"{type(self).__name__}: states of shapes {shapes}; they must be "
                f"{', '.join(map(str, wanted))}"
            )
        return [s.unsqueeze(1) for s in given] if single else given

    def final_state(self, last: list[Any]) -> Any:
        """Return the final states in the form the caller expects."""
        return last[0] if self.rule.states == 1 else tuple(last)

    def run_layers(self, x: Any, state: list[Any], inside: Any) -> tuple[Any, list[Any]]:
        """Run all layers over (steps, batch, features); return outputs and stacked final states."""
        ends: list[tuple[Any, ...]] = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            ys: list[Any] = []
            for suffix in self.directions(layer):
                first = [s[len(ends)] for s in state]
                y, end = self.run_direction(x, first, self.weights(suffix), inside, bool(ys))
                ys.append(y)
                ends.append(end)
            x = ys[0] if len(ys) == 1 else cat(ys, -1)
        return x, [stack(states, 0) for states in zip(*ends)]

    def run_direction(
        self, x: Any, first: list[Any], w: Weights, inside: Any, reverse: bool
    ) -> tuple[Any, tuple[Any, ...]]:
        """Run one direction of one layer; return the outputs of all steps and the final state."""
        rule = self.rule
        x, w = rule.input_gates(x, w), w.transposed()
        if not first:
            sizes = (w.hh.shape[0], self.hidden_size)[: rule.states]
            first = [zeros(x.shape[1], n, dtype=x.dtype) for n in sizes]
        first = [cast(s, x.dtype) for s in first]
        given = tuple([name for name in rule.reads if getattr(w, name) is not None])
        weights = [cast(getattr(w, name), x.dtype) for name in given]
        rows = [x] if inside is None else [x, inside]
        types = [p.type for p in (*weights, *first)]
        types += [Type(r.dtype, r.shape[1:]) for r in rows]
        graph = step_graph(rule, given, tuple(types), inside is not None)
        op = Scan(graph, len(weights), len(first), x.shape[0], reverse)
        outs = run_scan(op, *weights, *first, *rows)
        return outs[-1], outs[:-1]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        usual = {
            "proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0,
            "bidirectional": False,
        }  # fmt: skip
        for name, value in usual.items():
            if getattr(self, name) != value:
                text += f", {name}={getattr(self, name)}"
        return text


@public("nn")
class RNN(Recurrent):
    """h = tanh(W x + V h + b) along sequences (steps, batch, features).

    `y, h = rnn(x, h0)`: y holds the states of the last layer at all steps, h the final state of
    every layer.
    """

    @accepts_device
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: Any = None,
    ) -> None:
        check_nonlinearity("RNN", nonlinearity)
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            0,
            dtype=dtype,
        )
        self.nonlinearity = nonlinearity

    @property
    def rule(self) -> Rule:  # type: ignore[override]
        return RNN_RULES[getattr(self, "nonlinearity", "tanh")]


@public("nn")
class LSTM(Recurrent):
    """Long short-term memory along sequences (steps, examples, features).

    `y, (h, c) = lstm(x, (h0, c0))`: y holds the states h of the last layer at all steps, h and c
    the last states of every layer.

    >>> import lucid
    >>> lstm = lucid.nn.LSTM(3, 4, num_layers=2)
    >>> y, (h, c) = lstm(lucid.ones(5, 2, 3))
    >>> y.shape, h.shape, c.shape
    ((5, 2, 4), (2, 2, 4), (2, 2, 4))
    """

    rule = LSTM_RULE


@public("nn")
class GRU(Recurrent):
    """Gated recurrent units along sequences (steps, examples, features): `y, h = gru(x, h0)`."""

    rule = GRU_RULE

    @accepts_device
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            0,
            dtype=dtype,
        )
