"""The pictures of the documentation: for light and dark pages, and as the program draws them."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest

from docs.site import assemble, contents, example_pictures, pictures

NAMES = [*pictures.DIAGRAMS, *pictures.CHARTS]


def test_every_picture_on_a_page_is_there_for_light_and_dark_pages():
    used = set()
    for page in contents.listed():
        text = (contents.ROOT / page).read_text()
        used |= set(re.findall(r"!\[[^\]]*\]\((?:\.\./)?(?:docs/)?pictures/([\w-]+)\.svg\)", text))
    assert used == set(NAMES)
    for name in NAMES:
        for suffix in pictures.PALETTES:
            root = ElementTree.parse(pictures.FOLDER / f"{name}{suffix}.svg").getroot()
            assert root.tag.endswith("svg") and len(root) > 0


def test_the_pictures_of_examples_are_on_their_page_for_light_and_dark_pages():
    text = (contents.ROOT / "examples" / "README.md").read_text()
    for name in example_pictures.NAMES:
        file = f"example-{name.replace('_', '-')}"
        assert f"](../docs/pictures/{file}.png)" in text and f"`{name}.py`" in text
        for suffix in pictures.PALETTES:
            assert (pictures.FOLDER / f"{file}{suffix}.png").read_bytes().startswith(b"\x89PNG")


def test_an_example_draws_in_the_colors_of_a_page():
    settings = example_pictures.colors(pictures.DARK)
    assert settings["text.color"] == pictures.DARK.text and settings["figure.facecolor"] == "none"
    ((draw, size),) = example_pictures.draws("hmc", ["--quick"])
    assert callable(draw) and len(size) == 2


@pytest.mark.parametrize("name", ["pipeline", "fusion"])
def test_the_stored_diagrams_are_those_that_are_drawn(name):
    for suffix, palette in pictures.PALETTES.items():
        drawn = pictures.DIAGRAMS[name](palette)
        stored = (pictures.FOLDER / f"{name}{suffix}.svg").read_text()
        assert stored == drawn, "run python -m docs.site.pictures"


def test_the_boxes_of_a_diagram_lie_inside_of_it():
    for name in pictures.DIAGRAMS:
        root = ElementTree.parse(pictures.FOLDER / f"{name}.svg").getroot()
        width, height = float(root.get("width")), float(root.get("height"))
        for box in root.iter("{http://www.w3.org/2000/svg}rect"):
            x, y, w, h = [float(box.get(key)) for key in ("x", "y", "width", "height")]
            assert x >= 0 and y >= 0 and x + w <= width and y + h <= height, name


def test_speeds_come_with_their_date_and_machine():
    stored = json.loads(pictures.SPEED.read_text())
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", stored["date"]) and "cores" in stored["machine"]
    for name, times in stored["microseconds"].items():
        assert set(times) == set(pictures.SYSTEMS) and min(times.values()) > 0, name


def test_a_run_of_the_benchmarks_is_taken_over(tmp_path, monkeypatch):
    file = tmp_path / "run.json"
    file.write_text(json.dumps({"mlp": {"rounds": {"lucid": [3.0, 2.0], "jax": [5.0, 4.04]}}}))
    monkeypatch.setattr(pictures, "SPEED", tmp_path / "speed.json")
    pictures.take_speed(file)
    stored = json.loads((tmp_path / "speed.json").read_text())
    assert stored["microseconds"] == {"mlp": {"lucid": 2.0, "jax": 4.0}} and stored["rounds"] == 2


def test_a_picture_of_a_page_becomes_two_of_the_site():
    text = assemble.with_links_of_the_site("docs/start.md", "![A way](pictures/pipeline.svg)")
    assert text.count("{image}") == 2
    assert ":class: only-light" in text and "pipeline-dark.svg\n:alt: A way" in text
