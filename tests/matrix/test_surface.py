"""Every public callable is in a table of this folder, or a reason says where else it is tested."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

from lucid.public import index
from tests.matrix import calls, test_distributions, test_layers, test_optimizers

# Namespaces whose tables have a test of completeness of their own.
COMPLETE = {
    "lucid": "tests/table and test_coverage.py", "Tensor": "test_coverage.py",
    "linalg": "test_coverage.py", "special": "test_coverage.py", "fft": "test_coverage.py",
    "nn.functional": "test_coverage.py", "nn": "test_layers.py",
    "distributions": "test_distributions.py", "optim": "test_optimizers.py",
    "optim.lr_scheduler": "test_optimizers.py",
}  # fmt: skip
# Namespaces that are not called in the settings of this folder: why.
ELSEWHERE = {
    "autograd": "leaves, modes and hooks, which the settings themselves consist of: tests/autograd",
    "autograd.forward_ad": "a mode: tests/autograd/test_forward_ad.py",
    "autograd.graph": "nodes and hooks: tests/autograd/test_graph.py",
    "distributed": "many processes: tests/distributed",
    "extend": "for primitives, not for calls: tests/cases",
    "ir": "programs, not numbers: tests/ir",
    "nn.init": "writes to parameters by draws: tests/nn",
    "nn.utils": "changes modules and gradients: tests/nn/test_utils.py",
    "nn.utils.parametrizations": "in the table of layers, and tests/nn/test_utils.py",
    "nn.utils.parametrize": "changes modules: tests/nn/test_utils.py",
    "nn.utils.prune": "changes modules: tests/nn/test_prune.py",
    "nn.utils.rnn": "packed sequences, not tensors: tests/nn",
    "optim.functional": "tests/optim/test_functional.py",
    "optim.swa_utils": "tests/optim/test_swa.py",
    "testing": "compares numbers: tests/project/test_testing.py",
    "tree": "containers, not numbers: tests/func/test_jax_habits.py",
    "utils": "progress bars: tests/utils",
    "utils.checkpoint": "func.checkpoint by another name",
    "utils.data": "data loading: tests/utils/test_data.py",
}
COLLECTIVE = "inside vmap with a named axis alone: tests/func/mapping"
MODULES = "of modules: tests/nn and tests/func"
PROGRAM = "gives a program or a type, not numbers: tests/func/test_jax_habits.py"
RULES = "defines functions: tests/func/test_custom_rules.py, tests/cases/custom.py"
STATE = "of the generator: tests/random"
ROWS = "a row of tests/table by the name without `random`"
# Callables of the other namespaces that no call of the table names: why.
CALLABLES = {
    **dict.fromkeys(["func.all_gather", "func.all_to_all", "func.axis_index", "func.axis_size",
                     "func.pmax", "func.pmean", "func.pmin", "func.ppermute", "func.psum",
                     "func.psum_scatter"], COLLECTIVE),
    **dict.fromkeys(["func.functional_call", "func.replace_all_batch_norm_modules_",
                     "func.stack_module_state"], MODULES),
    **dict.fromkeys(["func.closure_convert", "func.eval_shape", "func.make_jaxpr",
                     "func.saved_residuals", "func.from_graph"], PROGRAM),
    **dict.fromkeys(["func.custom_jvp", "func.custom_vjp", "func.custom_vmap", "func.from_numba"],
                    RULES),
    "func.fixed_point": "func.root of f(x) - x: tests/func/solvers",
    **dict.fromkeys(["random.Generator", "random.default_generator", "random.fork_rng",
                     "random.get_rng_state", "random.initial_seed", "random.manual_seed",
                     "random.seed", "random.set_rng_state", "random.key"], STATE),
    **dict.fromkeys(["random.bernoulli", "random.multinomial", "random.normal", "random.rand",
                     "random.rand_like", "random.randint", "random.randint_like", "random.randn",
                     "random.randn_like", "random.randperm"], ROWS),
    "random.random_bits": "integers: tests/cases/random.py",
    "random.categorical": "its sizes come before those of the logits: tests/random",
    "random.dirichlet": "a vector for each draw: tests/random",
}  # fmt: skip
# Parameters of callables of the table that no call passes: why.
GIVEN = {"f", "fn", "fun", "func", "body_fun", "cond_fun", "x", "xs", "init", "init_val", "elems",
         "primals", "inputs", "pred", "true_fn", "false_fn", "operands", "index", "branches",
         "lower", "upper", "matvec", "b", "x0", "y0", "t", "M"}  # fmt: skip
COMPLEX = "complex numbers: tests/func/test_jacobians.py"
PARAMETERS = {
    "holomorphic": COMPLEX,
    "allow_int": "integers: tests/func/test_jax_habits.py",
    "sparsity": "tests/func/test_sparsity.py",
    "solver": "tests/func/solvers",
    "linear_solver": "tests/func/solvers",
    "args": "tests/func/solvers",
    "derivative": "tests/func/solvers",
    "randomness": "draws inside vmap: tests/func/mapping",
    "branching": "tests/func/mapping",
    "dtype": "of creation: tests/signal, tests/random",
    "device": "the CPU is the only one",
    "requires_grad": "what a transform makes is no leaf",
    "generator": "or a key: tests/random",
}


def public(space: str) -> list[str]:
    words = [word for names in index.NAMES[space].values() for word in names.split()]
    return sorted({word.partition(":")[0] for word in words})


def test_every_namespace_has_its_place():
    placed = {*COMPLETE, *ELSEWHERE, *{use.name.rpartition(".")[0] for use in calls.table()}}
    assert set(index.NAMES) == placed


def test_every_callable_is_called_or_has_a_reason():
    called = {use.name for use in calls.table()}
    left = set()
    for space in set(index.NAMES) - {*COMPLETE, *ELSEWHERE}:
        left |= {f"{space}.{name}" for name in public(space)} - called
    assert left == set(CALLABLES)


def test_reasons_name_tests_that_exist():
    root = Path(__file__).parents[2]
    tables = (COMPLETE, ELSEWHERE, CALLABLES, PARAMETERS, test_layers.PARAMETERS,
              test_optimizers.ELSEWHERE, test_distributions.OTHERS)  # fmt: skip
    reasons = " ".join([reason for table in tables for reason in table.values()])
    named = set(re.findall(r"tests/[\w/]+(?:\.py)?", reasons))
    assert len(named) > 15 and not [path for path in named if not (root / path).exists()]


def test_every_parameter_is_passed_or_has_a_reason():
    passed: dict[str, set[str]] = {}
    for use in calls.table():
        passed.setdefault(use.name, set()).update(use.keywords)
    left = set()
    for name, given in passed.items():
        space, _, last = name.rpartition(".")
        function = getattr(importlib.import_module(f"lucid.{space}"), last)
        known = inspect.signature(function).parameters
        assert given <= set(known), f"{name} has no {given - set(known)}"
        left |= {(name, key) for key in set(known) - given - GIVEN if key not in PARAMETERS}
    assert not left, sorted(left)
