"""What everybody does wrong at first is refused with a remedy: the message says what to do."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import LucidError


def leaf() -> lucid.Tensor:
    return lucid.ones(3, requires_grad=True)


def backward_twice() -> None:
    y = (leaf() ** 2).sum()
    y.backward()
    y.backward()


def change_what_backward_needs() -> None:
    y = leaf() * 1.0
    z = (y * y).sum()
    y.add_(1.0)
    z.backward()


def choose_in_vmap() -> None:
    lucid.func.vmap(lambda x: x if x > 0 else -x)(lucid.ones(3))


def forget_to_call_the_base() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(2, 2)

    Net()


# What is done, and words of the facts and of the remedy.
MISTAKES = {
    "inner sizes": (lambda: lucid.ones(2, 3) @ lucid.ones(4, 5), "inner sizes 3 and 4 differ"),
    "features": (lambda: nn.Linear(3, 4)(lucid.ones(2, 5)), "must agree in the last axis"),
    "channels": (lambda: nn.Conv2d(3, 8, 3)(lucid.ones(1, 1, 8, 8)), "has 1 channels.* take 3"),
    "float classes": (
        lambda: nn.functional.cross_entropy(lucid.ones(2, 3), lucid.ones(2)),
        r"class indices must be integers: target.long\(\)",
    ),
    "no requires_grad": (lambda: lucid.ones(3).sum().backward(), "requires_grad=True"),
    "backward twice": (backward_twice, "retain_graph=True"),
    "a leaf in place": (lambda: leaf().add_(1.0), r"use no_grad\(\), or clone\(\) it"),
    "a saved value in place": (change_what_backward_needs, r"clone\(\) it first"),
    "if in vmap": (choose_in_vmap, "func.cond.*where.*branching='split'"),
    "item of many": (lambda: lucid.ones(3).item(), r"index it, or use tolist\(\)"),
    "truth of many": (lambda: bool(lucid.ones(3) > 0), r"use any\(\) or all\(\)"),
    "slope of a vector": (lambda: lucid.func.grad(lambda x: 2 * x)(lucid.ones(3)), r"sum\(\) it"),
    "item in a loss": (
        lambda: lucid.func.grad(lambda x: x.sum().item())(lucid.ones(3)),
        r"returned float, .* avoid item\(\) and numpy\(\)",
    ),
    "device": (lambda: lucid.ones(3, device="cuda"), "omit device, or pass 'cpu'"),
    "to a device": (lambda: lucid.ones(3).to("cuda:0"), "omit device, or pass 'cpu'"),
    "a module to optimize": (lambda: lucid.optim.SGD(nn.Linear(2, 2), 0.1), r"its parameters\(\)"),
    "a setting of another name": (
        lambda: lucid.optim.Adam([leaf()], learning_rate=0.1),
        "unknown setting learning_rate; settings are lr, betas, eps",
    ),
    "no base class": (forget_to_call_the_base, r"call super\(\).__init__\(\) before"),
    "no forward": (lambda: nn.Module()(lucid.ones(2)), "define one in the class"),
    "no function to jit": (lambda: lucid.jit(3), "jit: int is not a function"),
    "tensors in no list": (lambda: lucid.cat(leaf(), leaf()), r"as one list: cat\(\[x, y\]\)"),
    "a shape to the class": (lambda: lucid.Tensor(3, 4), r"use lucid.empty\(3, 4\)"),
    "a word to a jitted function": (
        lambda: lucid.jit(lambda x, how: x)(lucid.ones(2), "mean"),
        "'mean' is not an array; add its index to static_argnums",
    ),
    "a word as seed": (lambda: lucid.manual_seed("one"), "the seed must be an integer, not 'one'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_message_says_what_to_do(mistake):
    do, words = MISTAKES[mistake]
    with pytest.raises(LucidError, match=rf"(?s){words}.*\[test_first_mistakes.py:\d+\]"):
        do()


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_a_target_that_is_broadcast_is_warned_of(name):
    loss = getattr(nn.functional, name)
    with pytest.warns(UserWarning, match=rf"{name}: .*\(3, 1\) .*\(3,\) are broadcast.*takes.py"):
        loss(lucid.ones(3, 1), lucid.ones(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss(lucid.ones(3, 1), lucid.ones(3, 1))


FILES = {
    "a text": (b"these are no tensors at all", "which is the format that lucid.save writes"),
    "a pickle": (pickle.dumps({"w": np.ones(3)}), "a pickle, which can run arbitrary code"),
    "a zip": (b"PK\x03\x04\x00\x00\x08\x08" + bytes(30), "as torch.save and np.savez write"),
    "an array": (b"\x93NUMPY\x01\x00" + bytes(30), r"lucid.from_numpy\(np.load"),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_another_kind_is_told_from_its_start(kind, tmp_path):
    content, words = FILES[kind]
    path = tmp_path / "wrong"
    path.write_bytes(content)
    with pytest.raises(LucidError, match=f"not a safetensors file.*{words}"):
        lucid.load(path)


def test_names_that_are_misspelt_are_suggested():
    with pytest.raises(AttributeError) as error:
        _ = lucid.sigmiod
    assert error.value.name == "sigmiod" and error.value.obj is lucid
    layer = nn.Linear(2, 2)
    with pytest.raises(AttributeError) as error:
        _ = layer.wieght
    assert error.value.name == "wieght" and error.value.obj is layer


@pytest.mark.parametrize("name", ["cuda", "device"])
def test_the_package_says_that_it_has_no_devices(name):
    with pytest.raises(AttributeError, match="omit devices"):
        getattr(lucid, name)
