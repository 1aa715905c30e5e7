"""Pytrees: leaves, structures and errors are optree's, whoever takes the tree apart."""

from __future__ import annotations

import copy
import enum
import pickle
import random
import subprocess
import sys
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, make_dataclass

import optree
import pytest

from lucid import tree
from lucid.ir.pytree import broadcast_prefix, flatten, unflatten
from lucid.support.structures import FEW_USES, subscripts

Pair = namedtuple("Pair", "first second")
SEEDS = range(60)


class Row(list):
    """To optree a subclass of list is a leaf, and so is one of tuple or dict."""


class Name(str):
    """A string with a class of its own is a key of its own."""


@dataclass
class Point:
    x: object
    y: object


SIMPLE = ["tuple", "list", "dict", "numbered", "none", "empty"]
OTHERS = ["named", "ordered", "default", "deque", "mixed", "bools", "floats", "row", "strings"]


def random_tree(draw: random.Random, kinds: list[str], depth: int = 4) -> object:
    """A tree of random containers, whose leaves are numbers."""
    if not depth or draw.random() < 0.25:
        return draw.choice([draw.randrange(1000), draw.random(), "text", 2j])
    parts = [random_tree(draw, kinds, depth - 1) for _ in range(draw.randrange(4))]
    names = draw.sample("abcdefgh", len(parts))
    match draw.choice(kinds):
        case "tuple":
            return tuple(parts)
        case "list":
            return parts
        case "dict":
            return dict(zip(names, parts))
        case "numbered":
            return dict(zip(draw.sample(range(-9, 20), len(parts)), parts))
        case "none":
            return None
        case "empty":
            return draw.choice([(), [], {}])
        case "named":
            return Pair(parts, tuple(parts))
        case "ordered":
            return OrderedDict(zip(names, parts))
        case "default":
            return defaultdict(int, zip(names, parts))
        case "deque":
            return deque(parts)
        case "mixed":
            return dict(zip(["b", 3, (1, 2)], parts))
        case "bools":
            return dict(zip([True, 0], parts))
        case "floats":
            return dict(zip([2.0, -1.5, 0.25], parts))
        case "row":
            return (Row(parts), parts)
        case "strings":
            return dict(zip(map(Name, names), parts))
    raise AssertionError


def trees(seed: int) -> list[object]:
    draw = random.Random(seed)
    return [random_tree(draw, kinds) for kinds in (SIMPLE, SIMPLE, SIMPLE + OTHERS) for _ in "123"]


def outcome(f, *args):
    """What a function returns, or its error."""
    try:
        return f(*args)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("seed", SEEDS)
def test_leaves_and_structures_are_those_of_optree(seed):
    for x in trees(seed):
        expected, spec = optree.tree_flatten(x, namespace="lucid")
        leaves, structure = flatten(x)
        assert leaves == expected
        assert repr(structure) == repr(spec)
        assert structure.num_leaves == len(expected)
        assert (structure.type, structure.is_leaf()) == (spec.type, spec.is_leaf())
        assert structure.num_children == spec.num_children
        assert structure.entries() == spec.entries()
        for child, expected_child in zip(structure.children(), spec.children(), strict=True):
            assert repr(child) == repr(expected_child)
            assert (child.num_leaves, child.is_leaf()) == (
                expected_child.num_leaves,
                expected_child.is_leaf(),
            )
        assert structure.num_nodes == spec.num_nodes
        for _ in range(FEW_USES + 2):  # here at first, then by optree
            assert repr(unflatten(structure, iter(leaves))) == repr(x)
            assert structure.flatten_up_to(x) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_structures_are_equal_where_those_of_optree_are(seed):
    draw = random.Random(seed)
    given = [*trees(seed), (), [], {}, None, (None,), 1, (1,), [1], {"a": 1}, {1: 1}, {True: 1}]
    given += [shuffled(x, draw) for x in given] + [map_ints(x) for x in given]
    structures = [flatten(x)[1] for x in given]
    specs = [optree.tree_structure(x, namespace="lucid") for x in given]
    for a, first in zip(structures, specs):
        for b, second in zip(structures, specs):
            assert (a == b) is (first == second)
            assert a != b or hash(a) == hash(b)


def shuffled(x, draw):
    """The tree with the keys of its plain dicts inserted in another order."""
    if type(x) in (list, tuple):
        return type(x)([shuffled(y, draw) for y in x])
    if type(x) is not dict:
        return x
    return {key: shuffled(x[key], draw) for key in draw.sample(list(x), len(x))}


def map_ints(x):
    return optree.tree_map(lambda _: 0, x, namespace="lucid")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_structure_inside_another_is_that_of_the_part(seed):
    for x in trees(seed):
        if type(x) in (tuple, list, Pair):
            assert flatten(x)[1].children() == [flatten(part)[1] for part in x]
        if type(x) is dict:
            children = dict(zip(flatten(x)[1].entries(), flatten(x)[1].children()))
            assert children == {key: flatten(part)[1] for key, part in x.items()}


@pytest.mark.parametrize("seed", SEEDS)
def test_trees_that_differ_give_the_results_and_errors_of_optree(seed):
    given = trees(seed)
    for x in given:
        leaves, structure = flatten(x)
        spec = optree.tree_structure(x, namespace="lucid")
        for y in given:
            assert outcome(structure.flatten_up_to, y) == outcome(spec.flatten_up_to, y)
        for values in ([*leaves, 1], leaves[1:], leaves):
            assert outcome(structure.unflatten, values) == outcome(spec.unflatten, values)


@pytest.mark.parametrize("seed", SEEDS)
def test_subscripts_lead_to_the_leaves(seed):
    for x in trees(seed):
        leaves, structure = flatten(x)
        found = subscripts(structure)
        if found is not None:
            assert [eval(f"x{text}", {"x": x}) for text in found] == leaves
            paths = optree.tree_accessors(x, namespace="lucid")
            assert found == [path.codify("") for path in paths]


@pytest.mark.parametrize("seed", SEEDS)
def test_structures_survive_pickles_and_copies(seed):
    for x in trees(seed):
        leaves, structure = flatten(x)
        for again in (pickle.loads(pickle.dumps(structure)), copy.deepcopy(structure)):
            assert again == structure
            assert hash(again) == hash(structure)
            assert repr(unflatten(again, leaves)) == repr(x)


def test_keys_that_are_equal_but_not_the_same_stay_what_they_are():
    class Letter(enum.StrEnum):
        A = "a"

    for key, x in [(1, {1: 5}), (True, {True: 5}), (1.0, {1.0: 5}), ("a", {"a": 5})]:
        assert repr(unflatten(flatten(x)[1], [6])) == repr({key: 6})
    for x in ({Letter.A: 5}, {"a": 5}, {Letter.A: 5}):
        assert list(unflatten(flatten(x)[1], [6])) == list(x)
        assert type(next(iter(unflatten(flatten(x)[1], [6])))) is type(next(iter(x)))


def test_deep_trees_belong_to_optree():
    deep: object = 7
    for _ in range(400):
        deep = [deep]
    leaves, structure = flatten((deep, 8))
    assert leaves == [7, 8]
    assert structure == flatten((deep, 8))[1]
    assert unflatten(structure, [7, 8]) == (deep, 8)
    assert structure.children() == [flatten(deep)[1], flatten(8)[1]]


def test_a_tree_that_holds_itself_is_an_error():
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(RecursionError):
        flatten(loop)


def test_a_class_that_is_registered_after_it_was_a_leaf_becomes_a_tree():
    class Box:
        def __init__(self, x):
            self.x = x

    box = Box(3)
    assert flatten((box, 1))[0] == [box, 1]
    tree.register_node(Box, lambda b: ((b.x,), None), lambda _, xs: Box(*xs))
    assert flatten((box, 1))[0] == [3, 1]


def test_a_dataclass_is_a_tree_of_its_fields_at_any_depth():
    for cls in (Point, make_dataclass("Place", ["x", "y"])):
        leaves, structure = flatten([1, {"p": cls(2, (3, 4))}])
        assert leaves == [1, 2, 3, 4]
        again = unflatten(structure, [5, 6, 7, 8])
        assert again == [5, {"p": cls(6, (7, 8))}]


def test_is_leaf_of_lucid_tree_gives_structures_that_compare_with_others():
    pairs = {"b": (1, 2), "a": (3, 4)}
    whole = tree.structure(pairs, is_leaf=lambda x: isinstance(x, tuple))
    assert whole == tree.structure({"a": 0, "b": 0})
    assert unflatten(whole, "xy") == {"b": "y", "a": "x"}
    assert list(unflatten(whole, "xy")) == ["b", "a"]


@pytest.mark.parametrize(
    "prefix", [0, None, (0, None), [0, 1], (0, (1, None)), {"a": 0, "b": None}]
)
@pytest.mark.parametrize(
    "x", [5, (1, 2), [1, 2], [(), [3, 4]], (1, (2, [3, 4])), ((1, 2), None), {"a": 1, "b": [2, 3]}]
)
def test_a_prefix_is_repeated_as_optree_repeats_it(prefix, x):
    def expected():
        leaves, spec = optree.tree_flatten(prefix, none_is_leaf=True, namespace="lucid")
        parts = spec.flatten_up_to(x)
        return [a for a, part in zip(leaves, parts) for _ in optree.tree_leaves(part)]

    assert outcome(broadcast_prefix, prefix, x) == outcome(expected)


def test_simple_trees_do_not_import_optree():
    code = """
import sys, lucid
from lucid.ir.pytree import flatten, unflatten
x = {"w": [lucid.ones(2), 1.0], "b": (None, 2), "a": {}}
leaves, structure = flatten(x)
assert unflatten(structure, leaves) == x
assert structure.flatten_up_to(x) == leaves
first = lucid.jit(lambda p, s: {k: v * s for k, v in p.items()})
for _ in range(3):
    first({"w": lucid.ones(2), "b": lucid.ones(3)}, s=2.0)
print("optree" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False"]
