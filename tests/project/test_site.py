"""The documentation site: every page is in its contents, every public name in its reference."""

from __future__ import annotations

import inspect
import re

import pytest

import lucid
from docs.site import contents, docstrings, links, reference, signatures
from docs.site.assemble import with_links_of_the_site

OBJECT = re.compile(r"^ *\.\. py:(?:function|class|data|method|attribute):: (lucid[\w.]+)", re.M)
FURTHER = re.compile(r"^ {14,}(lucid[\w.]+)", re.M)


def test_every_page_is_in_the_table_of_contents_once():
    assert sorted(contents.listed()) == sorted(contents.existing())


def test_pages_have_places_of_their_own_on_the_site():
    places = [contents.place(page) for page in contents.listed()]
    assert len(set(places)) == len(places)
    assert contents.place(contents.START) == "index"


@pytest.fixture(scope="module")
def described():
    texts = reference.pages().values()
    return {name for text in texts for part in (OBJECT, FURTHER) for name in part.findall(text)}


def public_modules():
    """The modules that `__all__` of lucid, and of what it lists, names."""
    waiting = [lucid]
    while waiting:
        module = waiting.pop()
        yield module
        for name in getattr(module, "__all__", []):
            value = getattr(module, name)
            if inspect.ismodule(value) and value.__name__ == f"{module.__name__}.{name}":
                waiting.append(value)


def test_every_public_name_is_in_the_reference(described):
    named = set(reference.public_names())
    for module in public_modules():
        shown = getattr(module, "__all__", [])
        named |= {
            f"{module.__name__}.{n}" for n in shown if not inspect.ismodule(getattr(module, n))
        }
    named |= {f"lucid.Tensor.{name}" for name in dir(lucid.Tensor) if name[0] != "_"}
    assert len(named) > 1500
    assert named - described == set()


def test_every_counterpart_belongs_to_a_public_name():
    names = set(reference.public_names()) | {f"lucid.Tensor.{n}" for n in dir(lucid.Tensor)}
    assert set(reference.counterparts()) - names == set()


def test_counterparts_are_those_of_the_same_name():
    table = reference.counterparts()
    assert table["lucid.abs"] == ["torch.abs", "jax.numpy.abs", "numpy.abs"]
    assert table["lucid.func.scan"] == ["jax.lax.scan"]
    assert table["lucid.jit"][:2] == ["torch.compile", "jax.jit"]


def test_a_name_is_explained_once_and_pointed_to_from_elsewhere():
    pages = reference.pages()
    assert ">>> lucid.softmax(" in pages["reference/networks"]
    assert "The same as :py:obj:`lucid.softmax`." in pages["reference/special"]


def test_signatures_have_the_types_of_the_stubs_and_real_defaults():
    home = ("lucid.ops.nn.softmax", "softmax")
    shown = signatures.text(lucid.softmax, {"Tensor": "lucid.Tensor"}, home)
    assert shown.startswith("(input: TensorLike, dim: Axis = None, dtype: DTypeLike | None = None")
    assert shown.endswith("-> lucid.Tensor")


def test_a_docstring_becomes_paragraphs_parameters_and_examples():
    doc = "Take *x* with `y`.\n\ndim    the axis\n       of it\nother, x    more\n\n>>> 1\n1"
    assert list(docstrings.body(doc, {"dim", "other", "x"})) == [
        "", "Take \\*x\\* with ``y``.", "", ":param dim: the axis of it", ":param other, x: more",
        "", ">>> 1", "1", "",
    ]  # fmt: skip


def test_links_of_a_page_lead_to_pages_of_the_site():
    text = "[a](index.md#heading) [b](../benchmarks/README.md) [c](../lucid/errors.py) [d](#x)"
    new = with_links_of_the_site("docs/jit.md", text)
    assert new == "[a](system.md#heading) [b](benchmarks.md) c [d](#x)"
    code = "```python\n[x](index.md)\n```"
    assert with_links_of_the_site("docs/jit.md", code) == code


def test_a_broken_link_of_the_site_is_found(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#x">1</a><a href="b.html#y">2</a>')
    (tmp_path / "b.html").write_text(
        '<p id="x"><a href="gone.html">3</a><a href="https://x.y">4</a>'
    )
    assert links.broken(tmp_path) == ["a.html: b.html#y", "b.html: gone.html"]
